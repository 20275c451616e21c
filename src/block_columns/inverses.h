#pragma once

#include "block_columns/segment.h"
#include "block_columns/small_matrices.h"

namespace gpucholmod::block_columns {

/// The shared memory for inverting `count` diagonal blocks, in words, and the number of warps that invert them.
template <int count>
struct InverseMemory {
  static constexpr int warps = count * SUBS;
  static constexpr int block = NB * LDB, D = 0, X = D + count * block, E = X + count * block;
  static constexpr int norms = E;  ///< norms of find_norms(), in the place of E, which is no longer needed then
  static constexpr int partial = E + warps * IB * LDC, left = partial + warps, words = left + 3 * warps;
  static_assert(count * 2 * NB <= warps * IB * LDC);
};
template <class Team>
using InverseMemoryOf = InverseMemory<Team::Warp::Card::inverted_at_once>;

/// Copies tiles (c - above, c) of R to sD, by rows, for c from `first` on in the order of the segment. If R has no such
/// tile, copies the diagonal block (c, c) in its place.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE void take_tiles(Team team, const S& s, int first, int above, typename S::Arithmetic* sD) {
  using T = typename S::Scalar;
  constexpr int count = Team::Warp::Card::inverted_at_once, threads = InverseMemory<count>::warps * LANES,
                batch = NB * NB / threads;  // loads in flight at a time, as each takes long
  // Row and column of element i. A warp has 4 rows and 8 columns; two neighbouring rows of these lie in 16 different
  // pairs of banks.
  const auto row = [](int i) { return i % 4 + i / LANES % (NB / 4) * 4; };
  const auto column = [](int i) { return i / 4 % 8 + i / LANES / (NB / 4) * 8; };
  team.threads_sync([&](int thread) {
    T tile[count][batch];
    GPUCHOLMOD_UNROLL for (int x = 0; x < count; ++x) {
      const int c = first + x;
      const int b = c - above < s.top ? c : c - above;
      const T* from = s.tile(b, c);
      GPUCHOLMOD_UNROLL for (int j = 0; j < batch; ++j)
        tile[x][j] = from[column(thread + j * threads) * s.ld + row(thread + j * threads)];
    }
    GPUCHOLMOD_UNROLL for (int x = 0; x < count; ++x)
      GPUCHOLMOD_UNROLL for (int j = 0; j < batch; ++j)
      sD[(x * NB + row(thread + j * threads)) * LDB + column(thread + j * threads)] =
          typename S::Arithmetic(tile[x][j]);
  });
}

/// Computes partial <- ||R_bb||_F^2 and ||X||_F^2 of each block, each in two parts.
template <class Team, class A>
GPUCHOLMOD_HOST_DEVICE void find_condition(Team team, const A* sD, const A* sX, A* partial) {
  using Warp = typename Team::Warp;
  team.warps_sync([&](Warp& warp) {
    const A* from = (warp.id % 2 == 1 ? sX : sD) + warp.id / 2 * (InverseMemoryOf<Team>::block / 2);
    typename Warp::template PerLane<A> sum;
    warp.each([&](int lane) {
      A part[4] = {};
      GPUCHOLMOD_NO_UNROLL for (int l = 0; l < NB / 2; l += 2)
        GPUCHOLMOD_UNROLL for (int i = 0; i < 4; ++i) {
          const A e = from[(l + i / 2) * LDB + i % 2 * LANES + lane];
          part[i] += e * e;
        }
      sum[lane] = (part[0] + part[1]) + (part[2] + part[3]);
    });
    const A all = warp.total(sum);
    warp.once([&] { partial[warp.id] = all; });
  });
}

/// Returns whether solving with diagonal block x uses its inverse alone.
template <class A>
GPUCHOLMOD_HOST_DEVICE bool is_well_conditioned(const A* partial, int x) {
  const A* const part = partial + x * SUBS;
  return (part[0] + part[2]) * (part[1] + part[3]) < A(unrefined * unrefined);
}

