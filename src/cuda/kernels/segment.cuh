#pragma once

#include "block_columns/turns.h"
#include "block_columns/closing.h"
#include "block_columns/early_look.h"
#include "block_columns/finish.h"
#include "block_columns/inverses.h"
#include "block_columns/rejected.h"
#include "block_columns/trailing_update.h"
#include "block_columns/send.h"
#include "cuda/kernels/look.cuh"
#include "cuda/kernels/segment_memory.cuh"
#include "cuda/kernels/staging_ring.cuh"

namespace gpucholmod::cuda {

template <class A>
struct DevicePost {
  DeviceRing<A, DeviceWarpOf<A>::Card::tile_slots, true> tiles;
  DeviceRing<A, 1> X, V;
};

/// Where those who solve for the same columns have P from.
template <int K, class Segment>
__device__ __forceinline__ auto mail_of(const Segment& s, int cluster, int rank, typename Segment::Arithmetic* memory,
                                        Mbarrier* arrived) {
  using namespace block_columns;
  using Card = typename DeviceWarpOf<typename Segment::Arithmetic>::Card;
  if constexpr (Card::clusters) {
    return ClusterMail{memory, arrived, rank, Own<Segment, Card>{s, rank}.first_mail()};
  } else {
    return PublishedMail<Segment>{s, cluster, BlockTransform<K>::stride,
                                  s.transforms + BlockTransform<K>::P + cluster * CHAIN_COLUMNS * LDB};
  }
}

/// `block`: its number among those that solve.
template <int K, class Segment>
__device__ __forceinline__ void solve_role(const Segment& s, int block, double* shared, int warp, int lane) {
  using namespace block_columns;
  using A = typename Segment::Arithmetic;
  using Card = typename DeviceWarpOf<A>::Card;
  using S = SolveMemory<Card>;
  using Tiles = DeviceRing<A, Card::tile_slots, true>;
  using Single = DeviceRing<A, 1>;
  constexpr int solving = Card::solve_teams * SOLVE_WARPS, feeding = solving + Card::solve_teams;
  constexpr int tiles_at = REACH, tiles_state = (sizeof(typename Tiles::State) + 7) / 8,
                single_state = (sizeof(typename Single::State) + 7) / 8;
  constexpr int X_at = tiles_at + Card::solve_teams * tiles_state, V_at = X_at + single_state;
  static_assert(V_at + single_state <= 40 && segment_warps > feeding);
  double* const places = shared;
  A* const memory = reinterpret_cast<A*>(shared + 40);
  A* const work = memory + (Card::clusters ? ClusterMail::words : 0);
  const int cluster = block / Card::cluster, rank = block % Card::cluster;
  const int side = warp < solving ? warp / SOLVE_WARPS : warp % Card::solve_teams;
  auto mail = mail_of<K>(s, cluster, rank, memory, reinterpret_cast<Mbarrier*>(places));
  const auto tiles_of = [&](int side) {
    return Tiles{work + S::tiles + Card::tile_slots * side * S::tile, S::tile,
                 reinterpret_cast<typename Tiles::State*>(places + tiles_at + tiles_state * side)};
  };
  DevicePost<A> post{tiles_of(side),
                     {work + S::X, INVERSE, reinterpret_cast<typename Single::State*>(places + X_at)},
                     {work + S::V, S::V_words, reinterpret_cast<typename Single::State*>(places + V_at)}};
  if (threadIdx.x == 0) {
    if constexpr (Card::clusters) mail.init(s.start() - mail.first, Own<Segment, Card>{s, rank}.unused_mail());
    for (int side = 0; side < Card::solve_teams; ++side) tiles_of(side).init(SOLVE_WARPS);
    post.X.init(SOLVE_WARPS);
    post.V.init(SOLVE_WARPS);
    fence_barriers();
  }
  if constexpr (Card::clusters) mail.template put<K>(s, cluster);
  cluster_sync();
  const DeviceWarpOf<A> single{0, lane};
  if (warp < solving) {
    const DeviceTeamOf<A> team{nullptr, {warp % SOLVE_WARPS, lane}, 1 + side, SOLVE_WARPS};
    Solve<Segment, K, DeviceTeamOf<A>, decltype(mail), DevicePost<A>>(team, s, cluster, rank, side, mail, post).run();
  } else if (warp < feeding) {
    feed_tiles(single, s, rank, side, post.tiles);
  } else if (warp == feeding) {
    feed_solve<K>(single, s, cluster, rank, post.X, post.V);
  }
  __syncwarp();
  cluster_sync();  // nobody leaves while others may still write to its memory
}

template <int K, class Segment>
__device__ __forceinline__ void finish_role(const Segment& s, int finisher, double* shared, int warp, int lane) {
  using namespace block_columns;
  using A = typename Segment::Arithmetic;
  using Team = DeviceTeamOf<A>;
  using S = FinishMemory<K, typename Team::Warp::Card>;
  using StagingRing = DeviceRing<A, S::slots>;
  A* const memory = reinterpret_cast<A*>(shared + 32);
  StagingRing ring{memory + S::P, S::P_words, reinterpret_cast<typename StagingRing::State*>(shared)};
  if (threadIdx.x == 0) {
    ring.init(FINISH_WARPS);
    fence_barriers();
  }
  for (int i = int(threadIdx.x); i < S::slots * S::P_words; i += segment_threads) memory[S::P + i] = 0;
  __syncthreads();
  if (warp < FINISH_WARPS) {
    const Team team{memory, {warp, lane}, 1, FINISH_WARPS};
    Finish<Segment, K, Team, StagingRing>(team, s, finisher, ring).run();
  } else if (warp == FINISH_WARPS) {
    feed_finish<K>(Team{memory + S::work, {0, lane}, 2, 1}, s, finisher, ring);
  } else if (s.several()) {
    const int sender = warp - FINISH_WARPS - 1, other = sender - SEND_P_WARPS;
    const auto send = [&](Team team) { return Send<Segment, K, Team>(team, s, finisher, s.finishers); };
    if (sender < SEND_P_WARPS) send({nullptr, {sender, lane}, 2, SEND_P_WARPS}).send_P(s.end);
    else if (other < SEND_WARPS) send({nullptr, {other, lane}, 3, SEND_WARPS}).send_transforms();
  }
}

/// `advancer`: its number among those that advance, on this rank.
template <int K, bool alike = false, class Segment>
__device__ __forceinline__ void advance_role(const Segment& s, int advancer, double* shared, int warp, int lane) {
  using namespace block_columns;
  using A = typename Segment::Arithmetic;
  using Team = DeviceTeamOf<A>;
  using S = AdvanceMemory<K, typename Team::Warp::Card, A>;
  using StagingRing = DeviceRing<A, S::P_slots>;
  A* const memory = reinterpret_cast<A*>(shared);
  StagingRing ring{memory + S::P, K * LDB, reinterpret_cast<typename StagingRing::State*>(shared)};
  static_assert(sizeof(typename StagingRing::State) <= S::P * sizeof(A));
  if (threadIdx.x == 0) {
    ring.init(ADVANCE_WARPS);
    fence_barriers();
  }
  __syncthreads();
  if (warp < ADVANCE_WARPS) {
    const Share share{s.worker(advancer), s.sharing(), s.last() * GROUPS};
    Advance<Segment, K, Team, StagingRing, alike>({memory + S::tiles, {warp, lane}, 1, ADVANCE_WARPS}, s, share, ring)
        .run();
  } else if (warp == ADVANCE_WARPS) {
    feed_P<K>(DeviceWarpOf<A>{0, lane}, s, s.last() - 1 - REACH, ring);
  }
}

/// `block`: its number among those that update, on this rank; first come those that do so within the window.
template <int K, class Segment>
__device__ __forceinline__ void work_role(const Segment& s, int block, double* shared, int warp, int lane) {
  using namespace block_columns;
  using A = typename Segment::Arithmetic;
  using Team = DeviceTeamOf<A>;
  using S = WorkerMemory<K, typename Team::Warp::Card, A>;
  using StagingRing = DeviceRing<A, S::transform_slots>;
  A* const memory = reinterpret_cast<A*>(shared);
  StagingRing transforms{memory + S::transforms, BlockTransform<K>::words,
                         reinterpret_cast<typename StagingRing::State*>(shared)};
  static_assert(sizeof(typename StagingRing::State) <= S::transforms * sizeof(A));
  if (threadIdx.x == 0) {
    transforms.init(UPDATE_WARPS);
    fence_barriers();
  }
  __syncthreads();
  const int few = s.here(s.workers_within);
  const bool within = block < few;
  if (warp < UPDATE_WARPS) {
    const Team team{memory + S::tiles, {warp, lane}, 1, UPDATE_WARPS};
    update_groups<Segment, K>(team, s, s.worker(within ? block : block - few), within, transforms);
  } else if (warp == UPDATE_WARPS) {
    feed_transforms<K>(DeviceWarpOf<A>{0, lane}, s, within ? s.window : 0, transforms);
  }
}

/// What modify_segment() does.
template <int K, class Segment>
__device__ __forceinline__ void run_segment(const Segment& pass, block_columns::PassInts ints, int turn) {
  using namespace block_columns;
  using A = typename Segment::Arithmetic;
  constexpr bool has_sides = std::is_same_v<Segment, typename Segment::WithSides>;
  extern __shared__ __align__(128) double shared[];
  const int warp = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES;
  int block = int(blockIdx.x) - pass.solvers;
  constexpr int at_once = DeviceWarpOf<A>::Card::inverted_at_once, inverting = InverseMemory<at_once>::warps;
  // The last blocks of threads invert first: if there are enough, those that advance and finish have nothing to invert.
  const int inverter = int(gridDim.x) - 1 - int(blockIdx.x);
  if (turn >= 0 && block >= 0 && warp < inverting)
    for (int i = inverter * at_once; pass.own_column(i) < pass.last(); i += (int(gridDim.x) - pass.solvers) * at_once) {
      const DeviceTeamOf<A> team{reinterpret_cast<A*>(shared), {warp, lane}, 1, inverting};
      if (turn == 0) invert_and_link(team, pass, &ints.state_of(0, pass.blocks).stop, pass.own_column(i));
      else link_later(team, pass, ints.progress_of(turn).first, pass.own_column(i));
    }
  __syncthreads();
  if (ints.pass_state().stop != 0) return;
  Segment s = pass;
  if (turn >= 0) {
    const Progress& now = ints.progress_of(turn);
    if (now.steps && !pass.is_led() && blockIdx.x == gridDim.x - 1)
      RejectedBlock<Segment, K, DeviceTeam>::store_diagonal_block(pass, now.first - 1, int(threadIdx.x),
                                                                 segment_threads);
    if (has_sides ? now.first >= pass.end : now.first == pass.blocks) return;
    s.first = now.first;
    if (!pass.is_led()) s.flags = ints.flags_of(turn, pass.blocks);
  }
  if (block < 0) return solve_role<K>(s, int(blockIdx.x), shared, warp, lane);
  if (block < s.here(s.advancers)) return advance_role<K>(s, block, shared, warp, lane);
  block -= s.here(s.advancers);
  if (block < s.finishers) return finish_role<K>(s, block, shared, warp, lane);
  block -= s.finishers;
  work_role<K>(s, block, shared, warp, lane);
}

/// The segment of a turn. How far the pass has come is found in device memory, so that turns can be queued before it is
/// known whether they are needed. `turn` < 0: what is done again, of a turn that is over, to a panel to its right: row
/// blocks [s.first, s.end), by those that update. Where a factor lies on several ranks, a launch on each, which have
/// to run at once.
///
///   Grid      s.solvers + s.finishers + s.here(s.advancers + s.workers_within + s.workers) blocks, in clusters where
///             the card has such, all of which must run at once
///   Threads   segment_threads, one block a multiprocessor
///   Shared    fixed_words<K, Card, A> words, or what AdvanceMemory or WorkerMemory takes if that is more
///
/// A: what is computed with; compiled for cards that compute with that.
template <class T, int K, class A, class Segment = SegmentOf<T, A>>
__global__ void __launch_bounds__(segment_threads, 1)
    modify_segment(const GPUCHOLMOD_GRID_CONSTANT Segment pass, block_columns::PassInts ints, int turn) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  if constexpr (computes_with<T, A, DeviceWarp::Card> && fits<K, typename DeviceWarpOf<A>::Card, A>)
    run_segment<K>(pass, ints, turn);
#endif
}

