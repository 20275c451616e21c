#pragma once

#include <atomic>
#include <vector>

#include "base/task.h"

/// The factor of A where rows and columns of A come, go or move. R and what becomes of it are upper, column-major; what
/// is below their diagonals is neither read nor written. `out` may be R's own memory, with the same leading dimension.
/// In place, what `poll` throws leaves R half done; `begun` becomes true before. Of `task` its threads, instructions
/// (resolved) and right count. Throws bad_diagonal where an entry of the new diagonal would be no normal number of T,
/// in place before R changes.
///
/// Reference: inst/design/reshape.md. Error: the residual ratio of a modification.
namespace gpucholmod::cpu {

/// Without rows and columns `gone` of A, in ascending order. out: m x m, m = n - |gone|.
///
///   A[keep, keep] = R[keep, keep]'R[keep, keep] + R[gone, keep]'R[gone, keep]
template <class T>
void remove(MatrixView<const T> R, const std::vector<index_t>& gone, MatrixView<T> out, const Task& task,
            const Poll& poll, std::atomic<bool>& begun);

/// S22 (p x p, upper) <- the factor of A22 - S12'S12, A22 being S22 as it is, which is finite. Returns the first pivot
/// that is not positive, or -1. Where S12 is so large that the squares of a column overflow, or S12 itself has, that
/// column's pivot is one: A22 is no larger than the range of numbers.
index_t factorise_inserted(MatrixView<const double> S12, MatrixView<double> S22);

/// With p rows and columns more, the first of which is number `at` then. X (n + p x p): their columns of the new A, of
/// which rows at .. at + p - 1 count in the upper triangle. R is divided by 2^e, and so is what comes of it: X and the
/// right-hand sides are not. out: n + p. Returns the first pivot, of the new matrix, that is not positive, or -1; in
/// place, R is as it was then.
///
///   S12 = R11'^-1 A12     S22'S22 = A22 - S12'S12     S23 = S22'^-1 (A23 - S12'R13)
///   R33 <- the factor of R33'R33 - S23'S23
template <class T>
index_t insert(MatrixView<const T> R, index_t at, MatrixView<const double> X, int e, MatrixView<T> out,
               const Task& task, const Poll& poll, std::atomic<bool>& begun);

/// With row and column `from` of A moved to be number `to`, those in between one step towards where it was. By
/// reflections: every factor has such another.
template <class T>
void shift(MatrixView<const T> R, index_t from, index_t to, MatrixView<T> out, const Task& task, const Poll& poll,
           std::atomic<bool>& begun);

}  // namespace gpucholmod::cpu
