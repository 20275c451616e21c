#pragma once

#include "cuda/kernels/fill_triangle.h"

/// The right-hand sides that come along with a member of a batch. They become the last columns of the member, below
/// which there are no rows; Y' becomes further rows of V. The code is written over a class Team, as in member.h.
namespace gpucholmod::cuda {

/// Describes members of order n with m right-hand sides each. A "wide" member has all n + m columns.
template <class T>
struct BatchWide {
  index_t n, m, k;
  const T* R;        ///< packed triangles of order n
  T* wide;           ///< packed triangles of order n + m, of which the first n rows are used
  T* out;            ///< packed triangles of order n
  const double* V;   ///< columns, n x k for each member
  index_t V_stride;  ///< distance from one member to the next, or 0
  const double* Y;   ///< rows that belong to the right-hand sides, k x m for each member
  double* wide_V;    ///< columns of the wide members, (n + m) x k for each member
  double* z;         ///< right-hand sides, n x m for each member
  const int* shift;  ///< exponents, m a member: a column of z and its part of Y are times 2^shift while wide; null: 0
  const int* told;   ///< `pivots` of the BatchPass

  GPUCHOLMOD_HOST_DEVICE int shift_of(index_t member, index_t side) const {
    return shift ? shift[member * m + side] : 0;
  }
};

/// Computes wide <- [R z] and wide_V <- [V; Y'].
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void widen_member(const Team& team, const BatchWide<T>& of, index_t member) {
  const int n = int(of.n), all = int(of.n + of.m);
  const T* const R = of.R + member * words_of(n);
  const double *const z = of.z + member * n * of.m, *const V = of.V + member * of.V_stride,
               *const Y = of.Y + member * of.k * of.m;
  double* const wide_V = of.wide_V + member * all * of.k;
  fill_triangle(team, Numbers<T>{of.wide + member * words_of(all)}, all, n, [&](int i, int j) {
    return j < n ? double(R[row_of(n, i) + j]) : ldexp(z[i + index_t(j - n) * n], of.shift_of(member, j - n));
  });
  team.threads([&](int thread) {
    for (index_t q = 0; q < of.k; ++q)
      for (int j = thread; j < all; j += team.size())
        wide_V[j + q * all] = j < n ? V[j + q * n] : ldexp(Y[q + (j - n) * of.k], of.shift_of(member, j - n));
  });
}

/// Copies the modified R and z from the wide member to `out` and z. If the member has failed, copies the old R to `out`
/// and leaves z as it is.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void narrow_member(const Team& team, const BatchWide<T>& of, index_t member) {
  const int n = int(of.n), all = int(of.n + of.m);
  const bool failed = of.told[member] >= 0;
  const T *const R = of.R + member * words_of(n), *const wide = of.wide + member * words_of(all);
  double* const z = of.z + member * n * of.m;
  fill_triangle(team, Numbers<T>{of.out + member * words_of(n)}, n, n,
                [&](int i, int j) { return double(failed ? R[row_of(n, i) + j] : wide[row_of(all, i) + j]); });
  if (failed) return;
  team.threads([&](int thread) {
    for (int i = thread; i < n; i += team.size())
      for (int j = n; j < all; ++j)
        z[i + index_t(j - n) * n] = ldexp(double(wide[row_of(all, i) + j]), -of.shift_of(member, j - n));
  });
}

}  // namespace gpucholmod::cuda
