#include "regression/rolling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpucholmod::regression {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Returns the sum of squares that the solution explains of response j; about the mean if column 1 is an intercept.
double explained(const Solution& solution, index_t j, bool intercept) {
  const index_t r = index_t(solution.columns.size());
  double sum = 0;
  for (index_t i = intercept && r > 0 && solution.columns[0] == 0 ? 1 : 0; i < r; ++i) {
    const double effect = solution.effects[i + j * r];
    sum += effect * effect;
  }
  return sum;
}

/// Writes the results of a solution into row i of the path.
void write(const Solution& solution, const std::vector<double>& rss, double used, bool intercept, index_t i,
           const Windows& windows, const Path& path) {
  const index_t p = windows.rows.x.rows, m = windows.rows.y.rows, r = index_t(solution.columns.size());
  const index_t count = index_t(windows.first.size());
  const double freedom = used - double(r);
  path.used[i] = used;
  path.rank[i] = double(r);
  std::vector<double> lengths(r);
  for (index_t l = 0; l < r; ++l)
    for (index_t q = 0; q <= l; ++q) lengths[q] += solution.inverse[q + l * r] * solution.inverse[q + l * r];
  for (index_t j = 0; j < m; ++j) {
    const double variance = freedom > 0 ? rss[j] / freedom : none;
    const double mss = explained(solution, j, intercept);
    path.sigma[i + j * count] = std::sqrt(variance);
    path.r_squared[i + j * count] = mss / (mss + rss[j]);
    for (index_t l = 0; l < p; ++l) {
      path.coefficients[i + (l + j * p) * count] = solution.beta[l + j * p];
      path.errors[i + (l + j * p) * count] = none;
    }
    for (index_t q = 0; q < r; ++q)
      path.errors[i + (solution.columns[q] + j * p) * count] = std::sqrt(variance * lengths[q]);
  }
}

}  // namespace

void roll(const Windows& windows, const Request& request, const Path& path, const Poll& poll) {
  const index_t p = windows.rows.x.rows, count = index_t(windows.first.size());
  std::vector<double> memory(2 * p * p);
  PlainFactor R(memory.data(), memory.data() + p * p, memory.data(), p,
                [](const Place<double>& place, const double* V, const Request& asked) {
                  return modify(place, V, asked, unwatched);
                });
  Regression regression;
  // The number of earlier rows whose weight is not zero, and of earlier rows whose entry in column 1 is not 1.
  std::vector<double> seen(windows.rows.count() + 1), others(seen.size());
  for (index_t i = 0; i < windows.rows.count(); ++i) {
    seen[i + 1] = seen[i] + (windows.rows.weight(i) != 0);
    others[i + 1] = others[i] + (windows.rows.x(0, i) != 1);
  }
  /// The number of rows that have come and gone, divided by p, from which on a decomposition costs no more than
  /// deviances that have lost digits have cost since the last decomposition.
  constexpr double patience = 16;
  bool impatient = false;
  index_t first = 0, last = 0;
  for (index_t i = 0; i < count; ++i) {
    const index_t from = windows.first[i], to = windows.last[i];
    const Rows kept = windows.rows.block(from, to - from);
    if (i == 0 || impatient || from < first || to < last || from >= last) {
      regression.begin(kept, nullptr, R);
    } else {
      Step step;
      step.added = windows.rows.block(last, to - last);
      step.gone = windows.rows.block(first, from - first);
      step.kept = &kept;
      regression.advance(step, R, request);
    }
    first = from;
    last = to;
    const Solution solution = regression.solution(R, windows.tolerance, true, &kept, nullptr);
    const Deviance deviance = regression.deviance(solution, &kept, nullptr);
    impatient = deviance.from_rows && regression.account.moved > patience * double(p);
    write(solution, deviance.sums, seen[to] - seen[from], others[to] == others[from], i, windows, path);
    poll(double(i + 1) / double(count));
  }
}

}  // namespace gpucholmod::regression
