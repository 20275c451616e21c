#pragma once

#include "modify/choice.h"
#include "modify/place.h"

namespace gpucholmod {

/// Modifies a Cholesky factor by k columns: everything that a caller needs of the core.
///
///   R    n x n, the factor of A: upper with A = R'R, or (uplo lower) lower with A = RR'. The other triangle is
///        never read.
///   V    n x k, W = diag(request.weights). Does not change. May be in the memory of the GPU that holds the factor.
///   out  on success the factor of scale^2 (A + V W V' / scale^2), scale = request.scale, with positive diagonal, its
///        other triangle zero (in place: as it was); after a throw or with a failing pivot, unspecified.
///   S    double or float, the scalar that R, V and out are stored in (on a GPU: V); the computation has
///        request.precision.
///
/// In place, finds out whatever can be wrong with R before it writes anything, at the price of one more reading of R. A
/// dry run finds out whether a downdate is possible (unless keep_intact is false), and, near the end of the range,
/// whether an entry of the diagonal vanishes.
///
/// Throws bad_diagonal also if an entry of the diagonal of the result would not be a normal number of S.
///
/// A downdate that would leave A - VV' not positive definite is not an error: outcome.pivot is then the failing pivot.
/// Throws not_finite, bad_diagonal, bad_argument (methods blocked and stream may find errors in R itself only while
/// they compute); backend_unavailable, out_of_memory, cuda_failure, overflow; and whatever `poll` throws.
template <class S>
Outcome modify(const Place<S>& place, const typename Place<S>::Columns& V, const Request& request, const Poll& poll);

/// Describes what modify() would do.
struct Plan {
  Choice choice;
  index_t panels = 0;       ///< number of panels of methods stream and resident
  double device_bytes = 0;  ///< device memory that these methods would hold at once
  int threads = 1;          ///< number of CPU threads that compute or move data
  /// The instructions of the CPU's kernels; automatic: the CPU does not compute by blocks
  Instructions instructions = Instructions::automatic;
};
Plan plan(const Request& request, Where where);

}  // namespace gpucholmod
