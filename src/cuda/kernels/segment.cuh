#pragma once

#include "block_columns/feed.h"
#include "block_columns/finish.h"
#include "block_columns/inverses.h"
#include "block_columns/rewrite.h"
#include "block_columns/solve.h"
#include "cuda/kernels/block_columns.cuh"

namespace gpucholmod::cuda {

/// Barriers in shared memory that count arrivals and bytes (PTX: mbarrier), of compute capability 9.0.
struct Mbarrier {
  unsigned long long word;

  __device__ __forceinline__ unsigned address() const { return unsigned(__cvta_generic_to_shared(&word)); }
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
  __device__ __forceinline__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ __forceinline__ void arrive() { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address()) : "memory"); }
  __device__ __forceinline__ void arrive_expecting(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  /// Whether phase `number`, counted from 0, is over.
  __device__ __forceinline__ bool is_past(int number) const {
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
    return over != 0;
  }
  /// The same; may take a while to say no.
  __device__ __forceinline__ bool passed(int number) const {
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
    return over != 0;
  }
#else
  __device__ void init(int) {}
  __device__ void arrive() {}
  __device__ void arrive_expecting(int) {}
  __device__ bool is_past(int) const { return true; }
  __device__ bool passed(int) const { return true; }
#endif
};

/// Until phase `number` is over; false when everybody is to stop.
__device__ __forceinline__ bool wait_or_stop(const Mbarrier& barrier, int number, const int* stop) {
  for (int tries = 1; !barrier.is_past(number); ++tries)
    if (tries % 256 == 0 && DeviceWarp::load_acquire(stop) != 0) return false;
  return true;
}

/// What block_columns/feed.h fills, by bulk copies: a ring of `slots` slots for one team.
/// `fillers`: lanes of which each says that its copies are there.
template <int slots, int fillers = 1>
struct DeviceInbox {
  using Warp = DeviceWarp;
  struct State {
    Mbarrier full[slots], empty[slots];
    int open[slots];
  };
  double* memory;
  int words;  ///< of a slot
  State* state;

  __device__ __forceinline__ void init(int consumers) {
    for (int i = 0; i < slots; ++i) {
      state->full[i].init(fillers);
      state->empty[i].init(consumers);
    }
  }
  __device__ __forceinline__ bool wait(const Warp&, int i) const {
    while (!state->full[unsigned(i) % slots].passed(int(unsigned(i) / slots))) {}
    return state->open[unsigned(i) % slots] != 0;
  }
  /// The same; false also when everybody is to stop.
  __device__ __forceinline__ bool wait(const Warp&, int i, const int* stop) const {
    return wait_or_stop(state->full[unsigned(i) % slots], int(unsigned(i) / slots), stop);
  }
  __device__ __forceinline__ double* slot(int i) const { return memory + unsigned(i) % slots * words; }
  __device__ __forceinline__ void release(const Warp& warp, int i) const {
    warp.sync();
    warp.once([&] { state->empty[unsigned(i) % slots].arrive(); });
  }

