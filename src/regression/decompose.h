#pragma once

#include <vector>

#include "regression/shift.h"

namespace gpucholmod::regression {

/// Returns z and rss of the shifted rows, and writes R (p x p, upper, zeros below the diagonal, the diagonal not
/// negative), by a QR decomposition of the rows, without normal equations. penalty: p numbers, or null. With fewer
/// independent rows than columns, entries of the diagonal are zero, or as small as rounding leaves them.
Sides decompose(const Rows& rows, const double* penalty, const Shift& shift, MatrixView<double> R);

/// Adds rows to R, z and rss, whose squares are multiplied by `forget` beforehand, by a QR decomposition of [R; rows]
/// in O(p^3) operations. R need not have a positive diagonal.
void decompose_onto(const Rows& rows, double forget, MatrixView<double> R, Sides& sides);

/// The solution of a regression in which columns of X may depend on the columns before them.
struct Solution {
  std::vector<index_t> columns;  ///< numbers of the independent columns, ascending
  std::vector<double> beta;      ///< p x m; NaN for columns that depend on others
  std::vector<double> rss;       ///< m
  std::vector<double> inverse;   ///< r x r upper: R^-1 of the independent columns; empty if not wanted
  std::vector<double> effects;   ///< r x m: z of the independent columns
};

/// Returns the solution. A column is left out if less than `tolerance` of its norm is independent of the columns
/// before, as LINPACK's dqrdc2 leaves out columns for lm() in R.
Solution solve(MatrixView<const double> R, const Sides& sides, double tolerance, bool with_inverse);

}  // namespace gpucholmod::regression
