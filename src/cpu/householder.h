#ifndef GPUCHOLMOD_CPU_HOUSEHOLDER_H
#define GPUCHOLMOD_CPU_HOUSEHOLDER_H

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/request.h"
#include "core/tuning.h"
#include "cpu/eigen.h"

namespace gpucholmod::cpu {

constexpr int NB = tuning::blocked_rows;
constexpr int QB = 4;  // V is padded to a multiple of QB rows

/// ||v||, v of length k, without over- or underflow; the same bits, but for the exponent, at any scale of v.
template <class T>
inline T norm2(const T* v, index_t k) {
  using limits = std::numeric_limits<T>;
  T sum = 0;
  for (index_t q = 0; q < k; ++q) sum += v[q] * v[q];
  if (sum > limits::min() / limits::epsilon() && sum <= limits::max()) return std::sqrt(sum);
  T largest = 0;
  for (index_t q = 0; q < k; ++q) largest = std::max(largest, std::abs(v[q]));
  if (largest == 0) return 0;
  const int e = std::ilogb(largest);
  sum = 0;
  for (index_t q = 0; q < k; ++q) {
    const T scaled = std::scalbn(v[q], -e);
    sum += scaled * scaled;
  }
  return std::scalbn(std::sqrt(sum), e);
}

/// The transform H of one block of NB rows, in a form that columns to its right can be multiplied by.
/// Points into memory of `words(kp)` entries; kp is k rounded up to a multiple of QB.
template <class T>
struct BlockReflector {
  T* Y;         ///< kp x NB: y_i in column i, zero-padded
  T* Yt;        ///< NB x kp: its transpose
  T* L;         ///< NB x NB: strictly lower part of Y'Y
  T* inv_tau;   ///< NB: 1 / tau_i, tau_i = rho_i / (r_i + rho_i)
  T* inv_ctau;  ///< NB: 1 / (1 - tau_i)

  static index_t words(index_t kp) { return 2 * kp * NB + NB * NB + 2 * NB; }
  static BlockReflector at(T* memory, index_t kp) {
    T* L = memory + 2 * kp * NB;
    return {memory, memory + kp * NB, L, L + NB * NB, L + NB * NB + NB};
  }
};

/// Diagonal kernel: find H for one block of m <= NB rows and apply it to the block itself.
///
///        [ R ]  m x m, upper     [ R~ ]        H' S H = S,  S = diag(I, sigma I)
///    H . [   ]                 = [    ]
///        [ V ]  k x m            [ 0  ]
///
/// V has leading dimension kp and zeros in rows k .. kp - 1. The columns of V are left as they were when their
/// pivot was reached. Row i, with r = R_ii, v = V(:, i):
///   rho = sqrt(r^2 + sigma ||v||^2),  y = v / (r + rho),  tau = rho / (r + rho)
///   R~_i = (R_i + sigma y'V) / tau - R_i
///   V <- V - y (R~_i + R_i)               update
///   V <- V - y (R~_i + y'V) / (1 - tau)   downdate, from the *new* row, as in Chambers' mixed rotations
/// Returns the first i with r^2 + sigma ||v||^2 not positive, or -1.
template <Sign sign, class T>
index_t find_reflector(MatrixView<T> R, T* V, index_t k, index_t kp, BlockReflector<T> H) {
  constexpr T sigma = sign == Sign::update ? T(1) : T(-1);
  const index_t m = R.rows;
  std::fill_n(H.Y, BlockReflector<T>::words(kp), T(0));
  for (index_t i = 0; i < m; ++i) {
    const T r = R(i, i);
    const T* v = V + i * kp;
    const T nv = norm2(v, k);
    if (sign == Sign::downdate && !(r > nv)) return i;
    const T rho = nv == 0                ? r
                  : sign == Sign::update ? std::hypot(r, nv)
                                         : std::sqrt(r - nv) * std::sqrt(r + nv);
    T* y = H.Y + i * kp;
    for (index_t q = 0; q < k; ++q) H.Yt[q * NB + i] = y[q] = v[q] / (r + rho);
    H.inv_tau[i] = (r + rho) / rho;
    H.inv_ctau[i] = (r + rho) / r;
    R(i, i) = rho;
    for (index_t j = i + 1; j < m; ++j) {
      T* vj = V + j * kp;
      T yv = 0;
      for (index_t q = 0; q < k; ++q) yv += y[q] * vj[q];
      const T old = R(i, j);
      R(i, j) = (old + sigma * yv) * H.inv_tau[i] - old;
      const T z = sign == Sign::update ? R(i, j) + old : (R(i, j) + yv) * H.inv_ctau[i];
      for (index_t q = 0; q < k; ++q) vj[q] -= y[q] * z;
    }
    for (index_t l = 0; l < i; ++l) {
      T yy = 0;
      for (index_t q = 0; q < k; ++q) yy += y[q] * H.Y[l * kp + q];
      H.L[i + l * NB] = yy;
    }
  }
  return -1;
}

/// Tail kernel: [ R; V ] <- H [ R; V ] for C columns to the right of the block.
///
///   R  NB x C, leading dimension ldr;   V  kp x C, leading dimension kp
///   T1 = diag(tau) + sigma L;  X = T1^-1 (R + sigma Y'V);  R~ = X - R
///   update    V <- V - Y X
///   downdate  V <- V - Y Z,  Z = T2^-1 (R~ + Y'V),  T2 = diag(1 - tau) + L
template <Sign sign, int C, class T>
inline void apply_reflector(const BlockReflector<T>& H, T* R, index_t ldr, T* V, index_t k, index_t kp) {
  using Rows = Eigen::Array<T, NB, 1>;
  using Chunk = Eigen::Array<T, QB, 1>;
  constexpr T sigma = sign == Sign::update ? T(1) : T(-1);

  Rows yv[C];
  for (int c = 0; c < C; ++c) yv[c].setZero();
  for (index_t q = 0; q < k; ++q) {
    const Rows y = Eigen::Map<const Rows>(H.Yt + q * NB);
    for (int c = 0; c < C; ++c) yv[c] += y * V[q + c * kp];
  }

  Rows x[C];
  for (int c = 0; c < C; ++c) x[c] = Eigen::Map<Rows>(R + c * ldr) + sigma * yv[c];
  for (int i = 0; i < NB; ++i)
    for (int c = 0; c < C; ++c) {
      T sum = x[c][i];
      for (int l = 0; l < i; ++l) sum -= sigma * H.L[i + l * NB] * x[c][l];
      x[c][i] = sum * H.inv_tau[i];
    }
  for (int c = 0; c < C; ++c) {
    Eigen::Map<Rows> r(R + c * ldr);
    r = x[c] - r;
    if (sign == Sign::downdate) x[c] = r + yv[c];
  }
  if (sign == Sign::downdate)
    for (int i = 0; i < NB; ++i)
      for (int c = 0; c < C; ++c) {
        T sum = x[c][i];
        for (int l = 0; l < i; ++l) sum -= H.L[i + l * NB] * x[c][l];
        x[c][i] = sum * H.inv_ctau[i];
      }

  for (index_t q = 0; q < kp; q += QB)
    for (int c = 0; c < C; ++c) {
      Eigen::Map<Chunk> v(V + q + c * kp);
      Chunk sum = v;
      for (int i = 0; i < NB; ++i) sum -= Eigen::Map<const Chunk>(H.Y + q + i * kp) * x[c][i];
      v = sum;
    }
}

}  // namespace gpucholmod::cpu

#endif
