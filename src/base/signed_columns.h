#pragma once

#include <cmath>

#include "base/types.h"

/// The order in which a modification takes columns of V that have weights, and the multiple that it takes of each. Of
/// s A + V diag(w) V', columns with w >= 0 are added first, because then no matrix on the way is indefinite unless the
/// result is; columns with w < 0 are taken away last.
namespace gpucholmod {

/// Calls f(q, w), with w = weight(q), for the k columns in that order.
template <class Weight, class F>
void each_signed_column(index_t k, Weight&& weight, F&& f) {
  for (const bool removes : {false, true})
    for (index_t q = 0; q < k; ++q)
      if (const double w = weight(q); (w < 0) == removes) f(q, w);
}

/// Returns the multiple that is taken of a column of weight w: |w|^(1/2) / root, with root = s^(1/2).
inline double multiple_of_column(double w, double root) {
  const double size = std::abs(w);
  return size == 1 && root == 1 ? 1 : std::sqrt(size) / root;
}

}  // namespace gpucholmod