/// Computes norms <- for each block, the 2-norms of the rows of R_bb, then of the columns of X. Each thread finds one
/// norm, and begins at another element than its neighbours, so that the lanes of a warp read different banks.
template <class Team, class A>
GPUCHOLMOD_HOST_DEVICE void find_norms(Team team, const A* sD, const A* sX, A* norms) {
  team.threads_sync([&](int thread) {
    const int i = thread % NB;
    const A* from = (thread / NB % 2 == 1 ? sX : sD) + (thread / (2 * NB) * NB + i) * LDB;
    A part[4] = {};
    GPUCHOLMOD_NO_UNROLL for (int l = 0; l < NB; l += 4)
      GPUCHOLMOD_UNROLL for (int j = 0; j < 4; ++j) {
        const A e = from[(l + j + i) % NB];
        part[j] += e * e;
      }
    norms[thread] = sqrt((part[0] + part[1]) + (part[2] + part[3]));
  });
}

/// Returns the sum of the squares of rows m .. m + 15 of I - X R, or, in the order back, of I - R X: R by rows, X by
/// columns, both with leading dimension LDB.
template <Order order, class Warp>
GPUCHOLMOD_HOST_DEVICE auto left_of_identity(const Warp& warp, const typename Warp::Arithmetic* sR,
                                             const typename Warp::Arithmetic* sX, int m) {
  using A = typename Warp::Arithmetic;
  constexpr bool forward = order == Order::forward;
  typename Warp::template PerLane<A> sum;
  warp.each([&](int lane) { sum[lane] = 0; });
  Left<Warp> left[NB / 8];
  GPUCHOLMOD_UNROLL for (int l = 0; l < NB / 8; ++l)
    left[l] =
        forward ? load_left_transposed(warp, sX + 8 * l * LDB + m, LDB) : load_left(warp, sR + m * LDB + 8 * l, LDB);
  GPUCHOLMOD_NO_UNROLL for (int n = m; n < NB; n += 8) {  // both factors are upper
    Tile<Warp> D[2] = {zero_tile(warp), zero_tile(warp)};
    GPUCHOLMOD_UNROLL for (int l = 0; l < NB / 8; ++l) {
      if (8 * l < m || 8 * l > n) continue;
      if constexpr (forward) warp.template multiply_add_rows<1>(D[l % 2], left[l], sR + 8 * l * LDB + n, LDB);
      else warp.template multiply_add<1, Access::shared>(D[l % 2], left[l], sX + n * LDB + 8 * l, LDB);
    }
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e) {
        const A d = D[0][lane].e[e] + D[1][lane].e[e] - on_diagonal<A>(m, n, lane, e);
        sum[lane] += d * d;
      }
    });
  }
  return warp.total(sum);
}

/// The three sums that decide how to solve with an inverse. `left` has a part of each sum from every warp, over 16 rows
/// or columns of a block.
struct PartsLeft {
  static constexpr int forward = int(Order::forward);  ///< index of the sum ||I - X R_bb||_F^2
  static constexpr int back = int(Order::back);          ///< index of the sum ||I - R_bb X||_F^2
  static constexpr int spread = 2;   ///< index of the sum over l of ||X(:, l)|| ||R_bb(l, :)||
  template <class A>
  GPUCHOLMOD_HOST_DEVICE static A sum(const A* left, int warps, int x, int which) {
    const A* const part = left + which * warps + x * SUBS;
    return (part[0] + part[1]) + (part[2] + part[3]);
  }
};

/// Finds the parts of the sums of PartsLeft for each block that is not well-conditioned. `both`: for both orders, not
/// only for the order of the segment.
template <Order order, bool both, class Team, class A>
GPUCHOLMOD_HOST_DEVICE void find_left(Team team, const A* sD, const A* sX, const A* partial, const A* norms, A* left) {
  using Warp = typename Team::Warp;
  team.warps_sync([&](Warp& warp) {
    const int x = warp.id / SUBS, m = warp.id % SUBS * IB, block = x * NB * LDB;
    if (is_well_conditioned(partial, x)) return;
    A forward = 0, back = 0;
    if constexpr (both || order == Order::forward)
      forward = left_of_identity<Order::forward>(warp, sD + block, sX + block, m);
    if constexpr (both || order == Order::back) back = left_of_identity<Order::back>(warp, sD + block, sX + block, m);
    const A* const own = norms + x * 2 * NB + m;
    typename Warp::template PerLane<A> products;
    warp.each([&](int lane) { products[lane] = lane < IB ? own[lane] * own[NB + lane] : 0; });
    const A spread = warp.total(products);
    warp.once([&] {
      left[PartsLeft::forward * team.size() + warp.id] = forward;
      left[PartsLeft::back * team.size() + warp.id] = back;
      left[PartsLeft::spread * team.size() + warp.id] = spread;
    });
  });
}