  template <class F>
  __device__ __forceinline__ bool wait_empty(const Warp&, int i, F&& over) const {
    if (i < slots) return true;
    while (!state->empty[unsigned(i) % slots].passed(int(unsigned(i) / slots) - 1))
      if (over()) return false;
    return true;
  }
  __device__ __forceinline__ void fill(const Warp& warp, int i, const double* from, int count) const {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
    warp.once([&] {
      Mbarrier& full = state->full[unsigned(i) % slots];
      state->open[unsigned(i) % slots] = 1;
      asm volatile("fence.proxy.async;" ::: "memory");
      full.arrive_expecting(count * 8);
      copy(slot(i), from, count * 8, full);
    });
#endif
  }
  /// CHAIN_COLUMNS columns of V, with leading dimension LDB.
  __device__ __forceinline__ void fill_columns_of_V(const Warp& warp, int i, const double* from, index_t ld) const {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
    using namespace block_columns;
    warp.once([&] {
      Mbarrier& full = state->full[unsigned(i) % slots];
      state->open[unsigned(i) % slots] = 1;
      asm volatile("fence.proxy.async;" ::: "memory");
      full.arrive_expecting(CHAIN_COLUMNS * NB * 8);
      for (int q = 0; q < CHAIN_COLUMNS; ++q) copy(slot(i) + q * LDB, from + q * ld, NB * 8, full);
    });
#endif
  }
  /// A tile of R, with leading dimension LDB.
  template <class T>
  __device__ __forceinline__ void fill_columns(const Warp& warp, int i, const T* from, index_t ld) const {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
    using namespace block_columns;
    static_assert(fillers == LANES);
    constexpr int words = 16 / int(sizeof(T)), parts = NB / words, columns = LANES / parts;
    T* const to = reinterpret_cast<T*>(slot(i)) + warp.lane / parts * LDB + warp.lane % parts * words;
    from += warp.lane / parts * ld + warp.lane % parts * words;
#pragma unroll 16
    for (int j = 0; j < NB; j += columns) DeviceWarp::copy_16(to + j * LDB, from + j * ld);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(state->full[unsigned(i) % slots].address()) : "memory");
#endif
  }
  __device__ __forceinline__ void close(const Warp& warp, int i) const {
    warp.once([&] {
      state->open[unsigned(i) % slots] = 0;
      state->full[unsigned(i) % slots].arrive();
    });
  }

 private:
  __device__ static __forceinline__ void copy(double* to, const double* from, int bytes, const Mbarrier& full) {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes), "r"(full.address()) : "memory");
#endif
  }
};

/// P within a cluster: 16 rows of a warp go to every block's shared memory, which a barrier there counts.
struct DeviceMail {
  static constexpr int slots = block_columns::REACH;  ///< P_(b + REACH) needs P_(b + 1) and on from all teams, which have used P_b then
  static constexpr int slot_words = block_columns::NB * block_columns::LP, words = slots * slot_words;
  static constexpr int bytes = block_columns::NB * block_columns::CHAIN_COLUMNS * 8;

  double* memory;
  Mbarrier* arrived;
  int rank, first;

  __device__ __forceinline__ void init() const {
    for (int i = 0; i < slots; ++i) {
      arrived[i].init(1);
      arrived[i].arrive_expecting(bytes);
    }
  }
  __device__ __forceinline__ bool wait(const DeviceWarp&, int b, const int* stop) const {
    return wait_or_stop(arrived[unsigned(b - first) % slots], int(unsigned(b - first) / slots), stop);
  }
  __device__ __forceinline__ const double* P(int b) const { return memory + unsigned(b - first) % slots * slot_words; }
  /// P_b is there: its place is for P_(b + slots) now.
  __device__ __forceinline__ void expect_next(const DeviceWarp& warp, int b) const {
    warp.once([&] { arrived[(b - first) % slots].arrive_expecting(bytes); });
  }
  __device__ __forceinline__ void send(const DeviceWarp& warp, int b, const DeviceWarp::PerLane<block_columns::Fragment>& tile) const {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
    constexpr int LP = block_columns::LP;
    const double* at = P(b) + (warp.id * 16 + block_columns::group_id(warp.lane)) * LP + 2 * block_columns::thread_in_group(warp.lane);
    const double* e = tile.value.e;
    const unsigned to = unsigned(__cvta_generic_to_shared(at)), barrier = arrived[(b - first) % slots].address();
#pragma unroll
    for (int i = 1; i <= block_columns::CLUSTER; ++i) {  // the next in turn first
      const int other = (rank + i) % block_columns::CLUSTER;
      unsigned there, counter;
      asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(other));
      asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counter) : "r"(barrier), "r"(other));
      asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%0], {%1, %2}, [%3];"
                   ::"r"(there), "d"(e[0]), "d"(e[1]), "r"(counter) : "memory");
      asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%0], {%1, %2}, [%3];"
                   ::"r"(there + 8 * LP * 8), "d"(e[2]), "d"(e[3]), "r"(counter) : "memory");
    }
#endif
  }
};

