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

void SidesAlone::put_into(Task& task) {
  if (m == 0) return;
  rest_.resize(Y.size());
  const MatrixView<double> all{z.data(), task.n, m, task.n};
  task.right = {all, {Y.data(), m, task.k, m}, all, {rest_.data(), m, task.k, m}};
}

void SidesAlone::settle(const Task& task, const Work& work) {
  if (m == 0) return;
  const bool untouched = task.n == 0 || task.k == 0;
  if (untouched) task.right.pass_through();
  if (untouched || work.unscaled_z)
    for (double& x : z) x *= task.scale;
  Y.swap(rest_);
}

index_t modify_alone(std::vector<double>& R, const std::vector<double>& V, Task task, SidesAlone* sides) {
  const std::unique_ptr<HeldFactor> factor = hold(R.data(), task.n, Uplo::upper, task.precision, 0, ordinary_memory);
  if (sides) sides->put_into(task);
  task.threads = 1;
  std::atomic<bool> begun{false};
  const Work work = factor->modify(V.data(), task, nullptr, unwatched, begun);
  if (work.pivot >= 0) return work.pivot;
  factor->download(Uplo::upper, R.data());
  if (sides) sides->settle(task, work);
  return -1;
}

Task task_alone(const BatchTask& task, const ColumnOrder& order, index_t n, index_t member, Precision precision) {
  Task alone;
  alone.n = n;
  alone.k = task.k;
  alone.removed = task.k - order.added;
  alone.scale = std::sqrt(task.scale_of(member));
  alone.precision = precision;
  alone.instructions = task.instructions;
  return alone;
}

SidesAlone sides_alone(const MemberSides& given, const ColumnOrder& order, index_t n, index_t m) {
  const index_t k = index_t(order.column.size());
  SidesAlone sides;
  sides.m = m;
  sides.z.assign(given.z, given.z + n * m);
  sides.Y.resize(k * m);
  for (index_t p = 0; p < k; ++p)
    for (index_t s = 0; s < m; ++s) sides.Y[s + p * m] = given.Y[order.column[p] + s * k] * order.by[p];
  return sides;
}

void pass_through(const BatchTask& task, index_t n, index_t member) {
  if (task.sides.m == 0) return;
  const MemberSides sides = task.sides.of(n, task.k, member);
  ColumnOrder order;
  order.find(task, member);
  put_sides(sides_alone(sides, order, n, task.sides.m), sides);
}

void put_sides(const SidesAlone& made, const MemberSides& to) {
  const index_t m = made.m, k = m > 0 ? index_t(made.Y.size()) / m : 0;
  std::copy(made.z.begin(), made.z.end(), to.out);
  for (index_t p = 0; p < k; ++p)
    for (index_t s = 0; s < m; ++s) to.rest[p + s * k] = made.Y[s + p * m];
}

}  // namespace gpucholmod::cpu
