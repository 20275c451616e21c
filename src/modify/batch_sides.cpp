#include "modify/batch_sides.h"

#include <algorithm>

#include "base/factor_io.h"
#include "base/right_hand_sides.h"
#include "cpu/batch_columns.h"
#include "cpu/groups.h"
#include "modify/batch.h"

namespace gpucholmod {
namespace {

/// Checks m columns. Throws not_finite, and overflow if a number is too large for the precision.
void look_at(const char* argument, const double* columns, index_t rows, index_t m, Precision precision) {
  for (index_t j = 0; j < m; ++j) {
    largest_of(argument, columns + j * rows, rows, 0, j);
    for (index_t i = 0; i < rows && precision == Precision::single; ++i)
      require_single(argument, columns[i + j * rows], i, j);
  }
}

/// Returns the number of threads that are of use for right-hand sides of b members of order n.
int threads_for_sides(const GivenBatchSides& given, index_t n, index_t b) {
  constexpr double worth_a_thread = 5e4;
  return double(n) * double(given.m) * double(b) < worth_a_thread ? 1 : threads_for(0);
}

/// Checks z (n x m) and Y (k x m) of all b members. Throws not_finite and overflow, with the member.
void look_at_all(const GivenBatchSides& given, index_t n, const char* name_of_Y, index_t k, index_t b,
                 Precision precision) {
  const index_t m = given.m;
  naming_members([&] {
    cpu::check_groups(b, threads_for_sides(given, n, b), unwatched, [&](index_t member) {
      cpu::for_member(member, [&] {
        look_at("z", given.z + member * n * m, n, m, precision);
        look_at(name_of_Y, given.Y + member * k * m, k, m, precision);
      });
    });
  });
}

/// Calls f(member, at) for each right-hand side of all b members; `at` is its number among all right-hand sides.
template <class F>
void for_sides(const GivenBatchSides& given, index_t n, index_t b, F&& f) {
  cpu::for_groups(b, threads_for_sides(given, n, b), unwatched, [&](index_t member) {
    for (index_t at = member * given.m; at < (member + 1) * given.m; ++at) f(member, at);
  });
}

}  // namespace

CarriedSides::CarriedSides(const GivenBatchSides& given, index_t n, index_t b, Precision precision, BatchTask& task)
    : given_(given), n_(n), b_(b), precision_(precision), rest_(task.k * given.m * b) {
  look_at_all(given, n, "y", task.k, b, precision);
  task.sides = {given.m, {given.z, given.Y, given.new_z, rest_.data()}};
}

void CarriedSides::settle(const BatchTask& task, const std::vector<index_t>& pivots,
                          const std::vector<index_t>& orders) const {
  for_sides(given_, n_, b_, [&](index_t member, index_t at) {
    const bool failed = pivots[member] >= 0;
    const index_t own = orders[member], changed = failed ? 0 : own;
    const double *const z = given_.z + at * n_, *const rest = rest_.data() + at * task.k;
    double* const made = given_.new_z + at * n_;
    std::copy(z + changed, z + n_, made + changed);
    if (!given_.rss) return;
    const double scale = std::sqrt(task.scale_of(member));
    index_t added = 0;
    for (index_t q = 0; q < task.k; ++q) added += !(task.weight(q, member) < 0);
    const auto size = [&] { return squares(z, own, 1) + squares(made, own, scale); };
    const RestOfSide of_side{rest, 1, task.k, added};
    given_.new_rss[at] = failed ? given_.rss[at] : residual_sum(given_.rss[at], of_side, scale, precision_, size);
  });
}

ReshapedSides::ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, index_t coming, index_t going)
    : given_(given), n_(R.order()), coming_(coming), going_(going), orders_(R.orders()), precision_(R.precision()),
      rest_((coming + going) * given.m * R.count()) {
  look_at_all(given, n_, "b", coming, R.count(), precision_);
}

ReshapedSides::ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchInsertion& what)
    : ReshapedSides(given, R, what.p, 0) {
  what.sides = of_backend();
}

ReshapedSides::ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchRemoval& what)
    : ReshapedSides(given, R, 0, what.p) {
  what.sides = of_backend();
}

ReshapedSides::ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchShift& what)
    : ReshapedSides(given, R, 0, 0) {
  what.sides = of_backend();
}

BatchSides ReshapedSides::of_backend() { return {given_.m, {given_.z, given_.Y, given_.new_z, rest_.data()}}; }

void ReshapedSides::settle(const std::vector<index_t>& pivots) const {
  const index_t rows = n_ + coming_ - going_, k = coming_ + going_;
  for_sides(given_, n_, index_t(orders_.size()), [&](index_t member, index_t at) {
    const bool failed = !pivots.empty() && pivots[member] >= 0;
    const index_t own = orders_[member], after = failed ? own : own + coming_ - going_;
    const double* const z = given_.z + at * n_;
    double* const made = given_.new_z + at * rows;
    if (failed) std::copy_n(z, own, made);
    std::fill(made + after, made + rows, 0.0);
    if (!given_.rss) return;
    const auto size = [&] { return squares(z, own, 1) + squares(made, after, 1); };
    const RestOfSide of_side{rest_.data() + at * k, 1, k, going_};
    given_.new_rss[at] = failed ? given_.rss[at] : residual_sum(given_.rss[at], of_side, 1, precision_, size);
  });
}

}  // namespace gpucholmod
