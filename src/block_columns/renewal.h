#pragma once

#include "block_columns/guard.h"

/// How the metric of an update is renewed within a segment, where it is of order 16. Before the first row block b_0
/// where it has grown, with U_0 of the H there, X_0 = U_0^-1, and from b_0 on
///
///   P_s = P X_0     H_s = I + sum of P_s'P_s     H = U_0'H_s U_0
///
/// H_s takes the place of H in all that Finish does, and Z_s X_0' that of Z. V, P, the chain and the trailing update
/// stay as they are. So the guard, which tests H_s, lets H grow to the square of its bound before the segment ends, and
/// no further, as H is renewed once in a segment. An H of order 32 is not renewed: that cost some updates as much time
/// as it saved others (log/tried.md). References: inst/design/guard.md, inst/design/segments.md.
namespace gpucholmod::block_columns {

/// Whether the H of a pass of K columns may be renewed.
template <int K>
constexpr bool may_renew = K <= IB;

/// Whether H is looked at before the i-th row block of a segment: to do so takes a while.
GPUCHOLMOD_HOST_DEVICE bool is_looked_at(int i) { return i > 0 && (i <= 8 || i % 8 == 0); }

/// Whether H is to be renewed, from the mean of its growth now and when it was looked at before: if it grows on like
/// that, its largest eigenvalue may soon reach the guard's bound. Chosen by 56 updates of kernel matrices, X'X and
/// B'B + I (log/tried.md).
template <class A>
GPUCHOLMOD_HOST_DEVICE bool has_grown(A mean, A before) {
  return mean + (mean - before) > A(8);
}

constexpr int growth_words = 4;  ///< of scratch that mean_growth() takes

/// Returns the mean of the eigenvalues of S = H - I, each weighted by itself, ||S||_F^2 / trace(S): at most the largest
/// of them, and just that where all are the same, or all but one are 0. sum: S, of which warp w < 2 has columns 8 w to
/// 8 w + 7. Ends in a barrier; the next call takes other scratch.
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
        square[lane] = fma(S[lane].e[e], S[lane].e[e], square[lane]);  // by all kernels alike
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

/// W <- by W S X', of 16 rows, W(i, q) at i * ld + q and X(l, q) at q * ld + l, upper: its first K columns, the others
/// being zero. S = diag(I, `other` I).
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
    store_tile(warp, D, W + q, ld);  // what comes next needs the columns from q + 8 on
  }
  warp.sync();
}

/// Z <- Z_s X_0', of a sub-block.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL void renew_Z(Warp warp, typename Warp::Arithmetic* Z,
                                         const typename Warp::Arithmetic* X_0) {
  using A = typename Warp::Arithmetic;
  multiply_by_transposed<K, IB>(warp, Z, X_0, A(1), A(1));
}

/// P_s <- P X_0, of a row block in shared memory, by a team of WARPS warps, each of which has 8 rows: P_s may be P.
/// X_0(l, q) at q * ld + l, in shared memory or, with another `access`, in global memory. Ends in a barrier.
template <Access access, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void renew_P(Team team, const typename Team::Warp::Arithmetic* P,
                                         typename Team::Warp::Arithmetic* P_s,
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
    store_tile(warp, D, P_s + row, LDB);
  });
}

/// Element (i, q) of X_0 X, both upper, where X has leading dimension KP + 8.
template <int KP, class A>
GPUCHOLMOD_HOST_DEVICE A upper_product(const A* X_0, int ld, const A* X, int i, int q) {
  A sum = 0;
  GPUCHOLMOD_NO_UNROLL for (int l = i; l <= q; ++l) sum += X_0[l * ld + i] * X[q * (KP + 8) + l];
  return sum;
}

}  // namespace gpucholmod::block_columns
