#pragma once

#include "regression/regression.h"

namespace gpucholmod::regression {

/// Regressions of windows of rows, and what is wanted of each.
struct Windows {
  Rows rows;                          ///< all of them; those of a window lie together
  std::vector<index_t> first, last;   ///< rows first .. last - 1 of each window, r windows
  double tolerance = 1e-7;            ///< solve()
};

/// One value for each window, or NaN where there is none; r x ..., column-major.
struct Path {
  double* coefficients;  ///< r x p m
  double* errors;        ///< standard errors, r x p m
  double* sigma;         ///< r x m
  double* r_squared;     ///< r x m
  double* used;          ///< observations of a weight that is not zero, r
  double* rank;          ///< r
};

/// Writes the path of the coefficients: each window begins with the factor of the one before it, where they share
/// rows, and is exact to what Account says.
void roll(const Windows& windows, const Request& request, const Path& path, const Poll& poll);

}  // namespace gpucholmod::regression
