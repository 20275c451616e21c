#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace gpucholmod::regression {
namespace {

/// Holds V, Y and the weights of the modification that takes a step.
struct Columns {
  std::vector<double> V, Y, weights;

  void push(const Rows& rows, double sign) {
    for (index_t i = 0; i < rows.count(); ++i) {
      const double w = rows.weight(i);
      if (w == 0) continue;
      V.insert(V.end(), rows.x.col(i), rows.x.col(i) + rows.x.rows);
      Y.insert(Y.end(), rows.y.col(i), rows.y.col(i) + rows.y.rows);
      weights.push_back(sign * w);
    }
  }
  Rows rows(index_t p, index_t m) const {
    const index_t count = index_t(weights.size());
    return {{V.data(), p, count, p}, {Y.data(), m, count, m}, weights.data()};
  }
};

/// Returns the rows and, behind them, the rows of a penalty (p numbers, or null).
Columns with_penalty(const Rows& rows, const double* penalty) {
  const index_t p = rows.x.rows;
  Columns all;
  all.push(rows, 1);
  for (index_t j = 0; penalty && j < p; ++j) {
    if (penalty[j] == 0) continue;
    all.V.resize(all.V.size() + p);
    all.V[all.V.size() - p + j] = 1;
    all.Y.resize(all.Y.size() + rows.y.rows);
    all.weights.push_back(penalty[j]);
  }
  return all;
}

/// The number of rows that have come and gone, divided by the number of rows that are kept, from which on a
/// decomposition costs a fraction of what the steps have cost: a fifth for p = 500 and 2,000 rows, with the BLAS that R
/// brings along.
constexpr double patience = 32;

/// Returns whether the columns of X differ by more than rounding.
bool is_regular(const Account::State& state, index_t p) {
  return state.independence > double(p) * std::numeric_limits<double>::epsilon();
}

}  // namespace

index_t PlainFactor::modify(const double* V, const Request& request) {
  const index_t pivot = run_(Place<double>::memory(from_, to_), V, request).pivot;
  if (pivot < 0) swap();
  return pivot;
}

void PlainFactor::diagonal(double* out) const {
  for (index_t j = 0; j < p_; ++j) out[j] = from_[j + j * p_];
}

MatrixView<double> PlainFactor::begin(bool read) {
  if (read) std::copy_n(from_, p_ * p_, to_);
  return {to_, p_, p_, p_};
}

void PlainFactor::end(bool) { swap(); }

/// Makes the matrix that has been written the factor that is read from now on.
void PlainFactor::swap() {
  from_ = to_;
  std::swap(to_, spare_);
}

void Regression::begin(const Rows& rows, const double* penalty, Factor& R) {
  const MatrixView<double> made = R.begin(false);
  shift = Shift(rows);
  sides = decompose(rows, penalty, shift, made);
  account = Account(made, sides);
  std::vector<double> diagonal(sides.p);
  for (index_t j = 0; j < sides.p; ++j) diagonal[j] = made(j, j);
  regular = is_regular(account.look(diagonal.data()), sides.p);
  R.end(regular);
}

bool Regression::modify(const Rows& added, const Rows& gone, double forget, Factor& R, Request& request) {
  Columns columns;
  columns.push(added, 1);
  columns.push(gone, -1);
  request.n = sides.p;
  request.k = index_t(columns.weights.size());
  request.weights = std::move(columns.weights);
  request.scale = std::sqrt(forget);
  request.sides = std::make_shared<OwnedRightHandSides>();
  request.sides->m = sides.m;
  request.sides->z = sides.z;
  request.sides->Y = std::move(columns.Y);
  request.sides->rss = sides.rss;
  if (R.modify(columns.V.data(), request) >= 0) return false;
  sides.z = std::move(request.sides->z);
  sides.rss = std::move(request.sides->rss);
  return true;
}

/// Ends the shift, because rows come whose number in column 1 differs: the shift would make their columns larger.
void Regression::take_back_shift(Factor& R) {
  const MatrixView<double> made = R.begin(true);
  shift.take_back(made, sides);
  R.end(regular);
  shift = {};
  const Account before = account;
  account = Account(made, sides);
  account.moved = before.moved;
  account.removed = before.removed;
}

