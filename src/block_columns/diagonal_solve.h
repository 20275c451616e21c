#pragma once

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// Solves R_cc'P = V, or R_cc P = V in the order back, by substitution, for the CHAIN_COLUMNS columns of a cluster that
/// solves. The residual is of the order of rounding whatever the condition of R_cc (Higham 2002, theorem 8.5), so
/// substitution serves diagonal blocks whose inverse is too inaccurate. By one team of SOLVE_WARPS warps.
///
///   R    R_cc in global memory, with leading dimension ld, zero below the diagonal
///   sM   scratch, NB x LDT words: receives the rows of R_cc, or its columns in the order back, with 1 / R_ii on the
///        diagonal. The words behind row NB of each column stay as they are
///   sV   in: V(i, q) at q * LDB + i; out: P(i, q) at q * LDB + i
///
/// Each warp solves for two columns of V, without the other warps; a lane holds rows `lane` and `lane + LANES` of both.
/// Ends in a barrier.
template <Order order, class Team, class T>
GPUCHOLMOD_HOST_DEVICE_CALL void substitute_in_block(Team team, const T* R, index_t ld,
                                                     typename Team::Warp::Arithmetic* sM,
                                                     typename Team::Warp::Arithmetic* sV) {
  using Warp = typename Team::Warp;
  using A = typename Warp::Arithmetic;
  constexpr bool forward = order == Order::forward;
  constexpr int columns = CHAIN_COLUMNS / SOLVE_WARPS, batch = 8;
  team.threads_sync([&](int thread) {
    GPUCHOLMOD_NO_UNROLL for (int first = thread; first < NB * NB; first += batch * SOLVE_WARPS * LANES) {
      A entry[batch];  // all loads of a batch are in flight before the first arrives
      GPUCHOLMOD_UNROLL for (int l = 0; l < batch; ++l) {
        const int at = first + l * SOLVE_WARPS * LANES;
        entry[l] = A(Warp::template read<Access::transform>(R + at / NB * ld + at % NB));
      }
      GPUCHOLMOD_UNROLL for (int l = 0; l < batch; ++l) {
        const int at = first + l * SOLVE_WARPS * LANES, row = at % NB, column = at / NB;
        sM[forward ? row * LDT + column : column * LDT + row] = row == column ? 1 / entry[l] : entry[l];
      }
    }
  });
  team.warps_sync([&](Warp& warp) {
    typename Warp::template PerLane<A> low[columns], high[columns];
    A* const own = sV + warp.id * columns * LDB;
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int q = 0; q < columns; ++q) {
        low[q][lane] = own[q * LDB + lane];
        high[q][lane] = own[q * LDB + lane + LANES];
      }
    });
    GPUCHOLMOD_NO_UNROLL for (int step = 0; step < NB; ++step) {
      const int i = forward ? step : NB - 1 - step;
      const A* const row = sM + i * LDT;
      GPUCHOLMOD_UNROLL for (int q = 0; q < columns; ++q) {
        const A p = row[i] * warp.from_lane(i < LANES ? low[q] : high[q], i % LANES);
        const auto next = [&](int l, A v) {
          if (l == i) return p;
          return (forward ? l > i : l < i) ? v - row[l] * p : v;
        };
        warp.each([&](int lane) {
          low[q][lane] = next(lane, low[q][lane]);
          high[q][lane] = next(lane + LANES, high[q][lane]);
        });
      }
    }
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int q = 0; q < columns; ++q) {
        own[q * LDB + lane] = low[q][lane];
        own[q * LDB + lane + LANES] = high[q][lane];
      }
    });
  });
}

}  // namespace gpucholmod::block_columns