/// Begins a turn but the first: looks how the one before has ended, and does the row block that the guard has rejected,
/// if that is to be done by steps; its diagonal block comes to its place in the launch behind.
///
///   Grid      RejectedBlock::count(s.blocks, 0) blocks of WARPS warps
template <class T, int K, class A>
__global__ void __launch_bounds__(DeviceTeam::THREADS)
    begin_turn(const GPUCHOLMOD_GRID_CONSTANT SegmentOf<T, A> s, block_columns::PassInts ints, int turn) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  using Block = block_columns::RejectedBlock<SegmentOf<T, A>, K, DeviceTeam>;
  __shared__ double shared[Block::shared_words];
  const block_columns::Progress now = ints.behind(turn - 1, s.blocks);
  const int thread = int(blockIdx.x * blockDim.x + threadIdx.x), b = now.first - 1;
  for (int i = thread; i < s.flag_words(s.blocks); i += int(gridDim.x * blockDim.x))
    ints.flags_of(turn, s.blocks)[i] = 0;
  if (thread == 0) ints.progress_of(turn) = now;
  if constexpr (computes_with<T, A, DeviceWarp::Card>)
    if (now.steps && int(blockIdx.x) < Block::count(s.blocks, b))  // behind steps that have failed there are none
      Block(whole_block(shared), s, b, int(blockIdx.x)).run(&ints.pass_state());
