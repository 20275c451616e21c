#pragma once

#include <type_traits>

#include "block_columns/feed.h"
#include "block_columns/renewal.h"

/// An early look at the first row block of a factor: its first IB rows may show, before the chain begins, that the
/// guard will reject the row block. Kernel matrices have such row blocks. Without the look, all work done before the
/// guard has rejected the row block would be lost. Reference: inst/design/segments.md.
namespace gpucholmod::block_columns {

/// The shared memory of an early look, in words.
template <int K>
constexpr int early_look_words = IB * (BlockTransform<K>::KP + 8) + IB * LDC;

/// Returns whether ||S||_F^2 / trace(S) exceeds `enough` for S = PP': then S has an eigenvalue above `enough`, and P'P
/// has the same eigenvalue. P solves R'P = V of order IB, by substitution, a column of V to a lane. R(l, i) at i * ld +
/// l, V(i, q) at q * ldv + i, aligned in pairs. By one warp; `work`: early_look_words words. The segment is not an
/// argument, as the segment would then be in local memory for all roles: passes took 15 to 25 % longer.
template <int K, class Warp, class T, class A = typename Warp::Arithmetic>
GPUCHOLMOD_HOST_DEVICE_CALL bool grows_beyond(Warp warp, A enough, const T* R, index_t ld, const A* V, index_t ldv,
                                              A* work) {
  constexpr int KP = BlockTransform<K>::KP, LDP = KP + 8, at_once = IB * IB / LANES;
  A *const P = work, *const tile = P + IB * LDP;  // P(i, q) at i * LDP + q, R(l, i) at i * LDC + l
  typename Warp::template PerLane<A> column[IB];
  warp.each([&](int lane) {
    T entry[at_once];
    GPUCHOLMOD_UNROLL for (int l = 0; l < at_once; ++l)
      entry[l] = Warp::template read<Access::transform>(R + (lane / 2) * ld + lane % 2 * at_once + l);
    GPUCHOLMOD_UNROLL for (int i = 0; i < IB; i += 2) {
      Pair<A> two{};
      if (lane < K) two = Warp::template read<Access::transform>(reinterpret_cast<const Pair<A>*>(V + lane * ldv + i));
      column[i][lane] = two.x;
      column[i + 1][lane] = two.y;
    }
    GPUCHOLMOD_UNROLL for (int l = 0; l < at_once; ++l) tile[lane / 2 * LDC + lane % 2 * at_once + l] = A(entry[l]);
  });
  warp.sync();
  warp.each([&](int lane) {
    if (lane < IB) tile[lane * (LDC + 1)] = 1 / tile[lane * (LDC + 1)];
  });
  warp.sync();
  warp.each([&](int lane) {
    GPUCHOLMOD_UNROLL for (int i = 0; i < IB; ++i) {
      column[i][lane] *= tile[i * (LDC + 1)];
      GPUCHOLMOD_UNROLL for (int j = i + 1; j < IB; ++j) column[j][lane] -= tile[j * LDC + i] * column[i][lane];
      if (lane < KP) P[i * LDP + lane] = column[i][lane];
    }
  });
  warp.sync();
  typename Warp::template PerLane<A> square, diagonal;
  warp.each([&](int lane) { square[lane] = diagonal[lane] = 0; });
  GPUCHOLMOD_NO_UNROLL for (int n = 0; n < IB; n += 8) {
    Tile<Warp> D = zero_tile(warp);
    GPUCHOLMOD_UNROLL for (int l = 0; l < KP; l += 8)
      warp.template multiply_add<1, Access::shared>(D, load_left(warp, P + l, LDP), P + n * LDP + l, LDP);
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e) {
        square[lane] += D[lane].e[e] * D[lane].e[e];
        diagonal[lane] += on_diagonal<A>(0, n, lane, e) * D[lane].e[e];
      }
    });
  }
  return warp.total(square) > enough * warp.total(diagonal);
}

/// Returns whether the first rows of the factor's first row block show that the guard will reject the row block, H
/// being I before it. They do only if they exceed the bound by far: twice the bound in an update; in a downdate, they
/// leave less than half of the bound. The guard, whose P is found in another way, then rejects the row block too,
/// unless the triangle of these rows is singular to working precision. So a result has the same bits with the look and
/// without. Returns false for columns of both signs; in single-precision arithmetic, where triangles are singular much
/// sooner; and for segments behind the first. Their chain begins at once, as the inverses exist: P of their first row
/// block would wait for the look. By one warp.
template <int K, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE bool is_rejected_early(const Warp& warp, const S& s, typename S::Arithmetic* work) {
  constexpr bool looks = std::is_same_v<typename S::Arithmetic, double>;
  return looks && s.first == 0 && !s.mixed() &&
         grows_beyond<K>(warp, s.sigma > 0 ? 2 * s.bound : 1 - s.bound / 2, s.tile(0, 0), s.ld,
                         s.V + index_t(s.place(0)) * NB, s.ldv, work);
}

/// Feeds a thread block that finishes with P of all row blocks, by one warp. In the thread block that finishes the
/// first row block, this warp takes the early look first. team.shared: early_look_words words.
template <int K, class Team, class S, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void feed_finish(Team team, const S& s, int finisher, StagingRing& ring) {
  using Warp = typename Team::Warp;
  team.each_warp([&](Warp& warp) {
    // No look if several ranks work together: the other ranks wait for P of a rejected row block too.
    if (finisher > 0 || s.several() || !is_rejected_early<K>(warp, s, team.shared))
      return feed_P<K>(warp, s, s.last(), ring);
    team.reject(s.state(), 2 * s.blocks + 1);
    team.store_release(s.complete(0), rejected);
    ring.close(warp, 0);
  });
}

}  // namespace gpucholmod::block_columns
