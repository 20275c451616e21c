#pragma once

#include <cmath>

#include "block_columns/guard.h"

/// The renewal of the metric of an update, of order 16, within a segment. It begins at the first row block b_0 before
/// which H has grown. With U_0 of the H there and X_0 = U_0^-1, from b_0 on
///
///   P_s = P X_0     H_s = I + sum of P_s'P_s     H = U_0'H_s U_0
///
/// Finish uses H_s in place of H, and Z_s X_0' in place of Z. V, P, the chain and the trailing update do not change. So
/// the guard, which tests H_s, lets H grow to the square of its bound before the segment ends, and no further, as H is
/// renewed only once in a segment. An H of order 32 is not renewed: that cost some updates as much time as it saved
/// others (log/tried.md). References: inst/design/guard.md, inst/design/segments.md.
namespace gpucholmod::block_columns {

/// True if the H of a pass of K columns may be renewed.
template <int K>
constexpr bool may_renew = K <= IB;

/// Returns whether H is looked at before the i-th row block of a segment: not before each, as a look takes a while.
GPUCHOLMOD_HOST_DEVICE bool is_looked_at(int i) { return i > 0 && (i <= 8 || i % 8 == 0); }

/// Returns whether H is to be renewed, from the mean of its growth now and at the look before: if H goes on growing
/// like that, its largest eigenvalue may soon reach the guard's bound. The rule was chosen by 56 updates of kernel
/// matrices, X'X and B'B + I (log/tried.md).
template <class A>
GPUCHOLMOD_HOST_DEVICE bool has_grown(A mean, A before) {
  return mean + (mean - before) > A(8);
}

constexpr int growth_words = 4;  ///< words of scratch for mean_growth()

/// Returns the mean of the eigenvalues of S = H - I, each weighted by itself, ||S||_F^2 / trace(S). The mean is at most
/// the largest eigenvalue, and equal to it if all are the same, or if all but one are 0. `sum` is S: warp w < 2 has its
/// columns 8 w to 8 w + 7. Reads scratch after a barrier, so the next call must use other scratch.
template <class Team, class Tiles>
GPUCHOLMOD_HOST_DEVICE auto mean_growth(Team& team, Tiles& sum, typename Team::Warp::Arithmetic* scratch) {
  using Warp = typename Team::Warp;
  using A = typename Warp::Arithmetic;
  team.each_warp([&](Warp& warp) {
    if (warp.id >= 2) return;
    const Tile<Warp>& S = sum[warp];
    typename Warp::template PerLane<A> square, diagonal;
    warp.each([&](int lane) {
      square[lane] = diagonal[lane] = 0;
      GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e) {
        square[lane] = fma(S[lane].e[e], S[lane].e[e], square[lane]);  // fma in all kernels alike
        diagonal[lane] += on_diagonal<A>(0, 8 * warp.id, lane, e) * S[lane].e[e];
      }
    });
    const A squares = warp.total(square), trace = warp.total(diagonal);
    warp.once([&] {
      scratch[2 * warp.id] = squares;
      scratch[2 * warp.id + 1] = trace;
    });
  });
  team.barrier();
  const A squares = scratch[0] + scratch[2], trace = scratch[1] + scratch[3];
  return trace > 0 ? squares / trace : A(0);
}

/// Computes W <- `by` W S X' for 16 rows, in the first K columns; the other columns of W are zero. W(i, q) is at
/// i * ld + q, and X(l, q), upper triangular, at q * ld + l. S = diag(I, `other` I).
template <int K, int KP, class Warp>
GPUCHOLMOD_HOST_DEVICE void multiply_by_transposed(const Warp& warp, typename Warp::Arithmetic* W,
                                                   const typename Warp::Arithmetic* X, typename Warp::Arithmetic other,
                                                   typename Warp::Arithmetic by) {
  constexpr int ld = KP + 8;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; q += 8) {
    Tile<Warp> D = zero_tile(warp);
    GPUCHOLMOD_UNROLL for (int l = 0; l < KP; l += 8) {
      if (l == HALF) scale_tile(warp, D, other);
      if (l >= q) warp.template multiply_add_rows<1>(D, load_left(warp, W + l, ld), X + l * ld + q, ld);
    }
    scale_tile(warp, D, by);
    warp.sync();
    store_tile(warp, D, W + q, ld);  // later steps read the columns from q + 8 on
  }
  warp.sync();
}

/// Computes Z <- Z_s X_0' for a sub-block.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL void renew_Z(Warp warp, typename Warp::Arithmetic* Z,
                                         const typename Warp::Arithmetic* X_0) {
  using A = typename Warp::Arithmetic;
  multiply_by_transposed<K, IB>(warp, Z, X_0, A(1), A(1));
}

/// Computes P <- P X_0 for a row block in shared memory, with a team of WARPS warps of 8 rows each. Element (l, q) of
/// X_0 is at q * ld + l, in shared memory or, with another `access`, in global memory. Ends in a barrier.
template <Access access, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void renew_P(Team team, typename Team::Warp::Arithmetic* P,
                                         const typename Team::Warp::Arithmetic* X_0, int ld) {
  using Warp = typename Team::Warp;
  static_assert(WARPS * 8 == NB);
  team.warps_sync([&](Warp& warp) {
    const int row = 8 * warp.id;
    Tile<Warp> D = zero_tile(warp);  // X_0'P'
    GPUCHOLMOD_UNROLL for (int l = 0; l < IB; l += 8) {
      Left<Warp> left;
      if constexpr (access == Access::shared) left = load_left(warp, X_0 + l, ld);
      else fetch_rows<access>(warp, left, X_0 + l, ld);
      warp.template multiply_add_rows<1>(D, left, P + l * LDB + row, LDB);
    }
    warp.sync();
    store_tile(warp, D, P + row, LDB);
  });
}

/// Returns element (i, q) of X_0 X, both upper triangular. X has leading dimension KP + 8.
template <int KP, class A>
GPUCHOLMOD_HOST_DEVICE A upper_product(const A* X_0, int ld, const A* X, int i, int q) {
  A sum = 0;
  GPUCHOLMOD_NO_UNROLL for (int l = i; l <= q; ++l) sum += X_0[l * ld + i] * X[q * (KP + 8) + l];
  return sum;
}

}  // namespace gpucholmod::block_columns
