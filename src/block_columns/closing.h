#pragma once

#include "block_columns/finish.h"

namespace gpucholmod::block_columns {

/// Computes U^-1 of the H at the end of a segment that has come to its end, from the P of its row blocks: right-hand
/// sides that follow the factor need the remaining V scaled by it. Writes it to where the next row block's transform
/// would have it. One team of WARPS warps.
template <class Segment, int K, class Team>
class Closing {
  using Warp = typename Team::Warp;
  using A = typename Segment::Arithmetic;
  using Parts = BlockTransform<K>;
  static constexpr int KP = Parts::KP, LDW = KP + 8, tiles = KP / 16 * (KP / 8);
  static constexpr int H = KP * LDB, X = H + KP * LDW, work = X + KP * LDW;
  static_assert(tiles <= WARPS);

 public:
  static constexpr int words = work + invert_factor_words;  ///< shared memory, in words

  /// Row blocks [segment.first, segment.end), whose transforms are there.
  GPUCHOLMOD_HOST_DEVICE Closing(Team team, const Segment& segment) : team_(team), s_(segment), shared_(team.shared) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](Warp& warp) { sum_[warp] = zero_tile(warp); });
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * LDB; i += WARPS * LANES) shared_[i] = 0;
    });
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first; b < s_.end; ++b) {
      const A* P = s_.transforms + index_t(b) * Parts::stride + Parts::P;
      team_.threads_sync([&](int thread) {
        GPUCHOLMOD_NO_UNROLL for (int i = thread; i < K * LDB; i += WARPS * LANES) shared_[i] = P[i];
      });
      team_.each_warp([&](Warp& warp) {
        if (warp.id < tiles) add(warp);
      });
      team_.barrier();
    }
    team_.each_warp([&](Warp& warp) {
      if (warp.id < tiles) store(warp);
    });
    team_.barrier();
    team_.all_sync([&](Warp& warp) {
      return warp.id > 0 || invert_factor<KP>(warp, shared_ + H, shared_ + X, shared_ + work, s_.sigma * s_.sigma2);
    });
    A* to = s_.transforms + index_t(s_.end) * Parts::stride + Parts::scaling;
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL
      for (int i = thread; i < KP * KP; i += WARPS * LANES)
        to[i / KP * LDB + i % KP] = shared_[X + i / KP * LDW + i % KP];
    });
  }

 private:
  GPUCHOLMOD_HOST_DEVICE static int row(const Warp& warp) { return warp.id % (KP / 16) * 16; }
  GPUCHOLMOD_HOST_DEVICE static int column(const Warp& warp) { return warp.id / (KP / 16) * 8; }

  /// P'P of the row block.
  GPUCHOLMOD_HOST_DEVICE void add(const Warp& warp) {
    GPUCHOLMOD_NO_UNROLL for (int i = 0; i < NB; i += 8)
      warp.template multiply_add<1, Access::shared>(sum_[warp], load_left(warp, shared_ + row(warp) * LDB + i, LDB),
                                                    shared_ + column(warp) * LDB + i, LDB);
  }
  /// What it begins with, and the sum, times sigma.
  GPUCHOLMOD_HOST_DEVICE void store(const Warp& warp) {
    Tile<Warp> D = sum_[warp];
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e)
        D[lane].e[e] =
            on_diagonal<A>(row(warp), column(warp), lane, e) * sign_of(s_, row(warp)) + s_.sigma * D[lane].e[e];
    });
    store_tile(warp, D, shared_ + H + row(warp) * LDW + column(warp), LDW);
  }

  Team team_;
  const Segment& s_;
  A* shared_;
  typename Team::template PerWarp<Tile<Warp>> sum_;  ///< the warp's tile
};

}  // namespace gpucholmod::block_columns
