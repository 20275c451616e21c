#pragma once

#include "regression/regression.h"

namespace gpucholmod::regression {

/// Describes windows of rows, for each of which a regression is computed.
struct Windows {
  Rows rows;                          ///< all rows; the rows of a window are contiguous
  std::vector<index_t> first, last;   ///< rows first .. last - 1 of each window, r windows
  double tolerance = 1e-7;            ///< tolerance of solve()
};

/// The results of the windows: one value for each window, or NaN if there is none; r x ..., column-major.
struct Path {
  double* coefficients;  ///< r x p m
  double* errors;        ///< standard errors, r x p m
  double* sigma;         ///< r x m
  double* r_squared;     ///< r x m
  double* used;          ///< number of observations whose weight is not zero, r
  double* rank;          ///< number of independent columns, r
};

/// Writes the path of the coefficients. Each window begins with the factor of the window before, if the two share rows;
/// Account bounds the error of each window.
void roll(const Windows& windows, const Request& request, const Path& path, const Poll& poll);

}  // namespace gpucholmod::regression
