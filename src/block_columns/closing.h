#pragma once

#include "block_columns/advance.h"
#include "block_columns/finish.h"

namespace gpucholmod::block_columns {

/// Computes U^-1 of the H behind the last row block of a segment, if none is rejected: right-hand sides need the
/// remaining V scaled by U^-1. Writes U^-1 to its place in the transform behind the last. One team of WARPS warps.
template <class Segment, int K, class Team>
class Closing {
  using Warp = typename Team::Warp;
  using A = typename Segment::Arithmetic;
  using Parts = BlockTransform<K>;
  static constexpr int KP = Parts::KP, LDW = KP + 8, tiles = KP / 16 * (KP / 8), threads = WARPS * LANES;
  // P of two row blocks in turn. When P of all has arrived, H, X and scratch take the place of the second P.
  static constexpr int P = KP * LDB, H = P, X = H + KP * LDW, work = X + KP * LDW;
  static constexpr int ahead = (K * LDB + threads - 1) / threads;
  static_assert(tiles <= WARPS);
  static constexpr int V_words = GroupsOfV<K, A>::words * WARPS, other_words = 2 * P > V_words ? 2 * P : V_words,
                       scratch = work + invert_factor_words > other_words ? work + invert_factor_words : other_words;

 public:
  /// The shared memory of the team, in words.
  static constexpr int words = scratch + 2 * growth_words;

  /// Takes the row blocks [segment.first, segment.end).
  GPUCHOLMOD_HOST_DEVICE Closing(Team team, const Segment& segment) : team_(team), s_(segment), shared_(team.shared) {}

