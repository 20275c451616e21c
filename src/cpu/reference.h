#pragma once

#include "base/types.h"
#include "cpu/rotation.h"

namespace gpucholmod::cpu {

/// Rank-k modification by k n rotations: the method that every other one is tested against.
///
///   R   n x n, upper, positive diagonal. On exit R~ with R~'R~ = R'R + sigma V V'.
///   Vt  k x n, the transpose of V. Overwritten.
///
/// The k sweeps run side by side: pivot i is reached with all of V before pivot i + 1, which changes the order of
/// operations on no element, and makes a failing pivot the order of the first leading minor of A - VV' that is
/// not positive definite, as LAPACK's dpotrf reports it.
///
/// Returns the failing pivot (R and Vt are then partly modified), or -1.
/// Error: residual ratio < 30 (inst/design/accuracy.md). Reference: Walder (2010), CholeskyModify.
template <class T>
index_t reference(MatrixView<T> R, MatrixView<T> Vt, Sign sign, LoopOrder order, const Poll& poll);

/// Loop order b on its own, which also keeps the rotations: `rotations` holds n x k, entry (i, q) at i k + q.
template <class T>
index_t sweep_columns(MatrixView<T> R, MatrixView<T> Vt, Sign sign, Rotation<T>* rotations, const Poll& poll);

}  // namespace gpucholmod::cpu
