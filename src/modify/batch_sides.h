#pragma once

#include <vector>

#include "base/held_batch.h"

namespace gpucholmod {

/// Refers to right-hand sides, m of every member, that are changed along with a batch, and to the places of the
/// results. The arrays belong to the caller.
struct GivenBatchSides {
  index_t m = 0;
  const double* z = nullptr;    ///< n x m x b
  const double* Y = nullptr;    ///< k x m x b; for an insertion the new rows of b; null for a removal
  const double* rss = nullptr;  ///< m x b residual sums of squares, which may be NaN; null: none
  /// n x m x b; for an insertion n + k x m x b, for a removal n - k x m x b; must not be z
  double* new_z = nullptr;
  double* new_rss = nullptr;    ///< m x b; may be rss; null: none
};

/// Checks right-hand sides before a modification, and completes the results after the modification.
class CarriedSides {
 public:
  /// Checks the right-hand sides of b members, the largest of order n. Sets task.sides to what a backend reads; `task`
  /// may be used as long as this object lives. Throws not_finite, and overflow if a number is too large for the
  /// precision, with the member.
  CarriedSides(const GivenBatchSides& given, index_t n, index_t b, Precision precision, BatchTask& task);

  /// Computes the residual sums of squares when `task` is done. Members with a pivot keep their right-hand sides and
  /// sums. All members keep the rows of z beyond their orders. orders: b numbers.
  void settle(const BatchTask& task, const std::vector<index_t>& pivots, const std::vector<index_t>& orders) const;

 private:
  GivenBatchSides given_;
  index_t n_, b_;
  Precision precision_;
  std::vector<double> rest_;
};

/// Checks right-hand sides before rows are inserted, removed or moved, and completes the results after the change. Rows
/// of new_z beyond the new order of a member become 0.
class ReshapedSides {
 public:
  /// Checks the right-hand sides of a change to R. Sets what.sides to what a backend reads; `what` may be used as long
  /// as this object lives. Throws what CarriedSides throws, with "b" for Y.
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchInsertion& what);
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchRemoval& what);
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchShift& what);

  /// Computes the sums, and fills up new_z, when the change is done. Members with a pivot keep their right-hand sides
  /// and sums; `pivots` is empty for a removal and a move, in which no pivot fails.
  void settle(const std::vector<index_t>& pivots) const;

 private:
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, index_t coming, index_t going);
  BatchSides of_backend();

  GivenBatchSides given_;
  index_t n_, coming_, going_;
  std::vector<index_t> orders_;  ///< orders of the members before the change
  Precision precision_;
  std::vector<double> rest_;
};

}  // namespace gpucholmod
