#pragma once

#include "block_columns/segment.h"
#include "block_columns/small_matrices.h"

namespace gpucholmod::block_columns {

/// Shared memory that inverting `count` diagonal blocks takes, in words, and the warps that do it.
template <int count>
struct InverseMemory {
  static constexpr int warps = count * SUBS;
  static constexpr int block = NB * LDB, D = 0, X = D + count * block, E = X + count * block, partial = E + warps * IB * LDC,
                       words = partial + warps;
};
template <class Team>
using InverseMemoryOf = InverseMemory<Team::Warp::Card::inverted_at_once>;

/// Tiles (c - above, c) of R, c counting from `first` in the order of the segment, by rows; where there is none, some other one.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE void take_tiles(Team team, const S& s, int first, int above, typename S::Arithmetic* sD) {
  using T = typename S::Scalar;
  constexpr int count = Team::Warp::Card::inverted_at_once, threads = InverseMemory<count>::warps * LANES,
                batch = NB * NB / threads;  // loads at a time, as each takes long
  // Thread i of a batch: a warp has 4 rows and 8 columns, which lie in 16 different pairs of banks, half by half.
  const auto row = [](int i) { return i % 4 + i / LANES % (NB / 4) * 4; };
  const auto column = [](int i) { return i / 4 % 8 + i / LANES / (NB / 4) * 8; };
  team.threads_sync([&](int thread) {
    T tile[count][batch];
    GPUCHOLMOD_UNROLL for (int x = 0; x < count; ++x) {
      const int c = first + x;
      const T* from = s.tile(c - above < s.top ? c : c - above, c);
      GPUCHOLMOD_UNROLL for (int j = 0; j < batch; ++j)
        tile[x][j] = from[column(thread + j * threads) * s.ld + row(thread + j * threads)];
    }
    GPUCHOLMOD_UNROLL for (int x = 0; x < count; ++x)
      GPUCHOLMOD_UNROLL for (int j = 0; j < batch; ++j)
        sD[(x * NB + row(thread + j * threads)) * LDB + column(thread + j * threads)] = typename S::Arithmetic(tile[x][j]);
  });
}

/// The inverses of diagonal blocks from `first` on, as many as are inverted at once, to global memory, each with a word at refine_at. By
/// a team of InverseMemory::warps warps.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void invert_blocks(Team team, const S& s, int first) {
  using Warp = typename Team::Warp;
  using A = typename S::Arithmetic;
  using M = InverseMemoryOf<Team>;
  A *sD = team.shared + M::D, *sX = team.shared + M::X, *partial = team.shared + M::partial;
  take_tiles(team, s, first, 0, sD);
  invert_diagonal_blocks(team, sD, sX, team.shared + M::E);
  team.warps_sync([&](Warp& warp) {  // ||R_bb||_F^2 and ||X||_F^2, in two parts each
    const A* from = (warp.id % 2 == 1 ? sX : sD) + warp.id / 2 * (M::block / 2);
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
  team.threads_sync([&](int thread) {
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < Warp::Card::inverted_at_once * INVERSE; i += team.size() * LANES) {
      const int row = i % LDT, column = i / LDT;
      A* to = s.inverse(first + column / NB) + i % INVERSE;
      const A* part = partial + column / NB * 4;
      const A squared = (part[0] + part[2]) * (part[1] + part[3]);
      *to = i % INVERSE == refine_at ? (squared < A(unrefined * unrefined) ? 0 : squared < solvable<A> * solvable<A> ? 1 : 2)
                                      : row < NB ? sX[column * LDB + row] : 0;
    }
  });
  team.once([&] { Warp::add_release(s.inverted, 1, s.is_led()); });
}

/// To the team's memory what invert_blocks() leaves there, where the inverses have been found before.
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void take_inverses(Team team, const S& s, int first) {
  using M = InverseMemoryOf<Team>;
  typename S::Arithmetic* sX = team.shared + M::X;
  team.threads_sync([&](int thread) {
    for (int x = 0; x < Team::Warp::Card::inverted_at_once; ++x) {
      const auto* from = s.inverse(first + x);
      GPUCHOLMOD_UNROLL for (int i = thread; i < NB * NB; i += M::warps * LANES) sX[(x * NB + i / NB) * LDB + i % NB] = from[i / NB * LDT + i % NB];
    }
  });
}

/// The links of the same block columns c, G = R_(c-1)c X_c, or X_c R_c(c-1) in the order back, X being in the
/// team's memory as invert_blocks() leaves it. The left factor of G'P, or GP, is at m * LDT + l.
///
///     forward   G(l, m) = sum over j of R_(c-1)c(l, j) X(j, m)     left X' by rows m, tile by rows l
///     back      G(m, l) = sum over j of X(m, j) R_c(c-1)(j, l)     left X by rows m, tile by columns l
template <class S, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void link_blocks(Team team, const S& s, int first) {
  using Warp = typename Team::Warp;
  constexpr bool forward = S::order == Order::forward;
  typename S::Arithmetic *sD = team.shared + InverseMemoryOf<Team>::D, *sX = team.shared + InverseMemoryOf<Team>::X;
  take_tiles(team, s, first, 1, sD);
  team.warps_sync([&](Warp& warp) {
    const int x = warp.id / SUBS, m = warp.id % SUBS * IB, c = first + x;
    if (c == s.top) return;
    Left<Warp> X[NB / 8];
    GPUCHOLMOD_UNROLL for (int j = 0; j < NB / 8; ++j)
      X[j] = forward ? load_left(warp, sX + (x * NB + m) * LDB + 8 * j, LDB) : load_left_transposed(warp, sX + (x * NB + 8 * j) * LDB + m, LDB);
    GPUCHOLMOD_NO_UNROLL for (int l = 0; l < NB; l += 16) {
      Tile<Warp> D[2] = {zero_tile(warp), zero_tile(warp)};
      GPUCHOLMOD_UNROLL for (int j = 0; j < NB / 8; ++j)
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
          if (forward ? 8 * j >= m + IB : 8 * j + 8 <= m) continue;  // X is upper
          const int n = l + 8 * half;
          if constexpr (forward) warp.template multiply_add<1, Access::shared>(D[half], X[j], sD + (x * NB + n) * LDB + 8 * j, LDB);
          else warp.template multiply_add_rows<1>(D[half], X[j], sD + (x * NB + 8 * j) * LDB + n, LDB);
        }
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
        store_tile(warp, D[half], s.links + index_t(c) * INVERSE + m * LDT + l + 8 * half, LDT);
    }
  });
  team.once([&] { Warp::add_release(s.linked, 1, s.is_led()); });
}

}  // namespace gpucholmod::block_columns
