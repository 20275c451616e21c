#pragma once

#include <vector>

#include "base/held_batch.h"

namespace gpucholmod {

/// Right-hand sides, m of every member, that are changed along with a batch, and where the results go. The arrays
/// belong to the caller.
struct GivenBatchSides {
  index_t m = 0;
  const double* z = nullptr;    ///< n x m x b
  const double* Y = nullptr;    ///< k x m x b; where k rows come, the new rows of b; null where rows go
  const double* rss = nullptr;  ///< m x b residual sums of squares, which may be NaN; null: none
  double* new_z = nullptr;      ///< n x m x b, n + k x m x b where rows come, n - k x m x b where they go; not z
  double* new_rss = nullptr;    ///< m x b; may be rss. null: none
};

/// Checks them before a modification, and settles them after it.
class CarriedSides {
 public:
  /// Of b members, the largest of order n, which `task` modifies: task.sides becomes what a backend sees, as long as
  /// this lives. Throws not_finite, and overflow if a number is too large for the precision, with the member.
  CarriedSides(const GivenBatchSides& given, index_t n, index_t b, Precision precision, BatchTask& task);

  /// Finds the sums when `task` is done. Members with a pivot keep what they had, and all of them the rows of z beyond
  /// their orders (b).
  void settle(const BatchTask& task, const std::vector<index_t>& pivots, const std::vector<index_t>& orders) const;

 private:
  GivenBatchSides given_;
  index_t n_, b_;
  Precision precision_;
  std::vector<double> rest_;
};

/// Does the same where rows come, go or move. Rows of new_z beyond the new order of a member become 0.
class ReshapedSides {
 public:
  /// what.sides, of a change to R, becomes what a backend sees, as long as this lives. Throws what CarriedSides does,
  /// with "b" for Y.
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchInsertion& what);
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchRemoval& what);
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, BatchShift& what);

  /// Finds the sums, and fills up new_z, when the change is done. Members with a pivot, of which there are none where
  /// rows go, keep what they had.
  void settle(const std::vector<index_t>& pivots) const;

 private:
  ReshapedSides(const GivenBatchSides& given, const HeldBatch& R, index_t coming, index_t going);
  BatchSides of_backend();

  GivenBatchSides given_;
  index_t n_, coming_, going_;
  std::vector<index_t> orders_;  ///< before
  Precision precision_;
  std::vector<double> rest_;
};

}  // namespace gpucholmod
