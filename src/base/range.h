#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/factor_io.h"

/// What is known of the sizes of a factor's entries without looking at them, so that only numbers near the ends of the
/// range of T, in which a factor is stored, are looked at and treated with care.
namespace gpucholmod {

/// Bounds of the entries of a factor.
struct Range {
  double most = 0;   ///< no column has a larger norm
  double least = 0;  ///< no entry of the diagonal is smaller
};

/// Is true if an entry of the diagonal that is no smaller than `least`, but for rounding, may not be a normal number of
/// T: then it has lost digits, and its inverse may be infinite.
template <class T>
bool may_vanish(double least) {
  return least < 2 * double(std::numeric_limits<T>::min());
}

/// The share of an entry r of the diagonal that remains at least when `removed` columns of V are taken away in scalars
/// of T. A step leaves the root of r^2 - |v|^2, or of (r - |v|)(r + |v|), where r^2 and |v|^2, or r and |v|, are
/// different numbers of T, so at least half a unit in the last place of r^2, or of r: at least sqrt(eps) / 2 of r. The
/// CPU's kernels take up to four columns away by a step each, and more of them by one.
template <class T>
double share_left(index_t removed) {
  constexpr int halvings = std::numeric_limits<T>::digits / 2 + 1;
  return std::ldexp(1.0, -halvings * int(removed <= 4 ? removed : 1));
}

/// Returns true if a result that is multiplied by `scale` needs no care for that.
inline bool is_moderate(double scale) { return scale > 0x1p-20 && scale < 0x1p20; }

/// What a modification makes of the sizes of a factor's entries, by what is known of them.
struct Prospect {
  Range range;    ///< afterwards
  int e;          ///< with numbers divided by 2^e nothing needs scaling
  bool rescale;   ///< numbers may need scaling, or become too large for T
  bool vanishes;  ///< an entry of the diagonal may become too small for T
};

/// Of a factor of scalars T, computed with in scalars C: `added` columns of V come, `removed` go, none of their entries
/// is larger than `largest`, and the result is multiplied by `scale`. The squared norm of column j of a factor of A is
/// A_jj.
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
