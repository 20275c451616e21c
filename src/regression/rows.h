#pragma once

#include <cmath>
#include <vector>

#include "base/types.h"

/// Linear regression whose observations come and go: minimise sum w_i (y_i - x_i' beta)^2 + beta' diag(penalty) beta.
/// inst/design/regression.md derives the method. p: regressors, m: responses.
namespace gpucholmod::regression {

/// The observations, one in each column, as a modification takes V.
struct Rows {
  MatrixView<const double> x{};    ///< p x count
  MatrixView<const double> y{};    ///< m x count
  const double* weights = nullptr;  ///< weights, not negative; null: 1 each
  const double* ages = nullptr;     ///< time at which each observation came, on the clock of `now`; null: all came now
  double now = 0;

  index_t count() const { return x.cols; }
  /// Returns the weight of observation i, which is multiplied by exp(-1) in each unit of time since the observation
  /// came.
  double weight(index_t i) const {
    return (weights ? weights[i] : 1) * (ages ? std::exp(ages[i] - now) : 1);
  }
  Rows block(index_t first, index_t count) const {
    return {x.block(0, first, x.rows, count), y.block(0, first, y.rows, count), weights ? weights + first : nullptr,
            ages ? ages + first : nullptr, now};
  }
};

/// Holds what a regression keeps of its observations besides the factor R of X'WX + diag(penalty), which a Factor
/// holds.
struct Sides {
  index_t p = 0, m = 0;
  std::vector<double> z;    ///< R'^-1 X'WY, p x m
  std::vector<double> rss;  ///< residual sums of squares with the penalty's part, m
};

}  // namespace gpucholmod::regression
