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

/// Returns the mail by which the thread blocks that solve for the same columns receive P.
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

/// Runs the role Solve. `block` is the number of the thread block among those that solve.
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
    post.tiles.settle(single);
  } else if (warp == feeding) {
    feed_solve<K>(single, s, cluster, rank, post.X, post.V);
    post.X.settle(single);
    post.V.settle(single);
  }
  __syncwarp();
  cluster_sync();  // no thread block leaves while others may still write to its memory
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

/// Runs the role Advance. `advancer` is the number of the thread block among those that advance on this rank.
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

/// Runs update_groups(). `block` is the number of the thread block among those that update on this rank. Thread
/// blocks that update within the window come first.
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
  const DeviceRelay<A> relay{reinterpret_cast<typename DeviceRelay<A>::State*>(memory + S::relay)};
  static_assert(sizeof(typename StagingRing::State) <= S::relay * sizeof(A) &&
                sizeof(typename DeviceRelay<A>::State) <= (S::transforms - S::relay) * sizeof(A));
  static_assert(S::tiles + LastGroupsSize<K, typename Team::Warp::Card, typename Segment::Scalar, A>::words <=
                Team::Warp::Card::shared / int(sizeof(A)));
  if (threadIdx.x == 0) {
    transforms.init(UPDATE_WARPS);
    relay.init();
    fence_barriers();
  }
  __syncthreads();
  const int few = s.here(s.workers_within);
  const bool within = block < few;
  if (warp < UPDATE_WARPS) {
    const Team team{memory + S::tiles, {warp, lane}, 1, UPDATE_WARPS};
    update_groups<Segment, K>(team, s, s.worker(within ? block : block - few), within, transforms, relay);
  } else if (warp == UPDATE_WARPS) {
    feed_transforms<K>(DeviceWarpOf<A>{0, lane}, s, within ? s.window : 0, transforms);
  }
}

/// Does the work of modify_segment().
template <int K, class Segment>
__device__ __forceinline__ void run_segment(const Segment& pass, block_columns::PassInts ints, int turn) {
  using namespace block_columns;
  using A = typename Segment::Arithmetic;
  constexpr bool has_sides = std::is_same_v<Segment, typename Segment::WithSides>;
  extern __shared__ __align__(128) double shared[];
  const int warp = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES;
  int block = int(blockIdx.x) - pass.solvers;
  constexpr int at_once = DeviceWarpOf<A>::Card::inverted_at_once, inverting = InverseMemory<at_once>::warps;
  // The last thread blocks invert first. If there are enough of them, those that advance and finish invert nothing.
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

/// Runs the segment of a turn. The kernel reads from device memory how far the pass has come, so that turns can be
/// queued before the host knows whether the pass needs them. With `turn` < 0, thread blocks that update repeat a turn
/// that is over, row blocks [s.first, s.end), on a panel to its right. If a factor is spread over several ranks, each
/// rank has a launch of its own, and these launches have to run at once.
///
///   Grid      s.solvers + s.finishers + s.here(s.advancers + s.workers_within + s.workers) blocks, in clusters if the
///             card has them, all of which must run at once
///   Threads   segment_threads, one block a multiprocessor
///   Shared    fixed_words<K, Card, A> words, or the words of AdvanceMemory or WorkerMemory if these are more
///
/// A is the type that the kernel computes with. The kernel has code only for cards that compute with A.
template <class T, int K, class A, class Segment = SegmentOf<T, A>>
__global__ void __launch_bounds__(segment_threads, 1)
    modify_segment(const GPUCHOLMOD_GRID_CONSTANT Segment pass, block_columns::PassInts ints, int turn) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  if constexpr (computes_with<T, A, DeviceWarp::Card> && fits<K, typename DeviceWarpOf<A>::Card, A>)
    run_segment<K>(pass, ints, turn);
#endif
}

/// Begins a turn, except the first. Finds how the turn before has ended, and modifies the row block that the guard has
/// rejected if Householder steps are to modify it. The launch that follows copies the diagonal block of this row block
/// to its place.
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
    if (now.steps && int(blockIdx.x) < Block::count(s.blocks, b))  // now.steps is 0 after steps that have failed
      Block(whole_block(shared), s, b, int(blockIdx.x)).run(&ints.pass_state());
#endif
}

/// Repeats the Householder steps of row block b, which is above the panel, on the panel. Grid:
/// RejectedBlock::count(s.blocks, b) blocks of WARPS warps.
template <class T, int K, class A>
__global__ void __launch_bounds__(DeviceTeam::THREADS)
    repeat_steps(const GPUCHOLMOD_GRID_CONSTANT SegmentOf<T, A> s, int b, block_columns::PassInts ints) {
  using Block = block_columns::RejectedBlock<SegmentOf<T, A>, K, DeviceTeam>;
  __shared__ double shared[Block::shared_words];
  if (ints.pass_state().stop != 0) return;
  // A pass by Householder steps alone computes in double, on any card.
  if constexpr (std::is_same_v<A, double> || computes_with<T, A, DeviceWarp::Card>)
    Block(whole_block(shared), s, b, int(blockIdx.x)).run(nullptr);
}

/// Modifies row block b by Householder steps, if there is such a row block, and copies the diagonal block of row block
/// b - 1 to its place. Does nothing if the pass is stopped. Grid: as for repeat_steps(), or one thread block if there
/// is no row block b.
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

/// Computes U^-1 of the H behind row blocks [s.first, s.end), whose segment no rejected row block has ended. With
/// `turn` >= 0 the segment is that of this turn. The kernel then does nothing unless the turn has completed the pass,
/// and it also scales V of the right-hand sides. One block of WARPS warps.
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

/// Prepares PassInts for a pass on a panel of `blocks` row blocks: sets them to zero, and stores the row block that the
/// first segment begins with. Makes the pass do nothing if a pass `before` is given that is not done after its turn
/// `turn`, or if a piece of V has numbers that are not plain. One thread block.
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
