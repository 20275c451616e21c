#pragma once

#include <type_traits>

#include "block_columns/guard.h"

namespace gpucholmod::block_columns {

/// Shared memory of a block of threads that finishes transforms, in words.
template <int K, class Card>
struct FinishMemory {
  static constexpr int KP = BlockTransform<K>::KP;
  static constexpr int LDW = KP + 8;  ///< of KP contiguous
  static constexpr int slots = Card::template finish_slots<K>;  ///< for P of row blocks
  static constexpr int P_words = KP * LDB;
  static constexpr int square = KP * LDW;
  static constexpr int scratch = IB * LDW + 2 * IB * LDC;  ///< of a sub-block, and of the guard, unless KP is 32
  static constexpr int of_guard = KP > IB ? invert_factor_words + IB * LDC : scratch;
  static_assert(KP == IB || scratch >= invert_factor_words);
  static constexpr int P = 0, H = P + slots * P_words, X = H + (SUBS + 1) * square, work = X + 2 * square,
                       words = work + SUBS * scratch + of_guard;
};

/// What H begins with, times sigma, in row q.
template <class S>
GPUCHOLMOD_HOST_DEVICE typename S::Arithmetic sign_of(const S& s, int q) { return q < HALF ? 1 : s.sigma * s.sigma2; }

/// Returns a tile of H, whose first row and column these are, from the sum of P'P.
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

/// Finishes the transforms of every finishers-th row block: H before each of its sub-blocks, a sum over all P so far;
/// then, of the sub-blocks side by side,
///
///   U_a'U_a = H_a     W_a = P_a U_a^-1     Z_a = W_a U_a'^-1     C_a'C_a = I + sigma W_a W_a'
///
/// of which C_a^-T and sigma C_a^-T Z_a are the transform, and whether the H behind the row block passes the guard. The
/// diagonal of R~ is found here as well, as that of C_a R_aa: so it is positive, and right to its own last digits,
/// however large what stands above it is. A row block of which an entry would leave the range of normal numbers is
/// rejected. With columns of both signs, S = diag(I, -I), H begins with S, and
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

