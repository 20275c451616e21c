#pragma once

#include "cuda/kernels/segment.cuh"

namespace gpucholmod::cuda {

constexpr int most_gangs = 8;

/// The right-hand sides of a launch, CHAIN_COLUMNS to each block group (`gang`). The block groups share R, its inverses
/// and its links, and do not wait for each other. If a factor is spread over several GPUs, each GPU has a launch of its
/// own, and these launches have to run at once; the first GPU alone solves, sends P and adds up.
template <class T, block_columns::Order order>
struct Gangs {
  int count;
  bool inverted;  ///< True if the inverses have been computed before
  int* refused;   ///< flag that becomes 1 if an entry of a solution is not finite
  block_columns::Segment<T, order> of[most_gangs];
};

/// Solves by forward or back substitution, as the chain of a segment, in one launch. Writes the solutions to the
/// transforms of each block group.
///
///   Grid      s.solvers + s.here(s.advancers) blocks for each block group, in clusters if the card has them, all of
///             which must run at once
///   Threads   segment_threads, one block a multiprocessor; in a block that advances, ADVANCE_WARPS warps advance and
///             one warp feeds them; on the first of several GPUs one more adds up, and SEND_P_WARPS more send
///   Shared    fixed_words<CHAIN_COLUMNS, Card, double> doubles, or those of AdvanceMemory if these are more
template <class T, block_columns::Order order>
__global__ void __launch_bounds__(segment_threads, 1) substitute(const GPUCHOLMOD_GRID_CONSTANT Gangs<T, order> gangs) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  using namespace block_columns;
  extern __shared__ __align__(128) double shared[];
  const int warp = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES;
  const int blocks = int(gridDim.x) / gangs.count, gang = int(blockIdx.x) / blocks;
  const Segment<T, order>& s = gangs.of[gang];
  const int block = int(blockIdx.x) % blocks, advancer = block - s.solvers, advancers = s.here(s.advancers);
  constexpr int at_once = DeviceWarp::Card::inverted_at_once, inverting = InverseMemory<at_once>::warps;
  if (advancer >= 0 && warp < inverting)
    for (int i = (gang * advancers + advancer) * at_once; s.own_column(i) < s.blocks;
         i += gangs.count * advancers * at_once) {
      const int c = s.own_column(i);
      const DeviceTeam team{shared, {warp, lane}, 1, inverting};
      if (gangs.inverted) take_inverses(team, s, c);
      else invert_blocks<true>(team, s, c);
      link_blocks(team, s, s.top + 1, c);
    }
  __syncthreads();
  if (advancer < 0) return solve_role<CHAIN_COLUMNS>(s, block, shared, warp, lane);
  advance_role<CHAIN_COLUMNS, true>(s, advancer, shared, warp, lane);
  if (!s.several() || s.is_led()) return;
  constexpr int adding = ADVANCE_WARPS + 1, sending = adding + 1;
  static_assert(sending + SEND_P_WARPS <= segment_warps);
  if (warp == adding) {
    if constexpr (order == Order::back) add_up<CHAIN_COLUMNS>(DeviceWarp{0, lane}, s, advancer, advancers);
  } else if (warp >= sending && warp < sending + SEND_P_WARPS) {
    const DeviceTeam team{nullptr, {warp - sending, lane}, 2, SEND_P_WARPS};
    Send<Segment<T, order>, CHAIN_COLUMNS, DeviceTeam>(team, s, advancer, advancers).send_P(s.blocks - 1 - REACH);
  }
#endif
}

/// Copies the solutions to the place of the right-hand sides. Grid: a block for each block column and block group.
template <class T, block_columns::Order order>
__global__ void collect_solutions(const GPUCHOLMOD_GRID_CONSTANT Gangs<T, order> gangs) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  using namespace block_columns;
  const Segment<T, order>& s = gangs.of[blockIdx.y];
  const index_t c = blockIdx.x, ldv = index_t(s.blocks) * NB;
  const double* P = s.transforms + c * BlockTransform<CHAIN_COLUMNS>::stride + BlockTransform<CHAIN_COLUMNS>::P;
  bool finite = true;
  for (int i = int(threadIdx.x); i < NB * CHAIN_COLUMNS; i += int(blockDim.x)) {
    const double x = P[i / NB * LDB + i % NB];
    finite = finite && isfinite(x);
    s.V[i / NB * ldv + index_t(s.place(int(c))) * NB + i % NB] = x;
  }
  if (!finite) *gangs.refused = 1;
#endif
}

}  // namespace gpucholmod::cuda
