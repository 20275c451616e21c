#pragma once

#include "block_columns/segment.h"
#include "block_columns/small_matrices.h"

/// The guard, which decides by the eigenvalues of H whether a row block is accepted: each test asks whether a small
/// matrix has a Cholesky factor. Reference: inst/design/guard.md.
namespace gpucholmod::block_columns {

/// Returns the diagonal entry in row q of the matrix that H begins with, sigma diag(sigma I, sigma2 I).
template <class S>
GPUCHOLMOD_HOST_DEVICE typename S::Arithmetic sign_of(const S& s, int q) { return q < HALF ? 1 : s.sigma * s.sigma2; }

/// Returns the tile of H whose first row and column are `row` and `column`, from the same tile of the sum of P'P.
template <class Warp, class S>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> tile_of_squares(const Warp& warp, const Tile<Warp>& sum, int row, int column,
                                                  const S& s) {
  Tile<Warp> H = sum;
  warp.each([&](int lane) {
    GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e)
      H[lane].e[e] = on_diagonal<typename S::Arithmetic>(row, column, lane, e) * sign_of(s, row) +
                     s.sigma * H[lane].e[e];
  });
  return H;
}

constexpr int invert_factor_words = 3 * IB * LDC;  ///< words of shared memory for invert_factor() of order 32

/// Calls store(half, D) for both halves (16 x 8) of D = begin(half) + s A B, of order 16. left(l): columns l to l + 7
/// of A; B(k, n) at n * ld + k.
template <int s, class Warp, class Begin, class Left, class Store>
GPUCHOLMOD_HOST_DEVICE void product_16(const Warp& warp, Begin&& begin, Left&& left, const typename Warp::Arithmetic* B,
                                       int ld, Store&& store) {
  GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
    Tile<Warp> D = begin(half);
    GPUCHOLMOD_UNROLL for (int l = 0; l < IB; l += 8)
      warp.template multiply_add<s, Access::shared>(D, left(l), B + 8 * half * ld + l, ld);
    store(half, D);
  }
  warp.sync();
}

/// Computes X <- U^-1, U'SU = A, S = diag(I, `other` I), by one warp. X may be A. A is symmetric, of order KP = 16 or
/// 32, with leading dimension KP + 8; X(l, c) at c * (KP + 8) + l, its strict lower triangle zero. Returns false if no
/// such U exists. `work`: invert_factor_words words.
///
///   KP = 32:  X11 from A11,  U12 = X11'A12,  X22 from other * (A22 - U12'U12) - bound I,  X12 = -X11 (U12 X22)
template <int KP, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL bool invert_factor(Warp warp, const typename Warp::Arithmetic* sA,
                                               typename Warp::Arithmetic* sX, typename Warp::Arithmetic* work,
                                               typename Warp::Arithmetic other = 1,
                                               typename Warp::Arithmetic bound = 0) {
  using A = typename Warp::Arithmetic;
  constexpr int ld = KP + 8;
  bool ok = invert_cholesky(warp, sA, ld, sX, ld);
  warp.sync();
  if constexpr (KP > IB) {
    A *sU = work, *sS = work + IB * LDC, *sY = sS + IB * LDC;
    const A *A12 = sA + IB * ld, *A22 = A12 + IB;
    A *X12 = sX + IB * ld, *X22 = X12 + IB;
    const auto zero = [&](int) { return zero_tile(warp); };
    const auto to = [&](A* p, int ldp) {
      return [&warp, p, ldp](int half, const Tile<Warp>& D) { store_columns(warp, D, p + 8 * half * ldp, ldp); };
    };
    warp.each([&](int lane) {
      GPUCHOLMOD_NO_UNROLL for (int i = lane; i < IB * IB; i += LANES) sX[i / IB * ld + IB + i % IB] = 0;
    });
    product_16<1>(warp, zero, [&](int l) { return load_left(warp, sX + l, ld); }, A12, ld, to(sU, LDC));
    product_16<-1>(warp, [&](int half) { return load_tile<Access::shared>(warp, A22 + 8 * half, ld); },
                   [&](int l) { return load_left(warp, sU + l, LDC); }, sU, LDC, [&](int half, Tile<Warp>& D) {
                     warp.each([&](int lane) {
                       GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e)
                         D[lane].e[e] = other * D[lane].e[e] - on_diagonal<A>(0, 8 * half, lane, e) * bound;
                     });
                     to(sS, LDC)(half, D);
                   });
    ok = invert_cholesky(warp, sS, LDC, X22, ld) && ok;
    warp.sync();
    product_16<1>(
        warp, zero, [&](int l) { return load_left_transposed(warp, sU + l * LDC, LDC); }, X22, ld, to(sY, LDC));
    product_16<-1>(
        warp, zero, [&](int l) { return load_left_transposed(warp, sX + l * ld, ld); }, sY, LDC, to(X12, ld));
  }
  return ok;
}

