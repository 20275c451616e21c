#pragma once

#include <cmath>
#include <vector>

#include "base/host_device.h"
#include "base/types.h"

namespace gpucholmod {

/// The reflection of a plane (row i, row i + 1 of a factor) that takes (x, y) to (rho, 0), rho = sqrt(x^2 + y^2):
///
///   [ x~ ]   [ c   s ] [ x ]
///   [ y~ ] = [ s  -c ] [ y ]      c = x / rho, s = y / rho
///
/// If y > 0, as on the diagonal of a factor, then s > 0. So every new diagonal entry is positive without further ado
/// when a row or column moves.
template <class T>
struct Reflection {
  T c, s;

  /// Returns the reflection that takes (x, y) to (rho, 0), and sets x to rho. Squares nothing, so nothing over- or
  /// underflows on the way.
  static GPUCHOLMOD_HOST_DEVICE Reflection of(T& x, T y) {
    const T rho = hypot(x, y);
    const Reflection made{x / rho, y / rho};
    x = rho;
    return made;
  }
  GPUCHOLMOD_HOST_DEVICE void apply(T& x, T& y) const {
    const T was = x;
    x = c * was + s * y;
    y = s * was - c * y;
  }
};

/// Returns the reflections that fold a column's entries below row `to` into row `to`, from row `from` upwards; the
/// first reflection is of rows from - 1 and from. Overwrites x (from + 1): x[to] becomes the new entry, rows to + 1 ..
/// from - 1 hold norms on the way.
template <class T>
std::vector<Reflection<T>> fold_up(T* x, index_t from, index_t to) {
  std::vector<Reflection<T>> all;
  for (index_t i = from; i > to; --i) all.push_back(Reflection<T>::of(x[i - 1], x[i]));
  return all;
}

/// Applies reflections to the rows of z, in the order in which they were found: to rows i and i + 1 with i ascending
/// from `first`, or, if `back`, to rows i - 1 and i with i descending from `first`.
template <class T>
void reflect_rows(const std::vector<Reflection<T>>& all, index_t first, bool back, MatrixView<double> z) {
  for (index_t s = 0; s < z.cols; ++s) {
    double* x = z.col(s) + first - (back ? 1 : 0);
    for (const Reflection<T>& turn : all) {
      Reflection<double>{double(turn.c), double(turn.s)}.apply(x[0], x[1]);
      x += back ? -1 : 1;
    }
  }
}

}  // namespace gpucholmod
