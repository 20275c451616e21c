#pragma once

#include <cmath>

#include "base/host_device.h"
#include "base/types.h"

namespace gpucholmod {

/// The transform of the plane (row of R, row of V') that moves one entry of V into the diagonal of R.
///
///   update    [ r~ ]   [  c  s ] [ r ]      a Givens rotation, c^2 + s^2 = 1
///             [ v~ ] = [ -s  c ] [ v ]
///
///   downdate  r~ = (r - s v) / c            a hyperbolic rotation in Chambers' mixed form:
///             v~ = c v - s r~               the second line uses the *new* r
///
/// References: Walder (2010), Compute and Apply; Chambers (1971) JASA 66, 744-748, for the mixed form.
/// The paper's Apply divides by c for an update too. The division loses accuracy if A is ill-conditioned
/// (inst/design/accuracy.md), so updates here use the true rotation.
template <class T>
struct Rotation {
  T c;
  T s;
  T inv_c;  ///< 1 / c, used by downdates only

  static GPUCHOLMOD_HOST_DEVICE Rotation identity() { return {T(1), T(0), T(1)}; }
};

/// Computes the rotation that takes (r, v) to (rho, 0), rho = sqrt(r^2 + sigma v^2) (the paper's Compute); r > 0
/// becomes rho. Neither squares nor sums of squares of r and v are formed, so nothing over- or underflows on
/// the way. Returns false, and changes nothing, if rho would not be a positive number.
template <Sign sign, class T>
inline bool compute(T& r, T v, Rotation<T>& g) {
  if (v == 0) {  // the identity exactly, although sqrt(r) sqrt(r) may differ from r
    g = Rotation<T>::identity();
    return true;
  }
  T rho;
  if (sign == Sign::update) {
    rho = std::hypot(r, v);
    g = {r / rho, v / rho, T(1)};
  } else {
    if (!(r > std::abs(v))) return false;
    rho = std::sqrt(r - v) * std::sqrt(r + v);
    g = {rho / r, v / r, r / rho};
  }
  r = rho;
  return true;
}

/// Applies one rotation to one element of R and the entry of V below it (the paper's Apply).
template <Sign sign, class T>
GPUCHOLMOD_HOST_DEVICE void apply(const Rotation<T>& g, T& r, T& v) {
  const T r_old = r;
  if (sign == Sign::update) {
    r = g.c * r_old + g.s * v;
    v = g.c * v - g.s * r_old;
  } else {
    r = (r_old - g.s * v) * g.inv_c;
    v = g.c * v - g.s * r;
  }
}

}  // namespace gpucholmod
