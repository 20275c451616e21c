#pragma once

#include <atomic>
#include <vector>

#include "base/task.h"

/// The factor of A when rows and columns of A are inserted, deleted or moved. R and the new factor are upper,
/// column-major; the entries below their diagonals are neither read nor written. `out` may be R's own memory, with the
/// same leading dimension. In place, an exception of `poll` leaves R half modified; `begun` becomes true before R
/// changes. Of `task` only threads, instructions (resolved) and right count. insert() and shift() throw bad_diagonal,
/// before `out` changes, if they find that an entry of the new diagonal would not be a normal number of T. The caller
/// has to check the entries of a modified trailing part, and those of shift() to a later place in other memory.
///
/// Reference: inst/design/reshape.md. Error: the residual ratio of a modification.
namespace gpucholmod::cpu {

/// Computes the factor of A without rows and columns `gone`, which ascend. out: m x m, m = n - |gone|.
///
///   A[keep, keep] = R[keep, keep]'R[keep, keep] + R[gone, keep]'R[gone, keep]
template <class T>
void remove(MatrixView<const T> R, const std::vector<index_t>& gone, MatrixView<T> out, const Task& task,
            const Poll& poll, std::atomic<bool>& begun);

/// Computes S22 (p x p, upper) <- the factor of A22 - S12'S12; on entry S22 holds A22, which is finite. Returns the
/// first pivot that is not positive, or -1. If S12 has overflowed, or the squares of a column of S12 overflow, the
/// column's pivot counts as not positive, as A22 is within the range of numbers.
index_t factorise_inserted(MatrixView<const double> S12, MatrixView<double> S22);

/// Computes the factor of A with p more rows and columns, the first of which becomes number `at`. X (n + p x p): the
/// new columns of the new A, of whose rows at .. at + p - 1 only the upper triangle counts. R is divided by 2^e, and so
/// is the new factor; X and the right-hand sides are not. out: order n + p. Returns the first pivot of the new matrix
/// that is not positive, or -1; after a failure in place, R is as it was.
///
///   S12 = R11'^-1 A12     S22'S22 = A22 - S12'S12     S23 = S22'^-1 (A23 - S12'R13)
///   R33 <- the factor of R33'R33 - S23'S23
template <class T>
index_t insert(MatrixView<const T> R, index_t at, MatrixView<const double> X, int e, MatrixView<T> out,
               const Task& task, const Poll& poll, std::atomic<bool>& begun);

/// Computes the factor of A with row and column `from` moved to number `to`; the rows and columns in between move one
/// step towards `from`. Uses reflections: the new factor exists for every R.
template <class T>
void shift(MatrixView<const T> R, index_t from, index_t to, MatrixView<T> out, const Task& task, const Poll& poll,
           std::atomic<bool>& begun);

}  // namespace gpucholmod::cpu
