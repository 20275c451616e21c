#pragma once

#include <vector>

#include "regression/shift.h"

namespace gpucholmod::regression {

/// Returns z and rss of these rows, shifted, and R (p x p, upper, what is below the diagonal zero, the diagonal not
/// negative), by a QR decomposition of the rows: no normal equations. penalty: p numbers, or null. With fewer
/// independent rows than columns, entries of the diagonal are zero, or as small as rounding leaves them.
Sides decompose(const Rows& rows, const double* penalty, const Shift& shift, MatrixView<double> R);

/// The same of rows that come to what R, z and rss say, whose squares are multiplied by `forget` beforehand.
/// Replaces all of them, in O(p^3) operations. R need not have a positive diagonal.
void decompose_onto(const Rows& rows, double forget, MatrixView<double> R, Sides& sides);

/// What a regression says, where some columns of X may depend on those before them.
struct Solution {
  std::vector<index_t> columns;  ///< that are independent, in their order
  std::vector<double> beta;      ///< p x m; NaN for columns that depend on others
  std::vector<double> rss;       ///< m
  std::vector<double> inverse;   ///< r x r upper: R^-1 of the independent columns; empty if it is not wanted
  std::vector<double> effects;   ///< r x m: z of the independent columns
};

/// Returns the solution. A column depends on those before it where less than `tolerance` of its norm is independent of
/// them, and is then left out, as LINPACK's dqrdc2 does for lm() in R.
Solution solve(MatrixView<const double> R, const Sides& sides, double tolerance, bool with_inverse);

}  // namespace gpucholmod::regression
