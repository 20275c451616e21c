#pragma once

#include "block_columns/solve.h"
#include "cuda/kernels/device_warp.cuh"

/// The means by which teams of a segment receive what other teams have found: staging rings in shared memory, and mail
/// within a cluster.
namespace gpucholmod::cuda {

/// A barrier in shared memory that counts arrivals, and from compute capability 9.0 on bytes as well (PTX: mbarrier).
struct Mbarrier {
  unsigned long long word;

  __device__ __forceinline__ unsigned address() const { return unsigned(__cvta_generic_to_shared(&word)); }
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
  __device__ __forceinline__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  /// Arrives when all copies that this thread has begun are complete.
  __device__ __forceinline__ void arrive_behind_copies() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address()) : "memory");
  }
#else
  __device__ void init(int) {}
  __device__ void arrive() {}
  __device__ void arrive_behind_copies() {}
#endif
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
  __device__ __forceinline__ void arrive_expecting(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  /// Returns whether phase `number`, counted from 0, is over. Then everything that threads and copies of the same
  /// thread block have done in the phase is visible.
  __device__ __forceinline__ bool is_past(int number) const {
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
    return over != 0;
  }
  /// Returns whether phase `number` is over, like is_past(), but may wait a while before it returns false.
  __device__ __forceinline__ bool passed(int number) const {
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
    return over != 0;
  }
  /// Returns whether phase `number` is over, like is_past(), for data that other thread blocks of the cluster have
  /// sent.
  __device__ __forceinline__ bool has_come(int number) const {
    unsigned over;
    asm volatile(
        "{.reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(address()), "r"(number & 1)
        : "memory");
    return over != 0;
  }
#else
  __device__ __forceinline__ bool is_past(int number) const {
    unsigned over = 1;
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
#endif
    return over != 0;
  }
  __device__ __forceinline__ bool passed(int number) const {
    if (is_past(number)) return true;
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
    __nanosleep(20);
#endif
    return false;
  }
  __device__ void arrive_expecting(int) {}
  __device__ bool has_come(int) const { return true; }
#endif
};

/// Waits until over() is true. Returns false if the segment is to stop before.
template <class F>
__device__ __forceinline__ bool wait_or_stop(const int* stop, F&& over) {
  const DeviceWarp::Wait wait;
  for (int tries = 1; !over(); ++tries) {
    if (tries % 64 == 0 && DeviceWarp::load_acquire(stop) != 0) return false;
    wait.pause();
  }
  return true;
}

/// A staging ring of `slots` slots for one team, filled by block_columns/feed.h: by bulk copies if the card has them,
/// otherwise by all lanes. With `columns` the ring is filled by columns, and never closed.
template <class A, int slots, bool columns = false>
struct DeviceRing {
  using Warp = DeviceWarpOf<A>;
  static constexpr bool bulk = Warp::Card::clusters;
  static constexpr int in_16 = 16 / int(sizeof(A));  ///< number of words in 16 bytes
  /// The number of arrivals that complete a fill.
  static constexpr int arrivals = columns ? block_columns::LANES : bulk ? 1 : block_columns::LANES + 1;
  struct State {
    Mbarrier full[slots], empty[slots];
    int open[slots];
  };
  A* memory;
  int words;  ///< number of words of a slot
  State* state;
  int begun = 0;  ///< number of fills that the calling warp has begun

  __device__ __forceinline__ void init(int consumers) {
    for (int i = 0; i < slots; ++i) {
      state->full[i].init(arrivals);
      state->empty[i].init(consumers);
    }
  }
  __device__ __forceinline__ bool wait(const Warp&, int i) const {
    const typename Warp::Wait wait;
    while (!state->full[unsigned(i) % slots].passed(int(unsigned(i) / slots))) wait.pause();
    return state->open[unsigned(i) % slots] != 0;
  }
  /// Waits for fill i of a ring that is never closed. Returns false if the segment is to stop before.
  __device__ __forceinline__ bool wait(const Warp&, int i, const int* stop) const {
    return wait_or_stop(stop, [&] { return state->full[unsigned(i) % slots].is_past(int(unsigned(i) / slots)); });
  }
  __device__ __forceinline__ A* slot(int i) const { return memory + unsigned(i) % slots * words; }
  __device__ __forceinline__ void release(const Warp& warp, int i) const {
    warp.sync();
    warp.once([&] { state->empty[unsigned(i) % slots].arrive(); });
  }

