#pragma once

#include <algorithm>

#include "base/types.h"

namespace gpucholmod {

/// What the triangle of a factor that is never read looks like, in a few places.
enum class OtherTriangle {
  zero,
  filled,      ///< it is not zero
  transposed,  ///< it is not zero, and the triangle that is read is: a factor of the other kind
  symmetric    ///< it mirrors the triangle that is read: the matrix, not its factor
};

/// Looks beside the diagonal, and along the first row and column, in at most 64 places each.
template <class S>
OtherTriangle look_at_other_triangle(MatrixView<const S> R, Uplo uplo) {
  constexpr index_t most = 64;
  bool zero = true, own_zero = true, mirrored = true;
  const auto look = [&](index_t i, index_t j) {  // i > j
    S other = R(i, j), own = R(j, i);
    if (uplo == Uplo::lower) std::swap(other, own);
    zero &= other == 0;
    own_zero &= own == 0;
    mirrored &= other == own;
  };
  const index_t step = (R.cols + most - 1) / most;
  for (index_t i = 1; i < R.cols; i += std::max<index_t>(1, step)) {
    look(i, i - 1);
    look(i, 0);
  }
  if (zero) return OtherTriangle::zero;
  return mirrored ? OtherTriangle::symmetric : own_zero ? OtherTriangle::transposed : OtherTriangle::filled;
}

}  // namespace gpucholmod