/// Returns how to solve with the inverse of block x, which is not well-conditioned; `which`: forward or back.
template <class A>
GPUCHOLMOD_HOST_DEVICE Solving refined_or_substituted(const A* left, int warps, int x, int which) {
  const A rho = sqrt(PartsLeft::sum(left, warps, x, which)) +
                8 * unit_roundoff<A> * PartsLeft::sum(left, warps, x, PartsLeft::spread);
  return rho < refinable<A> ? by_refinement : by_substitution;  // by_substitution if rho is NaN, too
}

/// Writes how to solve (Solving) behind the inverse of each block, from `first` on, that is not well-conditioned.
/// `both`: for solving in both orders.
template <bool both, class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void put_solving(Team team, const S& s, int first) {
  using A = typename S::Arithmetic;
  using M = InverseMemoryOf<Team>;
  A *sD = team.shared + M::D, *sX = team.shared + M::X, *norms = team.shared + M::norms,
    *partial = team.shared + M::partial, *left = team.shared + M::left;
  find_norms(team, sD, sX, norms);
  find_left<S::order, both>(team, sD, sX, partial, norms, left);
  team.threads_sync([&](int thread) {
    constexpr int count = Team::Warp::Card::inverted_at_once;
    const int x = thread % count, which = thread / count;
    if (which > 1 || is_well_conditioned(partial, x) || (!both && which != int(S::order))) return;
    s.inverse(first + x)[solving_at + which] = refined_or_substituted(left, M::warps, x, which);
  });
}

/// Inverts Card::inverted_at_once diagonal blocks, from `first` on. Writes each inverse to global memory, and behind
/// the inverse the diagonal of R and how to solve (Solving). By a team of InverseMemory::warps warps. `both`: as in
/// put_solving().
template <bool both = false, class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void invert_blocks(Team team, const S& s, int first) {
  using Warp = typename Team::Warp;
  using A = typename S::Arithmetic;
  using M = InverseMemoryOf<Team>;
  constexpr int count = Warp::Card::inverted_at_once;
  A *sD = team.shared + M::D, *sX = team.shared + M::X, *partial = team.shared + M::partial;
  take_tiles(team, s, first, 0, sD);
  invert_diagonal_blocks(team, sD, sX, team.shared + M::E);
  find_condition(team, sD, sX, partial);
  team.warps_sync([&](Warp& warp) {
    constexpr int at_a_time = 4;  // columns, none of which waits for the column before
    GPUCHOLMOD_NO_UNROLL for (int c = warp.id * at_a_time; c < count * NB; c += M::warps * at_a_time)
      warp.each([&](int lane) {
        const A* const from = sX + c * LDB + lane;
        A* const to = s.inverse(first + c / NB) + c % NB * LDT + lane;
        GPUCHOLMOD_UNROLL for (int l = 0; l < at_a_time; ++l)
          GPUCHOLMOD_UNROLL for (int row = 0; row < NB; row += LANES) to[l * LDT + row] = from[l * LDB + row];
        if (lane >= LDT - NB) return;
        GPUCHOLMOD_UNROLL for (int l = 0; l < at_a_time; ++l)
          to[l * LDT + NB] = NB + lane == diagonal_at ? sD[(c + l) * LDB + (c + l) % NB] : A(by_inverse);
      });
  });
  bool well_conditioned = true;
  for (int x = 0; x < count; ++x) well_conditioned = is_well_conditioned(partial, x) && well_conditioned;
  if (!well_conditioned) put_solving<both>(team, s, first);
  team.once([&] { Warp::add_release(s.inverted, 1, s.is_led()); });
}

/// Copies inverses that an earlier launch has found to the place in the team's memory where invert_blocks() leaves
/// them.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void take_inverses(Team team, const S& s, int first) {
  using M = InverseMemoryOf<Team>;
  typename S::Arithmetic* sX = team.shared + M::X;
  team.threads_sync([&](int thread) {
    for (int x = 0; x < Team::Warp::Card::inverted_at_once; ++x) {
      const auto* from = s.inverse(first + x);
      GPUCHOLMOD_UNROLL
      for (int i = thread; i < NB * NB; i += M::warps * LANES)
        sX[(x * NB + i / NB) * LDB + i % NB] = from[i / NB * LDT + i % NB];
    }
  });
}