/// Returns whether a row block passes the guard if H is I before the row block. With H_0 before and H behind the row
/// block, it passes if sigma (bound H_0 - H) is positive definite. H is overwritten; `work` as in invert_factor().
template <int KP, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL bool passes_alone(Warp warp, typename Warp::Arithmetic* sH,
                                              const typename Warp::Arithmetic* sH_0, typename Warp::Arithmetic sigma,
                                              typename Warp::Arithmetic bound, typename Warp::Arithmetic* work) {
  constexpr int ld = KP + 8;
  warp.each([&](int lane) {
    GPUCHOLMOD_NO_UNROLL for (int i = lane; i < KP * KP; i += LANES) {
      const int q = i / KP, l = i % KP;
      sH[q * ld + l] = sigma * (bound * sH_0[q * ld + l] - sH[q * ld + l]);
    }
  });
  warp.sync();
  return invert_factor<KP>(warp, sH, sH, work);
}

/// Returns whether, with columns of both signs, minus the Schur complement of the removed columns in H is above its
/// bound. sX, work: as in invert_factor().
template <int KP, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL bool passes_below(Warp warp, const typename Warp::Arithmetic* sH,
                                              typename Warp::Arithmetic* sX, typename Warp::Arithmetic* work) {
  return invert_factor<KP>(warp, sH, sX, work, -1, least_downdate);
}

/// Returns whether, with columns of both signs, H of the added columns and I + P'P of the removed columns are below
/// their bounds. `work`: IB * LDC words.
template <int KP, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL bool passes_above(Warp warp, const typename Warp::Arithmetic* sH,
                                              typename Warp::Arithmetic* work) {
  using A = typename Warp::Arithmetic;
  constexpr int ld = KP + 8;
  const auto below = [&](const A* block, A bound) {
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int i = lane; i < IB * IB; i += LANES)
        work[i / IB * LDC + i % IB] = (i / IB == i % IB ? bound : 0) - block[i / IB * ld + i % IB];
    });
    warp.sync();
    const bool good = invert_cholesky(warp, work, LDC, work, LDC);
    warp.sync();
    return good;
  };
  return below(sH, largest_update) && below(sH + HALF * (ld + 1), largest_removed - 2);  // H = P'P - I in this block
}

/// Computes G <- X'HX, X upper. If a row block takes the metric U'SU to H, and X = U^-1, that row block takes S to G.
/// sT: as large as G.
template <int KP, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL void congruent(Warp warp, const typename Warp::Arithmetic* sH,
                                           const typename Warp::Arithmetic* sX, typename Warp::Arithmetic* sT,
                                           typename Warp::Arithmetic* sG) {
  using A = typename Warp::Arithmetic;
  constexpr int ld = KP + 8;
  const auto product = [&](const A* left, const A* right, A* to) {  // to <- left' right, both by columns
    GPUCHOLMOD_NO_UNROLL for (int i = 0; i < KP; i += IB)
      GPUCHOLMOD_NO_UNROLL for (int j = 0; j < KP; j += 8) {
        Tile<Warp> D = zero_tile(warp);
        GPUCHOLMOD_NO_UNROLL for (int l = 0; l < KP; l += 8)
          warp.template multiply_add<1, Access::shared>(D, load_left(warp, left + i * ld + l, ld), right + j * ld + l,
                                                        ld);
        store_columns(warp, D, to + j * ld + i, ld);
      }
    warp.sync();
  };
  product(sH, sX, sT);
  product(sX, sT, sG);
}

}  // namespace gpucholmod::block_columns
