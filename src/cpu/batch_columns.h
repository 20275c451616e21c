#pragma once

#include <functional>
#include <vector>

#include "base/held_batch.h"

namespace gpucholmod::cpu {

/// Calls f(), and adds the number of the member to an error that f throws.
void for_member(index_t member, const std::function<void()>& f);

/// The order in which the columns of a member's V are taken, added columns first, and the multiple of each column.
struct ColumnOrder {
  index_t added = 0;
  /// The least share of an entry of the diagonal that remains when columns are taken away in a group:
  /// GroupPass::least_left.
  double share = 1;
  std::vector<index_t> column;
  std::vector<double> by;

  void find(const BatchTask& task, index_t member);
  /// Returns the columns of V (n rows) in this order, each multiplied by its multiple.
  std::vector<double> taken(const double* V, index_t n) const;
};

/// Returns the largest magnitude in V (n x k) with weights, divided by the root of the scale. Throws not_finite, and
/// overflow if a magnitude is above `most`.
double largest_weighted(const double* V, index_t n, const ColumnOrder& order, double most);

/// Holds the right-hand sides of a member that is modified by itself.
struct SidesAlone {
  index_t m = 0;
  std::vector<double> z;  ///< z, n x m, and then z~
  std::vector<double> Y;  ///< Y, m x k, and then `rest`

  /// Makes task.right refer to these right-hand sides.
  void put_into(Task& task);
  /// Takes over the results of `task`, which has succeeded with `work`.
  void settle(const Task& task, const Work& work);

 private:
  std::vector<double> rest_;
};

/// Modifies a member by itself: R (n x n, upper) and `sides`, as `task` says, except for its threads and task.right.
/// Returns -1, or the failing pivot; R is then as it was.
index_t modify_alone(std::vector<double>& R, const std::vector<double>& V, Task task, SidesAlone* sides = nullptr);

/// Returns the task of a member of order n that is modified by itself, with its columns in `order`.
Task task_alone(const BatchTask& task, const ColumnOrder& order, index_t n, index_t member, Precision precision);

/// Returns right-hand sides of a member as modify_alone() takes them, with the columns of their Y in `order`.
SidesAlone sides_alone(const MemberSides& given, const ColumnOrder& order, index_t n, index_t m);
/// Writes the results of a modification for right-hand sides if R has no rows, or if R does not change.
void pass_through(const BatchTask& task, index_t n, index_t member);
/// Copies results to the caller's arrays.
void put_sides(const SidesAlone& made, const MemberSides& to);

}  // namespace gpucholmod::cpu