  /// The ring's slots must hold zeros from row K of P on.
  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](Warp& warp) { sum_[warp] = zero_tile(warp); });
    GPUCHOLMOD_NO_UNROLL for (int i = 0; s_.first + i < s_.last(); ++i) {
      if (!team_.all_warps([&](Warp& warp) { return ring_.wait(warp, i); })) return;
      const bool own = i % s_.finishers == finisher_ && s_.first + i >= s_.start();
      team_.each_warp([&](Warp& warp) {
        if (own && warp.id < SUBS) take_diagonal(warp, s_.first + i);
        if (warp.id < tiles)
          GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
            if (own) store_H(warp, a);
            add_sub_block(warp, ring_.slot(i), a);
          }
        if (own) {
          if (warp.id < tiles) store_H(warp, SUBS);
          if (has_sides && warp.id < tiles && s_.first + i + 1 == s_.last()) leave_H(warp);
        } else {
          ring_.release(warp, i);
        }
      });
      if (!own) continue;
      const bool good = finish(s_.first + i, ring_.slot(i));
      team_.each_warp([&](Warp& warp) { ring_.release(warp, i); });
      if (!good) return drain(i + 1);
    }
  }

 private:
  /// Takes what still comes.
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
  /// Of the last columns of V.
  GPUCHOLMOD_HOST_DEVICE A last_sign() const { return KP > HALF ? s_.sigma2 : s_.sigma; }

  /// Of sub-block a; SUBS: behind the row block.
  GPUCHOLMOD_HOST_DEVICE A* H(int a) const { return shared_ + S::H + a * S::square; }
  /// U_a^-1, in the place of H_a, but for the first and the last of these, which a rejected row block asks for again.
  GPUCHOLMOD_HOST_DEVICE A* X(int a) const {
    return a == 0 ? shared_ + S::X : a == SUBS ? shared_ + S::X + S::square : H(a);
  }
  GPUCHOLMOD_HOST_DEVICE A* work(int a) const { return shared_ + S::work + a * S::scratch; }

  /// The warp's tile of H.
  GPUCHOLMOD_HOST_DEVICE static int row(const Warp& warp) { return warp.id % (KP / 16) * 16; }
  GPUCHOLMOD_HOST_DEVICE static int column(const Warp& warp) { return warp.id / (KP / 16) * 8; }

  /// R_ii of the warp's sub-block of row block b, as it stands behind the inverse of its diagonal block: long before it
  /// is needed, as it takes its time to come.
  GPUCHOLMOD_HOST_DEVICE void take_diagonal(const Warp& warp, int b) {
    const A* from = s_.inverse(b) + warp.id * IB * LDT + diagonal_at;
    warp.each([&](int lane) {
      if (lane < IB) R_diagonal_[warp][lane] = Warp::template read<Access::transform>(from + lane * LDT);
    });
  }

  /// The sum of P'P, with 16 rows more.
  GPUCHOLMOD_HOST_DEVICE void add_sub_block(const Warp& warp, const A* sP, int a) {
    GPUCHOLMOD_UNROLL for (int i = a * IB; i < (a + 1) * IB; i += 8)
      warp.template multiply_add<1, Access::shared>(sum_[warp], load_left(warp, sP + row(warp) * LDB + i, LDB),
                                                    sP + column(warp) * LDB + i, LDB);
  }

  /// The warp's tile of H as it is now.
  GPUCHOLMOD_HOST_DEVICE Tile<Warp> tile_of_H(const Warp& warp) {
    return tile_of_squares(warp, sum_[warp], row(warp), column(warp), s_);
  }
  /// H as it is now, as the one before sub-block a.
  GPUCHOLMOD_HOST_DEVICE void store_H(const Warp& warp, int a) {
    store_tile(warp, tile_of_H(warp), this->H(a) + row(warp) * LDW + column(warp), LDW);
  }
  /// H behind the last row block, for Closing.
  GPUCHOLMOD_HOST_DEVICE void leave_H(const Warp& warp) {
    A* const to = s_.transforms + index_t(s_.end) * Parts::stride + Parts::scaling;
    store_tile(warp, tile_of_H(warp), to + row(warp) * LDB + column(warp), LDB);
  }

  /// Row block b, whose P is in sP. False: rejected.
  GPUCHOLMOD_HOST_DEVICE bool finish(int b, const A* sP) {
    A* to = s_.transforms + index_t(b) * Parts::stride;
    team_.barrier();
    const bool good = team_.all_sync([&](Warp& warp) {
      if (warp.id < SUBS) return finish_sub_block(warp, b, warp.id, sP, to);
      if (warp.id == SUBS) return mixed() ? passes_below<KP>(warp, H(SUBS), X(SUBS), work(SUBS)) : passes(warp);
      return warp.id > SUBS + 1 || !mixed() || passes_above<KP>(warp, H(SUBS), work(SUBS) + invert_factor_words);
    });
    if (!good) {
      team_.threads_sync([&](int thread) {  // U^-1 of the H before this row block
        GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * KP; i += team_.size() * LANES)
          to[Parts::scaling + i / KP * LDB + i % KP] = X(0)[i / KP * LDW + i % KP];
      });
      const bool again = !team_.all_sync([&](Warp& warp) {
        if (warp.id > 0 || b == s_.first) return warp.id > 0;
        if (!mixed()) return passes_alone<KP>(warp, H(SUBS), H(0), s_.sigma * s_.bound, X(SUBS), work(SUBS));
        congruent<KP>(warp, H(SUBS), X(0), H(1), H(2));
        return passes_above<KP>(warp, H(2), work(0)) && passes_below<KP>(warp, H(2), X(SUBS), work(SUBS));
      });
      team_.reject(s_.state(), 2 * (s_.blocks - b) + again);
    }
    team_.once([&] { Warp::store_release(s_.complete(b), good ? accepted : rejected); });
    return good;
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
    // sigma Z_a takes the place of W_a, whose columns from q on it needs.
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; q += 8) {
      Tile<Warp> D = zero_tile(warp);
      GPUCHOLMOD_UNROLL for (int l = 0; l < KP; l += 8) {
        if (l == HALF) scale_tile(warp, D, s_.sigma * s_.sigma2);
        if (l >= q) warp.template multiply_add_rows<1>(D, load_left(warp, W + l, LDW), X + l * LDW + q, LDW);
      }
      scale_tile(warp, D, last_sign());
      warp.sync();
      store_tile(warp, D, W + q, LDW);
    }
    const index_t rows = index_t(b) * NB + a * IB;
    bool good = invert_cholesky(warp, M, LDC, C, LDC);
    warp.sync();
    good = find_diagonal(warp, C, rows, to + Parts::diagonal + a * IB) && good;
    Left<Warp> C_left[2];  // scaled, as sigma C_a^-T Z_a is then
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

  /// to <- the diagonal of C R for the warp's sub-block, scaled, whose first row is `row`: C^-1 as invert_cholesky()
  /// leaves it. Returns false where an entry is no normal number as a T.
  GPUCHOLMOD_HOST_DEVICE bool find_diagonal(const Warp& warp, const A* sC_inverse, index_t row, A* to) {
    return warp.leading([&](int lane) {
      if (lane >= IB) return true;
      const A entry = R_diagonal_[warp][lane] / sC_inverse[lane * (LDC + 1)] * A(s_.scaling.of(row + lane));
      to[lane] = entry;
      return is_normal(T(entry));
    }) == LANES;
  }

  /// Whether the H behind the row block has all its eigenvalues above the bound (downdate), or below it (update).
  GPUCHOLMOD_HOST_DEVICE bool passes(const Warp& warp) {
    A* const H = this->H(SUBS);
    warp.each([&](int lane) {
      GPUCHOLMOD_NO_UNROLL for (int i = lane; i < KP * KP; i += LANES) {
        const int q = i / KP, l = i % KP;
        H[q * LDW + l] = -s_.sigma * (H[q * LDW + l] - (q == l ? s_.bound : 0));
      }
    });
    warp.sync();
    return invert_factor<KP>(warp, H, X(SUBS), work(SUBS));
  }

  Team team_;
  const Segment& s_;
  int finisher_;
  StagingRing& ring_;
  A* shared_;
  typename Team::template PerWarp<Tile<Warp>> sum_;  ///< the warp's tile of the sum of P'P
  typename Team::template PerWarp<typename Warp::template PerLane<A>> R_diagonal_;  ///< of the row block at hand
};

}  // namespace gpucholmod::block_columns
