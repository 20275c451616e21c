#pragma once

#include <cmath>
#include <vector>

#include "base/types.h"

/// Linear regression whose observations come and go: minimise sum w_i (y_i - x_i' beta)^2 + beta' diag(penalty) beta.
/// inst/design/regression.md derives what is done here. p: regressors, m: responses.
namespace gpucholmod::regression {

/// Observations, one in each column, as a modification takes them for V.
struct Rows {
  MatrixView<const double> x{};    ///< p x count
  MatrixView<const double> y{};    ///< m x count
  const double* weights = nullptr;  ///< not negative; null: 1 each
  const double* ages = nullptr;     ///< when each observation came, on the clock of `now`; null: all of them now
  double now = 0;

  index_t count() const { return x.cols; }
  /// Returns the weight of observation i, by which exp(-1) is left of a unit of time ago.
  double weight(index_t i) const {
    return (weights ? weights[i] : 1) * (ages ? std::exp(ages[i] - now) : 1);
  }
  Rows block(index_t first, index_t count) const {
    return {x.block(0, first, x.rows, count), y.block(0, first, y.rows, count), weights ? weights + first : nullptr,
            ages ? ages + first : nullptr, now};
  }
};

/// What a regression keeps of its observations: the factor R of X'WX + diag(penalty), which a Factor holds, and
/// this.
struct Sides {
  index_t p = 0, m = 0;
  std::vector<double> z;    ///< R'^-1 X'WY, p x m
  std::vector<double> rss;  ///< residual sums of squares with the penalty's part, m
};

}  // namespace gpucholmod::regression
