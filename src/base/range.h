#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/factor_io.h"

/// Bounds of the sizes of a factor's entries that are known without looking at the entries. T is the scalar in which
/// the factor is stored. Only numbers near the ends of T's range are looked at and treated with care.
namespace gpucholmod {

/// The bounds of the entries of a factor.
struct Range {
  double most = 0;   ///< upper bound of the norms of columns
  double least = 0;  ///< lower bound of the entries of the diagonal
};

/// Returns whether an entry of the diagonal that is no smaller than `least`, but for rounding, may be no normal number
/// of T. Such an entry has lost digits, and its inverse may be infinite.
template <class T>
bool may_vanish(double least) {
  return least < 2 * double(std::numeric_limits<T>::min());
}

/// Returns the least share of an entry r of the diagonal that remains when `removed` columns of V are taken away in
/// scalars of T. A step leaves the root of r^2 - |v|^2, or of (r - |v|)(r + |v|). Here r^2 and |v|^2, or r and |v|, are
/// different numbers of T, so they differ by at least half a unit in the last place of r^2, or of r. Hence at least
/// sqrt(eps) / 2 of r remains. The CPU's kernels take up to four columns away by a step each, and more columns by one
/// step.
template <class T>
double share_left(index_t removed) {
  constexpr int halvings = std::numeric_limits<T>::digits / 2 + 1;
  return std::ldexp(1.0, -halvings * int(removed <= 4 ? removed : 1));
}

/// Returns whether `scale` is so near to 1 that a result needs no care when it is multiplied by `scale`.
inline bool is_moderate(double scale) { return scale > 0x1p-20 && scale < 0x1p20; }

/// Predicts the sizes of a factor's entries after a modification, from their bounds before.
struct Prospect {
  Range range;    ///< bounds after the modification
  int e;          ///< exponent: numbers divided by 2^e need no scaling
  bool rescale;   ///< True if numbers may need scaling, or become too large for T
  bool vanishes;  ///< True if an entry of the diagonal may become too small for T
};

/// Returns the prospect of a factor of scalars T that is computed with in scalars C: `added` columns of V are added,
/// `removed` columns are taken away, none of their entries is larger than `largest`, and the result is multiplied by
/// `scale`. Uses that the squared norm of column j of a factor of A is A_jj.
template <class T, class C = T>
Prospect prospect(const Range& range, double largest, index_t added, index_t removed, double scale) {
  const double top = double(std::numeric_limits<T>::max());
  const double most = std::hypot(range.most, largest * std::sqrt(double(added)));
  Prospect ahead;
  ahead.range = {scale * most, scale * range.least * share_left<T>(removed)};
  ahead.e = exponent_below<C>(std::max(range.most, largest));
  ahead.rescale = ahead.e != 0 || ahead.range.most > top || most > top || !is_moderate(scale);
  ahead.vanishes = (scale < 1 || removed > 0) && may_vanish<T>(ahead.range.least);
  return ahead;
}

}  // namespace gpucholmod
