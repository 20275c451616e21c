#pragma once

#include "block_columns/segment.h"
#include "block_columns/small_matrices.h"

namespace gpucholmod::block_columns {

/// Shared memory that inverting two diagonal blocks takes, in doubles.
struct InverseMemory {
  static constexpr int D = 0, X = D + 2 * INVERSE, E = X + 2 * INVERSE, partial = E + 8 * IB * LDC, words = partial + 8;
};

/// The inverses of diagonal blocks 2 * pair and 2 * pair + 1, to global memory, each with a word that tells whether it is to be
/// refined when used. By a team of 8 warps.
template <class T, class Team>
GPUCHOLMOD_HOST_DEVICE_CALL void invert_pair(Team team, const Segment<T>& s, int pair) {
  using Warp = typename Team::Warp;
  using S = InverseMemory;
  double *sD = team.shared + S::D, *sX = team.shared + S::X, *partial = team.shared + S::partial;
  team.threads_sync([&](int thread) {
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < 2 * NB * NB; i += team.size() * LANES) {
      const int x = i / (NB * NB), l = i / NB % NB, r = i % NB;
      const index_t first = index_t(2 * pair + x) * NB;
      sD[(x * NB + r) * LDB + l] = double(s.R[(first + l) * s.ld + first + r]);
    }
  });
  invert_diagonal_blocks(team, sD, sX, team.shared + S::E);
  team.warps_sync([&](Warp& warp) {  // ||R_bb||_F^2 and ||X||_F^2, in two parts each
    const double* from = (warp.id % 2 == 1 ? sX : sD) + warp.id / 2 * (INVERSE / 2);
    typename Warp::template PerLane<double> sum;
    warp.each([&](int lane) {
      sum[lane] = 0;
      for (int i = lane; i < INVERSE / 2; i += LANES)
        if (i % LDB < NB) sum[lane] += from[i] * from[i];
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

}  // namespace gpucholmod::block_columns