#endif
}

/// Row block b above the panel, which has been done by steps, on the panel. Grid: RejectedBlock::count(s.blocks, b)
/// blocks of WARPS warps.
template <class T, int K, class A>
__global__ void __launch_bounds__(DeviceTeam::THREADS)
    repeat_steps(const GPUCHOLMOD_GRID_CONSTANT SegmentOf<T, A> s, int b, block_columns::PassInts ints) {
  using Block = block_columns::RejectedBlock<SegmentOf<T, A>, K, DeviceTeam>;
  __shared__ double shared[Block::shared_words];
  if (ints.pass_state().stop != 0) return;
  // In double where there are only steps.
  if constexpr (std::is_same_v<A, double> || computes_with<T, A, DeviceWarp::Card>)
    Block(whole_block(shared), s, b, int(blockIdx.x)).run(nullptr);
}

/// Row block b by steps, if there is one and no downdate has failed, and the diagonal block of the one before to its
/// place. Grid: as above, or one block of threads where there is no such row block.
template <class T, int K>
__global__ void __launch_bounds__(DeviceTeam::THREADS)
    take_steps(const GPUCHOLMOD_GRID_CONSTANT block_columns::Segment<T> s, int b, block_columns::PassInts ints) {
  using Block = block_columns::RejectedBlock<block_columns::Segment<T>, K, DeviceTeam>;
  __shared__ double shared[Block::shared_words];
  __shared__ int stop;
  if (threadIdx.x == 0) stop = DeviceWarp::load_relaxed(&ints.pass_state().stop);
  __syncthreads();
  if (stop != 0) return;
  if (b > 0 && blockIdx.x == gridDim.x - 1)
    Block::store_diagonal_block(s, b - 1, int(threadIdx.x), DeviceTeam::THREADS);
  if (b < s.end) Block(whole_block(shared), s, b, int(blockIdx.x)).run(&ints.pass_state());
}

