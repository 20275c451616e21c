#include "modify/batch_sides.h"

#include <algorithm>

#include "base/factor_io.h"
#include "base/right_hand_sides.h"
#include "base/signed_columns.h"
#include "cpu/batch_columns.h"
#include "cpu/groups.h"
#include "modify/batch.h"

namespace gpucholmod {
namespace {

/// Throws not_finite and overflow.
void look_at(const char* argument, const double* columns, index_t rows, index_t m, Precision precision) {
  for (index_t j = 0; j < m; ++j) {
    largest_of(argument, columns + j * rows, rows, 0, j);
    for (index_t i = 0; i < rows && precision == Precision::single; ++i)
      require_single(argument, columns[i + j * rows], i, j);
  }
}

}  // namespace

CarriedSides::CarriedSides(const GivenBatchSides& given, index_t n, index_t b, Precision precision, BatchTask& task)
    : given_(given), n_(n), b_(b), precision_(precision), rest_(task.k * given.m * b) {
  const index_t m = given.m, k = task.k;
  naming_members([&] {
    cpu::check_groups(b, threads(), unwatched, [&](index_t member) {
      cpu::for_member(member, [&] {
        look_at("z", given.z + member * n * m, n, m, precision);
        look_at("y", given.Y + member * k * m, k, m, precision);
      });
    });
  });
  task.sides = {m, {given.z, given.Y, given.new_z, rest_.data()}};
}

void CarriedSides::settle(const BatchTask& task, const std::vector<index_t>& pivots,
                          const std::vector<index_t>& orders) const {
  cpu::for_groups(b_, threads(), unwatched, [&](index_t member) {
    const bool failed = pivots[member] >= 0;
    const index_t own = orders[member], changed = failed ? 0 : own;
    const double scale = std::sqrt(task.scale_of(member));
    index_t added = 0;
    each_signed_column(task.k, [&](index_t q) { return task.weight(q, member); },
                       [&](index_t, double w) { added += !(w < 0); });
    for (index_t at = member * given_.m; at < (member + 1) * given_.m; ++at) {
      const double *const z = given_.z + at * n_, *const rest = rest_.data() + at * task.k;
      double* const made = given_.new_z + at * n_;
      std::copy(z + changed, z + n_, made + changed);
      if (!given_.rss) continue;
      const auto size = [&] { return squares(z, own, 1) + squares(made, own, scale); };
      const RestOfSide of_side{rest, 1, task.k, added};
      given_.new_rss[at] = failed ? given_.rss[at] : residual_sum(given_.rss[at], of_side, scale, precision_, size);
    }
  });
}

int CarriedSides::threads() const {
  constexpr double worth_a_thread = 5e4;
  return double(n_) * double(given_.m) * double(b_) < worth_a_thread ? 1 : threads_for(0);
}

}  // namespace gpucholmod
