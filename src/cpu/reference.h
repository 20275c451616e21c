#pragma once

#include "base/types.h"
#include "cpu/rotation.h"

namespace gpucholmod::cpu {

/// Modifies R by rank k with k n rotations: the method against which all other methods are tested.
///
///   R   n x n, upper, positive diagonal. On exit R~ with R~'R~ = R'R + sigma V V'.
///   Vt  k x n, the transpose of V. Overwritten.
///
/// The k sweeps run side by side: all columns of V reach pivot i before any column reaches pivot i + 1. The order of
/// operations on each element does not change, and the failing pivot is the last row of the first leading minor of
/// A - VV' that is not positive definite (LAPACK's dpotrf reports this pivot plus 1).
///
/// Returns the failing pivot (R and Vt are then partly modified), or -1.
/// Error: residual ratio < 30 (inst/design/accuracy.md). Reference: Walder (2010), CholeskyModify.
template <class T>
index_t reference(MatrixView<T> R, MatrixView<T> Vt, Sign sign, LoopOrder order, const Poll& poll);

/// Runs loop order b and keeps the rotations: `rotations` holds n x k, entry (i, q) at i k + q. Returns the failing
/// pivot, or -1.
template <class T>
index_t sweep_columns(MatrixView<T> R, MatrixView<T> Vt, Sign sign, Rotation<T>* rotations, const Poll& poll);

}  // namespace gpucholmod::cpu
