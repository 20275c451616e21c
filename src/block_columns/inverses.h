#pragma once

#include "block_columns/segment.h"
#include "block_columns/small_matrices.h"

namespace gpucholmod::block_columns {

/// Shared memory that inverting two diagonal blocks takes, in doubles.
struct InverseMemory {
  static constexpr int D = 0, X = D + 2 * INVERSE, E = X + 2 * INVERSE, partial = E + 8 * IB * LDC, words = partial + 8;
};

/// Tiles (c - above, c) of R, c = 2 * pair and 2 * pair + 1, by rows; where there is none, some other one.
template <class T, class Team>
GPUCHOLMOD_HOST_DEVICE void take_tiles(Team team, const Segment<T>& s, int pair, int above, double* sD) {
  constexpr int threads = WARPS * LANES, batch = 16;  // loads at a time, as each takes long
  // Thread i of a batch: a warp has 4 rows and 8 columns, which lie in 16 different pairs of banks, half by half.
  const auto row = [](int i) { return i % 4 + i / LANES % (NB / 4) * 4; };
  const auto column = [](int i) { return i / 4 % 8 + i / LANES / (NB / 4) * 8; };
  team.threads_sync([&](int thread) {
    T tile[2][batch];
    GPUCHOLMOD_UNROLL for (int x = 0; x < 2; ++x) {
      const int c = 2 * pair + x;
      const T* from = s.R + index_t(c) * NB * s.ld + index_t(c < above ? 0 : c - above) * NB;
      GPUCHOLMOD_UNROLL for (int j = 0; j < batch; ++j)
        tile[x][j] = from[column(thread + j * threads) * s.ld + row(thread + j * threads)];
    }
    GPUCHOLMOD_UNROLL for (int x = 0; x < 2; ++x)
      GPUCHOLMOD_UNROLL for (int j = 0; j < batch; ++j)
        sD[(x * NB + row(thread + j * threads)) * LDB + column(thread + j * threads)] = double(tile[x][j]);
  });
  static_assert(batch * threads == NB * NB);
}

/// The inverses of diagonal blocks 2 * pair and 2 * pair + 1, to global memory, each with a word that tells whether it is to be
/// refined when used. By a team of 8 warps.
template <class T, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void invert_pair(Team team, const Segment<T>& s, int pair) {
  using Warp = typename Team::Warp;
  using S = InverseMemory;
  double *sD = team.shared + S::D, *sX = team.shared + S::X, *partial = team.shared + S::partial;
  take_tiles(team, s, pair, 0, sD);
  invert_diagonal_blocks(team, sD, sX, team.shared + S::E);
  team.warps_sync([&](Warp& warp) {  // ||R_bb||_F^2 and ||X||_F^2, in two parts each
    const double* from = (warp.id % 2 == 1 ? sX : sD) + warp.id / 2 * (INVERSE / 2);
    typename Warp::template PerLane<double> sum;
    warp.each([&](int lane) {
      double part[4] = {};
      GPUCHOLMOD_NO_UNROLL for (int l = 0; l < NB / 2; l += 2)
        GPUCHOLMOD_UNROLL for (int i = 0; i < 4; ++i) {
          const double e = from[(l + i / 2) * LDB + i % 2 * LANES + lane];
          part[i] += e * e;
        }
      sum[lane] = (part[0] + part[1]) + (part[2] + part[3]);
    });
    const double all = warp.total(sum);
    warp.once([&] { partial[warp.id] = all; });
  });
  team.threads_sync([&](int thread) {
    double* to = s.inverses + index_t(2 * pair) * INVERSE;
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < 2 * INVERSE; i += team.size() * LANES) {
      const double* part = partial + i / INVERSE * 4;
      const bool accurate = (part[0] + part[2]) * (part[1] + part[3]) < unrefined * unrefined;
      to[i] = i % INVERSE == refine_at ? !accurate : sX[i];
    }
  });
  team.once([&] { Warp::add_release(s.inverted); });
}

/// The links of block columns c = 2 * pair and 2 * pair + 1, G = R_(c-1)c X, X being in the team's memory as invert_pair() has
/// left it: G(l, m) at m * LDB + l.
template <class T, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void link_pair(Team team, const Segment<T>& s, int pair) {
  using Warp = typename Team::Warp;
  double *sD = team.shared + InverseMemory::D, *sX = team.shared + InverseMemory::X;
  take_tiles(team, s, pair, 1, sD);
  team.warps_sync([&](Warp& warp) {
    const int x = warp.id / SUBS, m = warp.id % SUBS * IB, c = 2 * pair + x;
    if (c == 0) return;
    Left<Warp> X[NB / 8];
    GPUCHOLMOD_UNROLL for (int j = 0; j < NB / 8; ++j) X[j] = load_left(warp, sX + (x * NB + m) * LDB + 8 * j, LDB);
    GPUCHOLMOD_NO_UNROLL for (int l = 0; l < NB; l += 16) {
      Tile<Warp> D[2] = {zero_tile(warp), zero_tile(warp)};
      GPUCHOLMOD_UNROLL for (int j = 0; j < NB / 8; ++j)
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
          if (8 * j < m + IB)
            warp.template multiply_add<1, Access::shared>(D[half], X[j], sD + (x * NB + l + 8 * half) * LDB + 8 * j, LDB);
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
        store_tile(warp, D[half], s.links + index_t(c) * INVERSE + m * LDB + l + 8 * half, LDB);
    }
  });
  team.once([&] { Warp::add_release(s.linked); });
}

}  // namespace gpucholmod::block_columns