/// Returns whether the mean of a response is much farther from its shift than the response varies, as a huge value that
/// the shift was computed from has left. Coefficients have then lost the digits that the shift has saved.
bool Regression::is_shift_far() const {
  constexpr double far = 1e6, rounding = 1e3 * std::numeric_limits<double>::epsilon();
  const index_t p = sides.p;
  for (index_t j = 0; !shift.is_none() && j < sides.m; ++j) {
    const double* const z = sides.z.data() + j * p;
    double rest = sides.rss[j];
    for (index_t i = 1; i < p; ++i) rest += z[i] * z[i];
    const double exact = rounding * shift.of(p + j);
    if (z[0] * z[0] > far * rest && z[0] * z[0] > exact * exact * account.sums()[0]) return true;
  }
  return false;
}

bool Regression::advance(const Step& step, Factor& R, Request request) {
  const index_t moved = step.added.count() + step.gone.count();
  const auto afresh = [&] {
    if (step.kept) begin(*step.kept, step.whole_penalty, R);
    return step.kept != nullptr;
  };
  if (step.gone.count() > 0 && (!regular || (step.kept && moved >= step.kept->count()))) return afresh();
  if (!shift.fits(step.added)) take_back_shift(R);
  Columns with_more;
  if (step.penalty) with_more = with_penalty(step.added, step.penalty);
  const Rows coming = step.penalty ? with_more.rows(sides.p, sides.m) : step.added;
  std::vector<double> memory[2];
  const Rows added = shift.apply(coming, memory[0]), gone = shift.apply(step.gone, memory[1]);
  account.count(added, gone, step.forget);
  if (!regular) {
    decompose_onto(added, step.forget, R.begin(true), sides);
    R.end(false);
  } else if (!modify(added, gone, step.forget, R, request)) {
    return afresh();
  }
  std::vector<double> diagonal(sides.p);
  R.diagonal(diagonal.data());
  const bool no_rss = !step.kept && std::any_of(sides.rss.begin(), sides.rss.end(), [](double x) { return x != x; });
  const bool free = step.kept && account.moved >= patience * double(step.kept->count());
  const Account::State state = account.look(diagonal.data());
  const bool far = step.kept && step.gone.count() > 0 && is_shift_far();
  if (no_rss || far || state.has_lost() || (free && state.is_worse_than_new())) return afresh();
  const bool was_regular = regular;
  regular = is_regular(state, sides.p);
  if (!was_regular && regular) {
    R.begin(true);
    R.end(true);
  }
  return true;
}

Solution Regression::solve_unshifted(const Factor& R, double tolerance, bool with_inverse) const {
  if (shift.is_none()) return solve(R.view(), sides, tolerance, with_inverse);
  const index_t p = sides.p;
  std::vector<double> memory(p * p);
  const MatrixView<double> own{memory.data(), p, p, p};
  for (index_t j = 0; j < p; ++j) std::copy_n(R.view().col(j), j + 1, own.col(j));
  Sides back = sides;
  shift.take_back(own, back);
  return solve(own, back, tolerance, with_inverse);
}

Solution Regression::solution(Factor& R, double tolerance, bool with_inverse, const Rows* kept, const double* penalty) {
  Solution found = solve_unshifted(R, tolerance, with_inverse);
  std::vector<double> diagonal(sides.p);
  R.diagonal(diagonal.data());
  const Account::State state = account.look(diagonal.data());
  bool off = false;
  for (index_t j = 0; kept && j < sides.m; ++j)
    off = off || account.is_off(state, j, found.beta.data() + j * sides.p, shift);
  if (!off) return found;
  begin(*kept, penalty, R);
  return solve_unshifted(R, tolerance, with_inverse);
}

Deviance Regression::deviance(const Solution& solution, const Rows* kept, const double* penalty) const {
  constexpr double most = 1e-11;  // largest relative error of a deviance
  Deviance found{solution.rss};
  const index_t p = sides.p;
  std::vector<double> beta(p);
  for (index_t j = 0; j < sides.m; ++j) {
    for (index_t i = 0; i < p; ++i) {
      const double b = solution.beta[i + j * p];
      beta[i] = std::isnan(b) ? 0 : b;
    }
    if (!kept || account.loss_of_rss(j, found.sums[j], beta.data(), shift) <= most) continue;
    found.from_rows = true;
    double sum = 0;
    for (index_t q = 0; q < kept->count(); ++q) {
      double residual = kept->y(j, q);
      for (index_t i = 0; i < p; ++i) residual -= kept->x(i, q) * beta[i];
      sum += kept->weight(q) * residual * residual;
    }
    for (index_t i = 0; penalty && i < p; ++i) sum += penalty[i] * beta[i] * beta[i];
    found.sums[j] = sum;
  }
  return found;
}

}  // namespace gpucholmod::regression