  /// Waits until slot i is empty. Returns false if over() is true before. The fence orders what threads have written to
  /// the slot before bulk copies to it. It is not in fill(), as the data of a fill has been waited for by then.
  template <class F>
  __device__ __forceinline__ bool wait_empty(const Warp&, int i, F&& over) const {
    const typename Warp::Wait wait;
    while (i >= slots && !state->empty[unsigned(i) % slots].passed(int(unsigned(i) / slots) - 1)) {
      if (over()) return false;
      wait.pause();
    }
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
    if (!columns) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    return true;
  }
  __device__ __forceinline__ void fill(const Warp& warp, int i, const A* from, int count) {
    begun = i + 1;
    Mbarrier& full = state->full[unsigned(i) % slots];
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
    warp.once([&] {
      state->open[unsigned(i) % slots] = 1;
      asm volatile("fence.proxy.async.global;" ::: "memory");
      full.arrive_expecting(count * int(sizeof(A)));
      copy(slot(i), from, count * int(sizeof(A)), full);
    });
#else
    open(warp, i);
    for (int j = in_16 * warp.lane; j < count; j += in_16 * block_columns::LANES) Warp::copy_16(slot(i) + j, from + j);
    full.arrive_behind_copies();
#endif
  }
  /// Fills slot i with CHAIN_COLUMNS columns of V, with leading dimension LDB.
  __device__ __forceinline__ void fill_columns_of_V(const Warp& warp, int i, const A* from, index_t ld) {
    using namespace block_columns;
    begun = i + 1;
    Mbarrier& full = state->full[unsigned(i) % slots];
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
    warp.once([&] {
      state->open[unsigned(i) % slots] = 1;
      asm volatile("fence.proxy.async.global;" ::: "memory");
      full.arrive_expecting(CHAIN_COLUMNS * NB * int(sizeof(A)));
      for (int q = 0; q < CHAIN_COLUMNS; ++q) copy(slot(i) + q * LDB, from + q * ld, NB * int(sizeof(A)), full);
    });
#else
    open(warp, i);
    constexpr int parts = NB / in_16;
    for (int j = warp.lane; j < CHAIN_COLUMNS * parts; j += LANES)
      Warp::copy_16(slot(i) + j / parts * LDB + j % parts * in_16, from + j / parts * ld + j % parts * in_16);
    full.arrive_behind_copies();
#endif
  }
  /// Fills slot i with a tile of R, or a link, with leading dimension LDT.
  template <class T>
  __device__ __forceinline__ void fill_columns(const Warp& warp, int i, const T* from, index_t ld) {
    begun = i + 1;
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
    using namespace block_columns;
    static_assert(columns);
    constexpr int words = 16 / int(sizeof(T)), parts = NB / words, at_once = LANES / parts;
    T* const to = reinterpret_cast<T*>(slot(i)) + warp.lane / parts * LDT + warp.lane % parts * words;
    from += warp.lane / parts * ld + warp.lane % parts * words;
#pragma unroll 16
    for (int j = 0; j < NB; j += at_once) Warp::copy_16(to + j * LDT, from + j * ld);
    state->full[unsigned(i) % slots].arrive_behind_copies();
#endif
  }
  __device__ __forceinline__ void close(const Warp& warp, int i) const {
    Mbarrier& full = state->full[unsigned(i) % slots];
    warp.once([&] {
      state->open[unsigned(i) % slots] = 0;
      full.arrive();
    });
    if (!bulk) full.arrive();
  }
  /// Waits until every fill that the calling warp has begun is complete. A warp that fills a ring whose fills are not
  /// all waited for does so before its thread block ends: the copies would go to memory of another thread block.
  __device__ __forceinline__ void settle(const Warp&) const {
    const typename Warp::Wait wait;
    for (int i = begun > slots ? begun - slots : 0; i < begun; ++i)
      while (!state->full[unsigned(i) % slots].passed(int(unsigned(i) / slots))) wait.pause();
  }

 private:
  /// Marks a fill as open, and synchronises the lanes: one lane only may have seen the flag of the data that all lanes
  /// copy next.
  __device__ __forceinline__ void open(const Warp& warp, int i) const {
    warp.once([&] {
      state->open[unsigned(i) % slots] = 1;
      state->full[unsigned(i) % slots].arrive();
    });
    warp.sync();
  }
  __device__ static __forceinline__ void copy(A* to, const A* from, int bytes, const Mbarrier& full) {
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes), "r"(full.address()) : "memory");
#endif
  }
};

