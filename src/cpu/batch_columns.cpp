#include "cpu/batch_columns.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/factor_io.h"
#include "base/signed_columns.h"
#include "cpu/host_factor.h"

namespace gpucholmod::cpu {

void for_member(index_t member, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    Error::Fields fields = error.fields();
    fields.emplace_back("member", double(member + 1));
    throw Error(error.code(), error.what(), std::move(fields));
  }
}

void ColumnOrder::find(const BatchTask& task, index_t member) {
  const double root = std::sqrt(task.scale_of(member));
  column.resize(task.k);
  by.resize(task.k);
  index_t at = 0;
  added = 0;
  share = 1;
  each_signed_column(task.k, [&](index_t q) { return task.weight(q, member); }, [&](index_t q, double w) {
    column[at] = q;
    by[at++] = multiple_of_column(w, root);
    if (w < 0) share *= 0.25;
    else added = at;
  });
}

std::vector<double> ColumnOrder::taken(const double* V, index_t n) const {
  std::vector<double> out(n * index_t(column.size()));
  for (index_t q = 0; q < index_t(column.size()); ++q)
    for (index_t i = 0; i < n; ++i) out[i + q * n] = V[i + column[q] * n] * by[q];
  return out;
}

double largest_weighted(const double* V, index_t n, const ColumnOrder& order, double most) {
  double largest = 0;
  for (index_t p = 0; p < index_t(order.column.size()); ++p) {
    const index_t q = order.column[p];
    const double top = largest_of("V", V + q * n, n, 0, q) * order.by[p];
    largest = std::max(largest, top);
    if (top <= most) continue;
    index_t i = 0;
    while (std::abs(V[i + q * n]) * order.by[p] <= most) ++i;
    throw Error(ErrorCode::overflow,
                "'V' has a value that is too large for its weight, 'scale' and precision at [" + std::to_string(i + 1) +
                    ", " + std::to_string(q + 1) + "]",
                {{"argument", "V"}, {"row", double(i + 1)}, {"col", double(q + 1)}});
  }
  return largest;
}

index_t modify_alone(std::vector<double>& R, index_t n, const std::vector<double>& V, index_t k, index_t removed,
                     double scale, Precision precision, Instructions instructions) {
  const std::unique_ptr<HeldFactor> factor = hold(R.data(), n, Uplo::upper, precision, 0, ordinary_memory);
  Task task;
  task.n = n;
  task.k = k;
  task.removed = removed;
  task.scale = scale;
  task.precision = precision;
  task.instructions = instructions;
  task.threads = 1;
  std::atomic<bool> begun{false};
  const index_t pivot = factor->modify(V.data(), task, nullptr, unwatched, begun).pivot;
  if (pivot < 0) factor->download(Uplo::upper, R.data());
  return pivot;
}

}  // namespace gpucholmod::cpu