  /// Computes U^-1 from P in the block transforms of these row blocks.
  GPUCHOLMOD_HOST_DEVICE void run() {
    add_up();
    invert();
  }
  /// Computes U^-1 from the H that Finish has left, for a whole factor with right-hand sides, and scales V of the
  /// right-hand sides by U^-1.
  GPUCHOLMOD_HOST_DEVICE void scale_sides() {
    const A* const from = scaling();
    if (s_.state()->renewed) X_0_ = renewed();
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL
      for (int i = thread; i < KP * KP; i += threads) shared_[H + i / KP * LDW + i % KP] = from[i / KP * LDB + i % KP];
    });
    invert();
    scale_V();
  }

 private:
  /// Adds up H from P of all row blocks.
  GPUCHOLMOD_HOST_DEVICE void add_up() {
    team_.each_warp([&](Warp& warp) { sum_[warp] = zero_tile(warp); });
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < 2 * P; i += threads) shared_[i] = 0;
    });
    team_.each_thread([&](int thread) { fetch(thread, s_.first); });
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first; b < s_.end; ++b) {
      if constexpr (may_renew<K>)
        if (is_to_renew(b)) renew();
      A* const own = shared_ + (b - s_.first) % 2 * P;
      team_.threads_sync([&](int thread) {
        GPUCHOLMOD_UNROLL for (int i = 0; i < ahead; ++i)
          if (const int at = i * threads + thread; at < K * LDB) own[at] = next_[thread].P[i];
        if (b + 1 < s_.end) fetch(thread, b + 1);
      });
      if (may_renew<K> && X_0_) renew_P<Access::transform>(team_, own, X_0_, LDB);
      team_.each_warp([&](Warp& warp) {
        if (warp.id < tiles) add(warp, own);
      });
    }
    store();
  }

  /// Returns whether H is to be renewed before row block b, as Finish has found too.
  GPUCHOLMOD_HOST_DEVICE bool is_to_renew(int b) {
    const int i = b - s_.first;
    if (X_0_ || s_.sigma < 0 || !is_looked_at(i)) return false;
    const A before = mean_growth_;
    mean_growth_ = mean_growth(team_, sum_, shared_ + scratch + i % 2 * growth_words);
    return has_grown(mean_growth_, before);
  }
  /// Renews H, and writes X_0 to renewed(). Fills the second place for P with zeros again.
  GPUCHOLMOD_HOST_DEVICE void renew() {
    store();
    invert();
    X_0_ = renewed();
    team_.threads_sync([&](int thread) {
      for (int i = thread; i < KP * KP; i += threads) {
        const int at = i / KP * LDB + i % KP;
        renewed()[at] = scaling()[at];
      }
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < P; i += threads) shared_[P + i] = 0;
    });
    team_.each_warp([&](Warp& warp) { sum_[warp] = zero_tile(warp); });
  }

  /// Writes U^-1 of H to scaling(); of a renewed H, the product X_0 U_s^-1.
  GPUCHOLMOD_HOST_DEVICE void invert() {
    team_.all_sync([&](Warp& warp) {
      return warp.id > 0 || invert_factor<KP>(warp, shared_ + H, shared_ + X, shared_ + work, s_.sigma * s_.sigma2);
    });
    A* to = scaling();
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL
      for (int i = thread; i < KP * KP; i += threads) {
        const int q = i / KP, l = i % KP;
        to[q * LDB + l] = X_0_ ? upper_product<KP>(X_0_, LDB, shared_ + X, l, q) : shared_[X + q * LDW + l];
      }
    });
  }

  GPUCHOLMOD_HOST_DEVICE void scale_V() {
    team_.each_warp([&](Warp& warp) {
      A* const own = shared_ + warp.id * GroupsOfV<K, A>::words;
      GPUCHOLMOD_NO_UNROLL for (int group = s_.end * GROUPS + warp.id; group < s_.blocks * GROUPS; group += WARPS) {
        State<Warp, K> state;
        take_V<K>(warp, state, s_, group);
        rescale<K>(warp, state, scaling());
        put_V<Warp, K>(warp, state, own);
        warp.sync();
        leave_V<K>(warp, own, s_.V + index_t(s_.group_place(group)) * GROUP, s_.ldv);
        warp.sync();
      }
    });
  }

  GPUCHOLMOD_HOST_DEVICE static int row(const Warp& warp) { return warp.id % (KP / 16) * 16; }
  GPUCHOLMOD_HOST_DEVICE static int column(const Warp& warp) { return warp.id / (KP / 16) * 8; }

  GPUCHOLMOD_HOST_DEVICE A* transform(int b) const { return s_.transforms + index_t(b) * Parts::stride; }
  /// Returns the place of U^-1, in the transform behind the last.
  GPUCHOLMOD_HOST_DEVICE A* scaling() const { return transform(s_.end) + Parts::scaling; }
  /// Returns the place of X_0: that of P in the transform behind the last.
  GPUCHOLMOD_HOST_DEVICE A* renewed() const { return transform(s_.end) + Parts::P; }

  /// Begins to fetch a thread's elements of P of row block b.
  GPUCHOLMOD_HOST_DEVICE void fetch(int thread, int b) {
    const A* from = transform(b) + Parts::P;
    GPUCHOLMOD_UNROLL for (int i = 0; i < ahead; ++i)
      if (const int at = i * threads + thread; at < K * LDB) next_[thread].P[i] = from[at];
  }

  /// Adds P'P of a row block, whose P is at `own`, to the warp's tile of the sum.
  GPUCHOLMOD_HOST_DEVICE void add(const Warp& warp, const A* own) {
    GPUCHOLMOD_UNROLL for (int i = 0; i < NB; i += 8)
      warp.template multiply_add<1, Access::shared>(sum_[warp], load_left(warp, own + row(warp) * LDB + i, LDB),
                                                    own + column(warp) * LDB + i, LDB);
  }
  /// Stores H, between two barriers.
  GPUCHOLMOD_HOST_DEVICE void store() {
    team_.barrier();
    team_.each_warp([&](Warp& warp) {
      if (warp.id < tiles)
        store_tile(warp, tile_of_squares(warp, sum_[warp], row(warp), column(warp), s_),
                   shared_ + H + row(warp) * LDW + column(warp), LDW);
    });
    team_.barrier();
  }

  struct Ahead {
    A P[ahead];
  };

  Team team_;
  const Segment& s_;
  A* shared_;
  const A* X_0_ = nullptr;  ///< X_0 of a renewed metric; null if H has not been renewed
  A mean_growth_ = 0;       ///< mean_growth() at the last look at H
  typename Team::template PerThread<Ahead> next_;        ///< P of the next row block
  typename Team::template PerWarp<Tile<Warp>> sum_;  ///< the warp's tile of the sum of P'P
};

}  // namespace gpucholmod::block_columns