/// Computes the links of block columns c, Card::inverted_at_once of them from `first` on, but none before `begin`: G =
/// R_(c-1)c X_c, or X_c R_c(c-1) in the order back. X is in the team's memory as invert_blocks() leaves it. The first
/// block column of the factor has no link, and the place of a link before `begin` may hold a diagonal block from
/// Householder steps (rejected.h). Element (m, l) of the left factor of G'P, or of GP, is at m * LDT + l.
///
///     forward   G(l, m) = sum over j of R_(c-1)c(l, j) X(j, m)     left X' by rows m, tile by rows l
///     back      G(m, l) = sum over j of X(m, j) R_c(c-1)(j, l)     left X by rows m, tile by columns l
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void link_blocks(Team team, const S& s, int begin, int first) {
  using Warp = typename Team::Warp;
  constexpr bool forward = S::order == Order::forward;
  typename S::Arithmetic *sD = team.shared + InverseMemoryOf<Team>::D, *sX = team.shared + InverseMemoryOf<Team>::X;
  take_tiles(team, s, first, 1, sD);
  team.warps_sync([&](Warp& warp) {
    const int x = warp.id / SUBS, m = warp.id % SUBS * IB, c = first + x;
    if (c < begin) return;
    Left<Warp> X[NB / 8];
    GPUCHOLMOD_UNROLL for (int j = 0; j < NB / 8; ++j)
      X[j] = forward ? load_left(warp, sX + (x * NB + m) * LDB + 8 * j, LDB)
                     : load_left_transposed(warp, sX + (x * NB + 8 * j) * LDB + m, LDB);
    GPUCHOLMOD_NO_UNROLL for (int l = 0; l < NB; l += 16) {
      Tile<Warp> D[2] = {zero_tile(warp), zero_tile(warp)};
      GPUCHOLMOD_UNROLL for (int j = 0; j < NB / 8; ++j)
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
          if (forward ? 8 * j >= m + IB : 8 * j + 8 <= m) continue;  // X is upper
          const int n = l + 8 * half;
          if constexpr (forward)
            warp.template multiply_add<1, Access::shared>(D[half], X[j], sD + (x * NB + n) * LDB + 8 * j, LDB);
          else warp.template multiply_add_rows<1>(D[half], X[j], sD + (x * NB + 8 * j) * LDB + n, LDB);
        }
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
        store_tile(warp, D[half], s.links + index_t(c) * INVERSE + m * LDT + l + 8 * half, LDT);
    }
  });
  team.once([&] { Warp::add_release(s.linked, 1, s.is_led()); });
}

/// Returns the word that is 1 if the links of the block columns from `first` on have been found, otherwise 0. The word
/// is stored behind the last column of the last of these links, where a diagonal block from Householder steps does not
/// reach.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE typename S::Arithmetic& are_linked(const Team&, const S& s, int first) {
  constexpr int place = (NB - 1) * LDT + NB;
  static_assert(place >= NB * NB && place < INVERSE);
  return s.links[index_t(first + Team::Warp::Card::inverted_at_once - 1) * INVERSE + place];
}

/// Computes the inverses and the links of the block columns from `first` on, in the first turn of a pass. Leaves out
/// the links if a row block has been rejected by then (`stop`), as this turn no longer needs them; not if several ranks
/// work together.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE void invert_and_link(Team team, const S& s, const int* stop, int first) {
  using Warp = typename Team::Warp;
  invert_blocks(team, s, first);
  const bool now = s.several() || team.all_sync([&](Warp&) { return Warp::load_acquire(stop) == 0; });
  if (now) link_blocks(team, s, s.top + 1, first);
  team.once([&] { are_linked(team, s, first) = now; });
}

/// Computes the links that the first turn has left out, in a later turn, whose segment begins with row block `begin`.
/// Links before `begin` are no longer needed and not computed, but are counted in `linked`.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE void link_later(Team team, const S& s, int begin, int first) {
  if (are_linked(team, s, first) != 0) return;
  take_inverses(team, s, first);
  link_blocks(team, s, begin, first);
  team.once([&] { are_linked(team, s, first) = 1; });
}

}  // namespace gpucholmod::block_columns