/// The mail of P within a cluster. Each warp sends its 16 rows to the shared memory of every thread block, where an
/// mbarrier counts the bytes.
struct ClusterMail {
  static constexpr int row = block_columns::LP, column = 1;  ///< distance to the next row, and to the next column, of P
  /// The number of slots. P_(b + REACH) needs P_(b + 1), ..., P_(b + REACH - 1) from all teams, and these teams have
  /// used P_b by then.
  static constexpr int slots = block_columns::REACH;
  static constexpr int slot_words = block_columns::NB * block_columns::LP, words = slots * slot_words;
  static constexpr int bytes = block_columns::NB * block_columns::CHAIN_COLUMNS * 8;

  double* memory;
  Mbarrier* arrived;
  int rank, first;  ///< rank in the cluster; first row block whose P arrives by mail

  /// Initialises the mbarriers. P of the first `there` row blocks is in its slots from the start; the first `unused`
  /// slots are free from the start.
  __device__ __forceinline__ void init(int there, int unused) const {
    for (int i = 0; i < slots; ++i) {
      arrived[i].init(1);
      if (i < there) arrived[i].arrive();
      if (i < unused) while (!arrived[i].has_come(0)) {}  // always over; a tool wants a wait for every phase
      if (i >= there || i < unused) arrived[i].arrive_expecting(bytes);
    }
  }
  /// Copies P of the row blocks above the panel, for CHAIN_COLUMNS columns of V, to its slots. Called by all threads of
  /// the thread block.
  template <int K, class S>
  __device__ __forceinline__ void put(const S& s, int cluster) const {
    using namespace block_columns;
    for (int b = first; b < s.start(); ++b) {
      const double* from =
          s.transforms + index_t(b) * BlockTransform<K>::stride + BlockTransform<K>::P + cluster * CHAIN_COLUMNS * LDB;
      double* to = memory + (b - first) * slot_words;
      for (int i = int(threadIdx.x); i < CHAIN_COLUMNS * NB; i += int(blockDim.x))
        to[i % NB * LP + i / NB] = from[i / NB * LDB + i % NB];
    }
  }
  __device__ __forceinline__ bool wait(const DeviceWarp&, int b, const int* stop) const {
    return wait_or_stop(
        stop, [&] { return arrived[unsigned(b - first) % slots].has_come(int(unsigned(b - first) / slots)); });
  }
  __device__ __forceinline__ const double* P(int b) const { return memory + unsigned(b - first) % slots * slot_words; }
  /// Makes the slot of P_b, which has arrived, expect P_(b + slots).
  __device__ __forceinline__ void expect_next(const DeviceWarp& warp, int b) const {
    warp.once([&] { arrived[(b - first) % slots].arrive_expecting(bytes); });
  }
  __device__ __forceinline__ void send(const DeviceWarp& warp, int b,
                                       const block_columns::Tile<DeviceWarp>& tile) const {
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
    constexpr int LP = block_columns::LP;
    const double* at =
        P(b) + (warp.id * 16 + block_columns::group_id(warp.lane)) * LP + 2 * block_columns::thread_in_group(warp.lane);
    const double* e = tile.value.e;
    const unsigned to = unsigned(__cvta_generic_to_shared(at)), barrier = arrived[(b - first) % slots].address();
#pragma unroll
    for (int i = 1; i <= DeviceWarp::Card::cluster; ++i) {  // the next rank first
      const int other = (rank + i) % DeviceWarp::Card::cluster;
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

/// The mail of P through global memory, where Solve publishes P for all roles: the flag has_P tells whether P has
/// arrived.
template <class S>
struct PublishedMail {
  using A = typename S::Arithmetic;
  using Warp = DeviceWarpOf<A>;
  static constexpr int row = 1, column = block_columns::LDB, words = 0;
  const S& s;
  int cluster;
  index_t stride;       ///< distance from one transform to the next
  const A* first;       ///< P of row block 0, in the columns of the cluster

  __device__ __forceinline__ bool wait(const Warp&, int b, const int* stop) const {
    if (b < s.start()) return true;
    return wait_or_stop(stop, [&] {
      return block_columns::published(Warp::load_acquire(s.has_P(b)), cluster) == block_columns::SOLVE_WARPS;
    });
  }
  __device__ __forceinline__ const A* P(int b) const { return first + b * stride; }
  __device__ __forceinline__ void expect_next(const Warp&, int) const {}
  __device__ __forceinline__ void send(const Warp&, int, const block_columns::Tile<Warp>&) const {}
};

/// Waits for all threads of the thread blocks that solve for the same columns if these are a cluster; otherwise for the
/// threads of the calling thread block.
__device__ __forceinline__ void cluster_sync() {
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}
__device__ __forceinline__ void fence_barriers() {
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

}  // namespace gpucholmod::cuda
