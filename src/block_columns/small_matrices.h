#pragma once

#include "block_columns/sizes.h"
#include "block_columns/warp.h"

/// Cholesky factors and inverses of matrices of order up to 64 in shared memory, computed by a thread block.
namespace gpucholmod::block_columns {

/// Computes C^-1 for the upper triangular C with C'C = A, of order IB, with one warp. Returns false if a pivot is not
/// positive.
///
///   sA  A(i, c) at i + c * lda or, A being symmetric, at c + i * lda
///   sC  C^-1(l, c) at c * ldc + l, its strict lower triangle zero
///
/// Lanes 0 .. 15 hold the columns of A, lanes 16 .. 31 those of I; elimination takes [A I] to [C C'^-1]. C^-1 may take
/// the place of A.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL bool invert_cholesky(Warp warp, const typename Warp::Arithmetic* sA, int lda,
                                                 typename Warp::Arithmetic* sC, int ldc) {
  using A = typename Warp::Arithmetic;
  typename Warp::template PerLane<A> column[IB], pivot_row;
  A diagonal[IB];  // kept by every lane, so that no lane has to fetch a pivot
  GPUCHOLMOD_UNROLL for (int i = 0; i < IB; ++i) {
    warp.each([&](int lane) { column[i][lane] = lane < IB ? sA[lane * lda + i] : A(lane - IB == i ? 1 : 0); });
    diagonal[i] = sA[i * lda + i];
  }
  bool ok = true;
  GPUCHOLMOD_UNROLL for (int i = 0; i < IB; ++i) {
    ok = ok && diagonal[i] > 0;
    const A d = Warp::reciprocal_root(diagonal[i]);
    warp.each([&](int lane) { pivot_row[lane] = column[i][lane] *= d; });
    GPUCHOLMOD_UNROLL for (int j = i + 1; j < IB; ++j) {
      const A factor = warp.from_lane(pivot_row, j);
      diagonal[j] -= factor * factor;
      warp.each([&](int lane) { column[j][lane] -= factor * pivot_row[lane]; });
    }
  }
  warp.sync();
  GPUCHOLMOD_UNROLL for (int i = 0; i < IB; ++i)
    warp.each([&](int lane) {
      if (lane >= IB) sC[i * ldc + lane - IB] = column[i][lane];
    });
  return ok;
}

/// Computes X <- R^-1 for diagonal blocks, each upper triangular of order NB, with SUBS warps for each.
///
///   sD  R(r, l) at (x * NB + r) * LDB + l, x counting the blocks; strict lower triangle zero
///   sX  out: X(l, c) at (x * NB + c) * LDB + l, strict lower triangle zero
///   sE  scratch: the inverses of the sub-blocks on the diagonal, by rows, ld LDC
///
/// Computes X_aa for all a; then, diagonal by diagonal, X_ij = -X_ii (sum over l of R_il X_lj), i < l <= j.
template <class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void invert_diagonal_blocks(Team team, const typename Team::Warp::Arithmetic* sD,
                                                        typename Team::Warp::Arithmetic* sX,
                                                        typename Team::Warp::Arithmetic* sE) {
  using Warp = typename Team::Warp;
  using A = typename Warp::Arithmetic;
  team.threads_sync([&](int thread) {
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < team.size() / SUBS * NB * LDB; i += team.size() * LANES) sX[i] = 0;
  });
  team.warps_sync([&](Warp& warp) {
    const int at = (warp.id / SUBS * NB + warp.id % SUBS * IB) * LDB + warp.id % SUBS * IB;
    const A* D = sD + at;
    A *X = sX + at, *E = sE + warp.id * IB * LDC;
    warp.each([&](int lane) {
      if (lane < IB) E[lane * LDC + lane] = 1 / D[lane * LDB + lane];
    });
    warp.sync();
    warp.each([&](int lane) {
      if (lane >= IB) return;
      A sum[IB];
      GPUCHOLMOD_UNROLL for (int i = 0; i < IB; ++i) sum[i] = i == lane ? 1 : 0;
      GPUCHOLMOD_UNROLL for (int i = IB - 1; i >= 0; --i) {
        const A x = i <= lane ? sum[i] * E[i * LDC + i] : 0;
        GPUCHOLMOD_UNROLL for (int j = 0; j < i; ++j) sum[j] -= D[j * LDB + i] * x;
        X[lane * LDB + i] = sum[i] = x;
      }
      GPUCHOLMOD_UNROLL for (int i = 0; i < IB; ++i)
        if (i != lane) E[i * LDC + lane] = sum[i];
    });
  });
  GPUCHOLMOD_NO_UNROLL for (int d = 1; d < SUBS; ++d)
    team.warps_sync([&](Warp& warp) {
      const int x = warp.id / SUBS, i = warp.id % SUBS, j = i + d;
      if (j >= SUBS) return;
      const A* D = sD + (x * NB + i * IB) * LDB;
      A* X = sX + (x * NB + j * IB) * LDB;
      const A* E = sE + warp.id * IB * LDC;
      Tile<Warp> sum[2] = {zero_tile(warp), zero_tile(warp)};  // transposed: columns of block j by rows of block i
      for (int l = (i + 1) * IB; l < (j + 1) * IB; l += 8) {
        const Left<Warp> left = load_left(warp, X + l, LDB);
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
          warp.template multiply_add<1, Access::shared>(sum[half], left, D + 8 * half * LDB + l, LDB);
      }
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
        Tile<Warp> out = zero_tile(warp);
        GPUCHOLMOD_UNROLL for (int l = 0; l < 2; ++l)
          warp.template multiply_add<-1, Access::shared>(out, as_left(warp, sum[l]), E + 8 * half * LDC + 8 * l, LDC);
        store_tile(warp, out, X + i * IB + 8 * half, LDB);
      }
    });
}

}  // namespace gpucholmod::block_columns
