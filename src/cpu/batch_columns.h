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

/// Right-hand sides of a member that is modified by itself.
struct SidesAlone {
  index_t m = 0;
  std::vector<double> z;  ///< n x m; becomes z~
  std::vector<double> Y;  ///< m x k; becomes `rest`

  /// Makes task.right refer to these.
  void put_into(Task& task);
  /// Takes over the results of `work` on that task, which has succeeded.
  void settle(const Task& task, const Work& work);

 private:
  std::vector<double> rest_;
};

/// A member by itself: R (n x n, upper), and `sides`, are modified as `task` says, but for its threads and task.right.
/// Returns the failing pivot, R being as it was then, or -1.
index_t modify_alone(std::vector<double>& R, const std::vector<double>& V, Task task, SidesAlone* sides = nullptr);

/// Returns the task of a member of order n that is modified by itself, with columns in that order.
Task task_alone(const BatchTask& task, const ColumnOrder& order, index_t n, index_t member, Precision precision);

/// Returns right-hand sides of a member as modify_alone() takes them, their Y in that order.
SidesAlone sides_alone(const MemberSides& given, const ColumnOrder& order, index_t n, index_t m);
/// Writes what a modification makes of right-hand sides where R has no rows, or nothing is to be changed.
void pass_through(const BatchTask& task, index_t n, index_t member);
/// Puts results into the caller's arrays.
void put_sides(const SidesAlone& made, const MemberSides& to);

}  // namespace gpucholmod::cpu
