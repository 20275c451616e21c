#pragma once

#include <functional>
#include <vector>

#include "base/held_batch.h"

namespace gpucholmod::cpu {

/// f(), whose errors are those of a member.
void for_member(index_t member, const std::function<void()>& f);

/// Columns of a member's V in the order in which they are taken, added ones first, and what each is multiplied by.
struct ColumnOrder {
  index_t added = 0;
  /// What remains at least of an entry of the diagonal when columns are taken away in a group: GroupPass::least_left.
  double share = 1;
  std::vector<index_t> column;
  std::vector<double> by;

  void find(const BatchTask& task, index_t member);
  /// Those columns of V (n rows), so multiplied.
  std::vector<double> taken(const double* V, index_t n) const;
};

/// The largest magnitude in V (n x k) with weights, divided by the root of the scale; it may be `most`. Throws
/// not_finite and overflow.
double largest_weighted(const double* V, index_t n, const ColumnOrder& order, double most);

/// A member by itself: R (n x n, upper) <- scale times the factor with the columns of V (n x k) added but for the last
/// `removed`, which are taken away. Returns the failing pivot, R being as it was then, or -1.
index_t modify_alone(std::vector<double>& R, index_t n, const std::vector<double>& V, index_t k, index_t removed,
                     double scale, Precision precision, Instructions instructions);

}  // namespace gpucholmod::cpu
