#pragma once

#include <cmath>

#include "base/types.h"

/// In which order a modification takes the columns of V where they have weights, and what it multiplies each by: of
/// s A + V diag(w) V' those with w >= 0 are added first, as then no matrix on the way is indefinite unless the result
/// is; those with w < 0 are taken away behind.
namespace gpucholmod {

/// Calls f(q, w) for the k columns, in that order; w = weight(q).
template <class Weight, class F>
void each_signed_column(index_t k, Weight&& weight, F&& f) {
  for (const bool removes : {false, true})
    for (index_t q = 0; q < k; ++q)
      if (const double w = weight(q); (w < 0) == removes) f(q, w);
}

/// What a column of weight w is multiplied by: |w|^(1/2) / root, where `root` is that of s.
inline double multiple_of_column(double w, double root) {
  const double size = std::abs(w);
  return size == 1 && root == 1 ? 1 : std::sqrt(size) / root;
}

}  // namespace gpucholmod