/// What is left of V behind row blocks [s.first, s.end), which no rejected one has ended. `turn` >= 0: behind the last
/// row block of the pass, if that turn has come to it; then V of the right-hand sides is scaled as well. One block of
/// WARPS warps.
template <class T, int K, class A>
__global__ void __launch_bounds__(DeviceTeam::THREADS)
    close_segment(const GPUCHOLMOD_GRID_CONSTANT SegmentOf<T, A> pass, block_columns::PassInts ints, int turn) {
  using Closing = block_columns::Closing<SegmentOf<T, A>, K, DeviceTeamOf<A>>;
  __shared__ __align__(16) A shared[Closing::words];
#if defined(__CUDA_ARCH__) && GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  if constexpr (computes_with<T, A, DeviceWarp::Card>) {
    if (turn < 0) return Closing(whole_block(shared), pass).run();
    SegmentOf<T, A> s = pass;
    s.first = ints.progress_of(turn).first;
    s.flags = ints.flags_of(turn, s.blocks);
    if (s.first < s.end && is_done(ints, turn, s.blocks)) Closing(whole_block(shared), s).scale_sides();
  }
#endif
}

/// What a pass begins with on a panel of so many row blocks: zeros, and the row block that its first segment begins
/// with. Where the pass before, if there is one, is not done behind its turn `turn`, or a piece of V has numbers that
/// are no plain ones, nothing begins. One block of threads.
static __global__ void begin_panel(block_columns::PassInts ints, int blocks, int first,
                                   block_columns::PassInts before, int turn, Pieces V) {
  for (int i = int(threadIdx.x); i < ints.words(blocks); i += int(blockDim.x)) ints.at[i] = 0;
  const bool plain = int(threadIdx.x) >= V.count || V.looks[threadIdx.x].largest <= V.most;
  if (!__syncthreads_and(plain)) {
    if (threadIdx.x == 0) ints.pass_state().stop = block_columns::not_definite;
    return;
  }
  if (threadIdx.x != 0) return;
  ints.progress_of(0).first = first;
  if (before.at && !is_done(before, turn, blocks)) ints.pass_state().stop = block_columns::not_definite;
}

}  // namespace gpucholmod::cuda