__device__ __forceinline__ void cluster_sync() {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void fence_barriers() {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/// Warps of a block of threads; a team's barrier has the number of its place.
constexpr int segment_warps = block_columns::REWRITE_WARPS + block_columns::ADVANCE_WARPS + 2;
constexpr int segment_threads = segment_warps * block_columns::LANES;

/// Shared memory of a worker, in doubles.
template <int K>
struct WorkerMemory {
  static constexpr int P_slots = 2, message_slots = K > 16 ? 2 : 3;
  using Parts = block_columns::Transform<K>;
  static constexpr int barriers = 0, P = 32, messages = P + P_slots * K * block_columns::LDB,
                       tiles = messages + message_slots * Parts::kind,
                       near_V = tiles + block_columns::RewriteTiles<K>::words;
  /// V of all groups, and of those near the diagonal apart from that unless rewriting comes last.
  template <class T>
  GPUCHOLMOD_HOST_DEVICE static int words(const block_columns::Segment<T>& s, const block_columns::Share& share) {
    const int near = s.rewrite_last ? 0 : near_groups(s, share), count = share.count() > 1 ? share.count() : 1;
    return near_V + (near + count) * block_columns::GroupsOfV<K>::words + (local_words(share) + 1) / 2;
  }
};
template <class T, int K>
constexpr int fixed_words = [] {
  using namespace block_columns;
  const int solve = 40 + DeviceMail::words + SolveMemory<T>::words, finish = 32 + FinishMemory<K>::words;
  const int most = solve > finish ? solve : finish;
  return most > InverseMemory::words ? most : InverseMemory::words;
}();

struct DevicePost {
  DeviceInbox<2, block_columns::LANES> tiles;
  DeviceInbox<1> X, V;
};

template <class T, int K>
__device__ __forceinline__ void solve_role(const block_columns::Segment<T>& s, double* shared, int warp, int lane) {
  using namespace block_columns;
  using S = SolveMemory<T>;
  static_assert(S::tile_slots == 2 && SOLVE_TEAMS == 2);
  double *const places = shared, *const work = shared + 40 + DeviceMail::words;
  const int cluster = int(blockIdx.x) / CLUSTER, rank = int(blockIdx.x) % CLUSTER;
  DeviceMail mail{shared + 40, reinterpret_cast<Mbarrier*>(places), rank, s.first};
  const int side = warp < SOLVE_TEAMS * SOLVE_WARPS ? warp / SOLVE_WARPS : warp % SOLVE_TEAMS;
  const auto tiles_of = [&](int side) {
    using Tiles = DeviceInbox<2, LANES>;
    return Tiles{work + S::tiles + 2 * side * S::tile, S::tile, reinterpret_cast<Tiles::State*>(places + 8 + 6 * side)};
  };
  DevicePost post{tiles_of(side),
                  {work + S::X, INVERSE, reinterpret_cast<DeviceInbox<1>::State*>(places + 20)},
                  {work + S::V, S::V_words, reinterpret_cast<DeviceInbox<1>::State*>(places + 24)}};
  static_assert(sizeof(DeviceInbox<2>::State) <= 6 * 8 && sizeof(DeviceInbox<1>::State) <= 4 * 8);
  if (threadIdx.x == 0) {
    mail.init();
    for (int side = 0; side < SOLVE_TEAMS; ++side) tiles_of(side).init(SOLVE_WARPS);
    post.X.init(SOLVE_WARPS);
    post.V.init(SOLVE_WARPS);
    fence_barriers();
  }
  cluster_sync();
  const DeviceWarp single{0, lane};
  if (warp < SOLVE_TEAMS * SOLVE_WARPS) {
    const DeviceTeam team{nullptr, {warp % SOLVE_WARPS, lane}, 1 + side, SOLVE_WARPS};
    Solve<T, K, DeviceTeam, DeviceMail, DevicePost>(team, s, cluster, rank, side, mail, post).run();
  } else if (warp < 10) {
    feed_tiles(single, s, rank, side, post.tiles);
  } else if (warp == 10) {
    feed_solve<K>(single, s, cluster, rank, post.X, post.V);
  }
  __syncwarp();
  cluster_sync();  // nobody leaves while others may still write to its memory
}

template <class T, int K>
__device__ __forceinline__ void finish_role(const block_columns::Segment<T>& s, int finisher, double* shared, int warp, int lane) {
  using namespace block_columns;
  using S = FinishMemory<K>;
  using Inbox = DeviceInbox<S::slots>;
  Inbox inbox{shared + 32 + S::P, S::P_words, reinterpret_cast<typename Inbox::State*>(shared)};
  if (threadIdx.x == 0) {
    inbox.init(FINISH_WARPS);
    fence_barriers();
  }
  for (int i = int(threadIdx.x); i < S::slots * S::P_words; i += segment_threads) shared[32 + S::P + i] = 0;
  __syncthreads();
  if (warp < FINISH_WARPS) {
    const DeviceTeam team{shared + 32, {warp, lane}, 1, FINISH_WARPS};
    Finish<T, K, DeviceTeam, Inbox>(team, s, finisher, inbox).run();
  } else if (warp == FINISH_WARPS) {
    feed_P<K>(DeviceWarp{0, lane}, s, s.blocks, inbox);
  }
}

template <class T, int K>
__device__ __forceinline__ void work_role(const block_columns::Segment<T>& s, int worker, double* shared, int warp, int lane) {
  using namespace block_columns;
  using S = WorkerMemory<K>;
  using P_inbox = DeviceInbox<S::P_slots>;
  using Inbox = DeviceInbox<S::message_slots>;
  const Share share{worker, s.workers, s.blocks * GROUPS};
  const int count = share.count(), near = near_groups(s, share);
  const GroupsOfV<K> near_V{shared + S::near_V, near};
  const GroupsOfV<K> V{near_V.at + (s.rewrite_last ? 0 : near) * GroupsOfV<K>::words, count > 1 ? count : 1};
  int* const arrived = reinterpret_cast<int*>(V.at + V.slots * GroupsOfV<K>::words);
  P_inbox P{shared + S::P, K * LDB, reinterpret_cast<typename P_inbox::State*>(shared)};
  Inbox messages{shared + S::messages, Transform<K>::kind, reinterpret_cast<typename Inbox::State*>(shared + 12)};
  static_assert(sizeof(typename P_inbox::State) <= 12 * 8);
  if (threadIdx.x == 0) {
    P.init(ADVANCE_WARPS);
    messages.init(REWRITE_WARPS);
    fence_barriers();
  }
  begin_worker<K>(DeviceTeam{nullptr, {int(threadIdx.x) / LANES, lane}, 0, segment_warps}, s, share, V, near_V, arrived);
  if (warp < REWRITE_WARPS) {
    Rewrite<T, K, DeviceTeam, Inbox>({shared + S::tiles, {warp, lane}, 1, REWRITE_WARPS}, s, share, V, near_V, arrived, messages).run();
  } else if (warp < REWRITE_WARPS + ADVANCE_WARPS) {
    Advance<T, K, DeviceTeam, P_inbox>({nullptr, {warp - REWRITE_WARPS, lane}, 2, ADVANCE_WARPS}, s, share, near_V, arrived, P).run();
  } else if (warp == REWRITE_WARPS + ADVANCE_WARPS) {
    feed_P<K>(DeviceWarp{0, lane}, s, s.blocks - 1 - REACH, P);
  } else {
    feed_messages<K>(DeviceWarp{0, lane}, s, messages);
  }
}

/// A segment in one launch: K / 8 clusters that solve, then finishers, then workers.
///
///   Grid      K / 8 * CLUSTER + finishers + workers blocks, in clusters of CLUSTER, all of which must run at once
///   Threads   384, one block a multiprocessor
///   Shared    fixed_words<T, K> doubles, or what WorkerMemory takes if that is more
template <class T, int K>
__global__ void __launch_bounds__(segment_threads, 1) modify_segment(const block_columns::Segment<T> s) {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
  using namespace block_columns;
  extern __shared__ __align__(128) double shared[];
  const int warp = int(threadIdx.x) / LANES, lane = int(threadIdx.x) % LANES, block = int(blockIdx.x);
  constexpr int solvers = K / CHAIN_COLUMNS * CLUSTER;
  if (s.first == 0 && block >= solvers && warp < 8)
    for (int pair = block - solvers; pair < s.blocks / 2; pair += s.finishers + s.workers) {
      const DeviceTeam team{shared, {warp, lane}, 1, 8};
      invert_pair(team, s, pair);
      link_pair(team, s, pair);
    }
  __syncthreads();
  if (block < solvers) solve_role<T, K>(s, shared, warp, lane);
  else if (block < solvers + s.finishers) finish_role<T, K>(s, block - solvers, shared, warp, lane);
  else work_role<T, K>(s, block - solvers - s.finishers, shared, warp, lane);
#endif
}

}  // namespace gpucholmod::cuda
