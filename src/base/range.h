#pragma once

#include <cmath>
#include <limits>

#include "base/types.h"

/// What is known of the sizes of a factor's entries without looking at them, so that only numbers near the ends of the
/// range of T, in which a factor is stored, are looked at and treated with care.
namespace gpucholmod {

/// Bounds of the entries of a factor.
struct Range {
  double most = 0;   ///< no entry is larger
  double least = 0;  ///< no entry of the diagonal is smaller
};

/// Is true if an entry of the diagonal that is no smaller than `least`, but for rounding, may not be a normal number of
/// T: then it has lost digits, and its inverse may be infinite.
template <class T>
bool may_vanish(double least) {
  return least < 2 * double(std::numeric_limits<T>::min());
}

/// The share of an entry r of the diagonal that remains at least when `removed` columns of V are taken away in scalars
/// of T. A step leaves sqrt((r - |v|)(r + |v|)), where r - |v| is a number of T, so at least half a unit in the last
/// place of r: more than sqrt(eps) / 2 of it. The CPU's kernels take up to four columns away by a step each, and more
/// of them by one.
template <class T>
double share_left(index_t removed) {
  constexpr int halvings = std::numeric_limits<T>::digits / 2 + 1;
  return std::ldexp(1.0, -halvings * int(removed <= 4 ? removed : 1));
}

}  // namespace gpucholmod
