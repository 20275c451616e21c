#pragma once

#include <type_traits>

#include "block_columns/renewal.h"

namespace gpucholmod::block_columns {

/// The shared memory of a thread block that finishes block transforms, in words.
template <int K, class Card>
struct FinishMemory {
  static constexpr int KP = BlockTransform<K>::KP;
  static constexpr int LDW = KP + 8;  ///< leading dimension of matrices with KP contiguous words
  static constexpr int slots = Card::template finish_slots<K>;  ///< slots of the ring for P of row blocks
  static constexpr int P_words = KP * LDB;
  static constexpr int square = KP * LDW;
  static constexpr int scratch = IB * LDW + 2 * IB * LDC;  ///< words of a sub-block; of the guard too, unless KP is 32
  static constexpr int of_guard = KP > IB ? invert_factor_words + IB * LDC : scratch;
  static_assert(KP == IB || scratch >= invert_factor_words);
  static constexpr int P = 0, H = P + slots * P_words, X = H + (SUBS + 1) * square, work = X + 2 * square,
                       words = work + SUBS * scratch + of_guard;
};

/// Finishes the block transform of every `finishers`-th row block. The metric H_a before each sub-block a is a sum over
/// all P so far. Four warps then compute, for the four sub-blocks side by side,
///
///   U_a'U_a = H_a     W_a = P_a U_a^-1     Z_a = W_a U_a'^-1     C_a'C_a = I + sigma W_a W_a'
///
/// C_a^-T and sigma C_a^-T Z_a go to the block transform. A fifth warp (with columns of both signs, a sixth too) tests
/// whether the H behind the row block passes the guard. The diagonal of R~ is computed here as well, as the diagonal of
/// C_a R_aa: each entry is positive, and right to its own last digits, however large the entries above it are. A row
/// block is rejected if an entry of its diagonal would leave the range of normal numbers. If H of an update has grown,
/// H is renewed (renewal.h): every thread block that finishes detects the growth for itself, before the same row block.
/// With columns of both signs, S = diag(I, -I), H begins with S, and
///
///   U_a'SU_a = H_a    W_a = P_a U_a^-1     Z_a = W_a S U_a'^-1   C_a'C_a = I + W_a S W_a'
template <class Segment, int K, class Team, class StagingRing>
class Finish {
  using Warp = typename Team::Warp;
  using T = typename Segment::Scalar;
  using A = typename Segment::Arithmetic;
  using Parts = BlockTransform<K>;
  using S = FinishMemory<K, typename Warp::Card>;
  static constexpr int KP = S::KP, LDW = S::LDW, tiles = KP / 16 * (KP / 8);
  static constexpr bool has_sides = std::is_same_v<Segment, typename Segment::WithSides>;

 public:
  GPUCHOLMOD_HOST_DEVICE Finish(Team team, const Segment& segment, int finisher, StagingRing& ring)
      : team_(team), s_(segment), finisher_(finisher), ring_(ring), shared_(team.shared) {}

