#pragma once

#include "modify/choice.h"
#include "modify/place.h"

namespace gpucholmod {

/// The rank-k modification of a Cholesky factor: everything a caller needs of the core.
///
///   R    n x n, the factor of A: upper with A = R'R, or (uplo lower) lower with A = RR'. The other triangle is
///        never read.
///   V    n x k, W = diag(request.weights). Not changed. For a factor on a GPU it may be in the memory of that.
///   out  on success the factor of scale^2 (A + V W V' / scale^2), scale = request.scale, with positive diagonal, its
///        other triangle zero (in place: as it was); after a throw or with a failing pivot, unspecified.
///   S    double or float, what R, V and out are stored in (on a GPU: V); request.precision is what is computed in.
///
/// In place, whatever can be wrong with R is found out before anything is written, at the price of one more reading of
/// R; whether a downdate can be done too (unless keep_intact is false), and, near the end of the range, whether an
/// entry of the diagonal vanishes, by a run that writes nothing.
///
/// Throws bad_diagonal also where an entry of the diagonal of the result would be no normal number of S.
///
/// A downdate that would leave A - VV' not positive definite is not an error here: outcome.pivot tells. Throws Error:
/// not_finite, bad_diagonal, bad_argument (what is wrong with R itself, methods blocked and stream may find out while
/// they compute); backend_unavailable, out_of_memory, cuda_failure, overflow; and whatever `poll` throws.
template <class S>
Outcome modify(const Place<S>& place, const typename Place<S>::Columns& V, const Request& request, const Poll& poll);

/// What modify() would do.
struct Plan {
  Choice choice;
  index_t panels = 0;       ///< of methods stream and resident
  double device_bytes = 0;  ///< that these would hold at once
  int threads = 1;          ///< of the CPU, to compute with or to move data
  Instructions instructions = Instructions::automatic;  ///< automatic: the CPU does not compute by blocks
};
Plan plan(const Request& request, Where where);

}  // namespace gpucholmod