  /// Finishes this thread block's row blocks, up to the first that is rejected. The ring's slots must hold zeros behind
  /// the K columns of P.
  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](Warp& warp) { sum_[warp] = zero_tile(warp); });
    GPUCHOLMOD_NO_UNROLL for (int i = 0; s_.first + i < s_.last(); ++i) {
      const int b = s_.first + i;
      if constexpr (may_renew<K>)
        if (is_to_renew(b)) renew(b);
      if (!team_.all_warps([&](Warp& warp) { return ring_.wait(warp, i); })) return;
      const bool own = i % s_.finishers == finisher_ && b >= s_.start();
      A* const sP = ring_.slot(i);  // P, or P_s once H is renewed
      if (may_renew<K> && renewed_) renew_P<Access::shared>(team_, sP, X_0(), LDW);
      team_.each_warp([&](Warp& warp) {
        if (own && warp.id < SUBS) take_diagonal(warp, b);
        if (warp.id < tiles)
          GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
            if (own) store_H(warp, a);
            add_sub_block(warp, sP, a);
          }
        if (own) {
          if (warp.id < tiles) store_H(warp, SUBS);
          if (has_sides && warp.id < tiles && b + 1 == s_.last()) leave_H(warp);
        } else {
          ring_.release(warp, i);
        }
      });
      if (!own) continue;
      const bool good = finish(b, sP);
      team_.each_warp([&](Warp& warp) { ring_.release(warp, i); });
      if (!good) return drain(i + 1);
    }
  }

 private:
  /// Receives P of the row blocks from number i on, and releases their slots unused.
  GPUCHOLMOD_HOST_DEVICE void drain(int i) {
    for (; s_.first + i < s_.last(); ++i)
      if (!team_.all_warps([&](Warp& warp) {
            const bool came = ring_.wait(warp, i);
            if (came) ring_.release(warp, i);
            return came;
          }))
        return;
  }

  GPUCHOLMOD_HOST_DEVICE bool mixed() const { return KP > HALF && s_.mixed(); }
  /// Returns the sign of the last columns of V.
  GPUCHOLMOD_HOST_DEVICE A last_sign() const { return KP > HALF ? s_.sigma2 : s_.sigma; }

  /// Returns the place of H before sub-block a; for a = SUBS, of H behind the row block.
  GPUCHOLMOD_HOST_DEVICE A* H(int a) const { return shared_ + S::H + a * S::square; }
  /// Returns the place of U_a^-1: that of H_a, except for a = 0, as reject() still needs H_0.
  GPUCHOLMOD_HOST_DEVICE A* X(int a) const { return a == 0 ? shared_ + S::X : H(a); }
  /// Returns the place of X_0 of a renewed metric; with columns of both signs (never renewed), of the guard's X.
  GPUCHOLMOD_HOST_DEVICE A* X_0() const { return shared_ + S::X + S::square; }
  GPUCHOLMOD_HOST_DEVICE A* work(int a) const { return shared_ + S::work + a * S::scratch; }

  /// Returns the first row of the warp's tile of H; column() returns the first column.
  GPUCHOLMOD_HOST_DEVICE static int row(const Warp& warp) { return warp.id % (KP / 16) * 16; }
  GPUCHOLMOD_HOST_DEVICE static int column(const Warp& warp) { return warp.id / (KP / 16) * 8; }

  /// Reads R_ii of the warp's sub-block of row block b from behind the inverse of its diagonal block: long before the
  /// entries are needed, as global memory takes long to answer.
  GPUCHOLMOD_HOST_DEVICE void take_diagonal(const Warp& warp, int b) {
    const A* from = s_.inverse(b) + warp.id * IB * LDT + diagonal_at;
    warp.each([&](int lane) {
      if (lane < IB) R_diagonal_[warp][lane] = Warp::template read<Access::transform>(from + lane * LDT);
    });
  }

  /// Adds P'P of the 16 rows of sub-block a to the warp's tile of the sum.
  GPUCHOLMOD_HOST_DEVICE void add_sub_block(const Warp& warp, const A* sP, int a) {
    GPUCHOLMOD_UNROLL for (int i = a * IB; i < (a + 1) * IB; i += 8)
      warp.template multiply_add<1, Access::shared>(sum_[warp], load_left(warp, sP + row(warp) * LDB + i, LDB),
                                                    sP + column(warp) * LDB + i, LDB);
  }

  /// Returns the warp's tile of the current H.
  GPUCHOLMOD_HOST_DEVICE Tile<Warp> tile_of_H(const Warp& warp) {
    return tile_of_squares(warp, sum_[warp], row(warp), column(warp), s_);
  }
  /// Stores the warp's tile of the current H as the H before sub-block a.
  GPUCHOLMOD_HOST_DEVICE void store_H(const Warp& warp, int a) {
    store_tile(warp, tile_of_H(warp), this->H(a) + row(warp) * LDW + column(warp), LDW);
  }
  GPUCHOLMOD_HOST_DEVICE A* transform(int b) const { return s_.transforms + index_t(b) * Parts::stride; }
  /// Writes the H behind the last row block to the transform behind the last, for Closing; and a renewed metric's X_0
  /// to the place of P there.
  GPUCHOLMOD_HOST_DEVICE void leave_H(const Warp& warp) {
    A *const to = transform(s_.end), *const first = to + row(warp) * LDB + column(warp);
    store_tile(warp, tile_of_H(warp), first + Parts::scaling, LDB);
    if (renewed_)
      store_tile(warp, load_tile<Access::shared>(warp, X_0() + row(warp) * LDW + column(warp), LDW), first, LDB);
  }

  /// Finishes row block b, whose P is in sP. Returns false if the row block is rejected.
  GPUCHOLMOD_HOST_DEVICE bool finish(int b, const A* sP) {
    A* const to = transform(b);
    team_.barrier();
    const bool good = team_.all_sync([&](Warp& warp) {
      if (warp.id < SUBS) return finish_sub_block(warp, b, warp.id, sP, to);
      if (warp.id == SUBS) return mixed() ? passes_below<KP>(warp, H(SUBS), X_0(), work(SUBS)) : passes(warp);
      return warp.id > SUBS + 1 || !mixed() || passes_above<KP>(warp, H(SUBS), work(SUBS) + invert_factor_words);
    });
    if (!good) reject(b);
    team_.once([&] {
      if (good && renewed_ && b == from_) Warp::store_release(&s_.state()->renewed, b + 1);
      Warp::store_release(s_.complete(b), good ? accepted : rejected);
    });
    return good;
  }

  /// Rejects row block b: b and all later row blocks are left to the next turn. Finds whether row block b would be
  /// rejected with H = I before it as well.
  GPUCHOLMOD_HOST_DEVICE void reject(int b) {
    leave_scaling(b);
    team_.each_warp([&](Warp& warp) {
      if (!mixed() && warp.id < tiles) store_H(warp, SUBS);
    });
    team_.barrier();
    const bool again = !team_.all_sync([&](Warp& warp) {
      if (warp.id > 0 || b == s_.first) return warp.id > 0;
      if (!mixed()) return passes_alone<KP>(warp, H(SUBS), H(0), s_.sigma, s_.bound, work(SUBS));
      congruent<KP>(warp, H(SUBS), X(0), H(1), H(2));
      return passes_above<KP>(warp, H(2), work(0)) && passes_below<KP>(warp, H(2), X_0(), work(SUBS));
    });
    team_.reject(s_.state(), 2 * (s_.blocks - b) + again);
  }

  /// Writes U^-1 of the H before row block b to its transform. Ends in a barrier.
  GPUCHOLMOD_HOST_DEVICE void leave_scaling(int b) {
    A* const to = transform(b) + Parts::scaling;
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * KP; i += team_.size() * LANES) {
        const int q = i / KP, l = i % KP;
        to[q * LDB + l] = renewed_ ? upper_product<KP>(X_0(), LDW, X(0), l, q) : X(0)[q * LDW + l];
      }
    });
  }

  /// Returns whether H is to be renewed before row block b, that is, whether H of an update has grown.
  GPUCHOLMOD_HOST_DEVICE bool is_to_renew(int b) {
    static_assert(S::slots < 8);  // so all warps have read the scratch before a look 8 row blocks later writes to it
    const int i = b - s_.first;
    if (renewed_ || s_.sigma < 0 || !is_looked_at(i)) return false;
    const A before = mean_growth_;
    mean_growth_ = mean_growth(team_, sum_, work(0) + i % 2 * growth_words);
    return has_grown(mean_growth_, before);
  }
  /// Renews H before row block b: X_0 <- U^-1, and H is I again.
  GPUCHOLMOD_HOST_DEVICE void renew(int b) {
    team_.each_warp([&](Warp& warp) {
      if (warp.id < tiles) store_H(warp, 0);
      sum_[warp] = zero_tile(warp);
    });
    team_.barrier();
    team_.all_sync([&](Warp& warp) { return warp.id > 0 || invert_factor<KP>(warp, H(0), X_0(), work(1)); });
    renewed_ = true;
    from_ = b;
  }

  GPUCHOLMOD_HOST_DEVICE bool finish_sub_block(const Warp& warp, int b, int a, const A* sP, A* to) {
    A *const X = this->X(a), *const W = work(a), *const M = W + IB * LDW, *const C = M + IB * LDC;
    if (!invert_factor<KP>(warp, H(a), X, W, s_.sigma * s_.sigma2)) return false;
    GPUCHOLMOD_UNROLL for (int q = 0; q < KP; q += 8) {
      Tile<Warp> D = zero_tile(warp);
      GPUCHOLMOD_UNROLL for (int l = 0; l < KP; l += 8)
        if (l <= q) warp.template multiply_add<1, Access::shared>(
            D, load_left_transposed(warp, sP + l * LDB + a * IB, LDB), X + q * LDW + l, LDW);
      store_tile(warp, D, W + q, LDW);
    }
    warp.sync();
    GPUCHOLMOD_UNROLL for (int n = 0; n < IB; n += 8) {
      Tile<Warp> D = zero_tile(warp);
      GPUCHOLMOD_UNROLL for (int l = 0; l < KP; l += 8) {
        if (l == HALF) scale_tile(warp, D, s_.sigma * s_.sigma2);
        warp.template multiply_add<1, Access::shared>(D, load_left(warp, W + l, LDW), W + n * LDW + l, LDW);
      }
      warp.each([&](int lane) {
        GPUCHOLMOD_UNROLL
        for (int e = 0; e < 4; ++e) D[lane].e[e] = on_diagonal<A>(0, n, lane, e) + last_sign() * D[lane].e[e];
      });
      store_tile(warp, D, M + n, LDC);
    }
    // sigma Z_a takes the place of W_a.
    multiply_by_transposed<K, KP>(warp, W, X, s_.sigma * s_.sigma2, last_sign());
    if constexpr (may_renew<K>)
      if (renewed_) renew_Z<K>(warp, W, X_0());
    const index_t rows = index_t(b) * NB + a * IB;
    bool good = invert_cholesky(warp, M, LDC, C, LDC);
    warp.sync();
    good = find_diagonal(warp, C, rows, to + Parts::diagonal + a * IB) && good;
    Left<Warp> C_left[2];  // scaled, so that the product sigma C_a^-T Z_a is scaled too
    GPUCHOLMOD_UNROLL for (int h = 0; h < 2; ++h) {
      C_left[h] = load_left(warp, C + 8 * h, LDC);
      warp.each([&](int lane) {
        GPUCHOLMOD_UNROLL
        for (int e = 0; e < 4; ++e) C_left[h][lane].e[e] *= A(s_.scaling.of(rows + group_id(lane) + e % 2 * 8));
      });
      store_left(warp, C_left[h], to + Parts::C + (a * 2 + h) * LEFT);
    }
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; q += 8) {
      Tile<Warp> D = zero_tile(warp);
      GPUCHOLMOD_UNROLL
      for (int h = 0; h < 2; ++h) warp.template multiply_add_rows<1>(D, C_left[h], W + 8 * h * LDW + q, LDW);
      store_left(warp, as_left(warp, D), to + Parts::Z + (a * K / 8 + q / 8) * LEFT);
    }
    return good;
  }

  /// Computes to <- the diagonal of C R, scaled, of the warp's sub-block, whose first row is `row`; C^-1 as
  /// invert_cholesky() leaves it. Returns false if an entry is no normal number as a T.
  GPUCHOLMOD_HOST_DEVICE bool find_diagonal(const Warp& warp, const A* sC_inverse, index_t row, A* to) {
    return warp.leading([&](int lane) {
      if (lane >= IB) return true;
      const A entry = R_diagonal_[warp][lane] / sC_inverse[lane * (LDC + 1)] * A(s_.scaling.of(row + lane));
      to[lane] = entry;
      return is_normal(T(entry));
    }) == LANES;
  }

  /// Returns whether all eigenvalues of the H behind the row block are above the bound (downdate), or below the bound
  /// (update).
  GPUCHOLMOD_HOST_DEVICE bool passes(const Warp& warp) {
    A* const H = this->H(SUBS);
    warp.each([&](int lane) {
      GPUCHOLMOD_NO_UNROLL for (int i = lane; i < KP * KP; i += LANES) {
        const int q = i / KP, l = i % KP;
        H[q * LDW + l] = -s_.sigma * (H[q * LDW + l] - (q == l ? s_.bound : 0));
      }
    });
    warp.sync();
    return invert_factor<KP>(warp, H, H, work(SUBS));
  }

  Team team_;
  const Segment& s_;
  int finisher_;
  StagingRing& ring_;
  A* shared_;
  bool renewed_ = false;  ///< true if H has been renewed: then P is P_s, H is H_s
  int from_ = 0;          ///< the row block before which H was renewed
  A mean_growth_ = 0;     ///< mean_growth() at the last look at H
  typename Team::template PerWarp<Tile<Warp>> sum_;  ///< the warp's tile of the sum of P'P
  typename Team::template PerWarp<typename Warp::template PerLane<A>> R_diagonal_;  ///< R_ii of the row block at hand
};

}  // namespace gpucholmod::block_columns
