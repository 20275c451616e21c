#pragma once

#include "block_columns/solve.h"
#include "cuda/kernels/device_warp.cuh"

/// How the teams of a segment get what others have found: staging rings in shared memory, and mail within a cluster.
namespace gpucholmod::cuda {

/// Barriers in shared memory that count arrivals, and from compute capability 9.0 on bytes (PTX: mbarrier).
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
  /// When all copies that this thread has begun are there.
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
  /// Whether phase `number`, counted from 0, is over, for what threads and copies of the same block have done.
  __device__ __forceinline__ bool is_past(int number) const {
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
    return over != 0;
  }
  /// The same; may take a while to say no.
  __device__ __forceinline__ bool passed(int number) const {
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(over) : "r"(address()), "r"(number & 1) : "memory");
    return over != 0;
  }
  /// is_past() for what other blocks of the cluster have sent.
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

/// Until over(); false when everybody is to stop.
template <class F>
__device__ __forceinline__ bool wait_or_stop(const int* stop, F&& over) {
  const DeviceWarp::Wait wait;
  for (int tries = 1; !over(); ++tries) {
    if (tries % 64 == 0 && DeviceWarp::load_acquire(stop) != 0) return false;
    wait.pause();
  }
  return true;
}

/// What block_columns/feed.h fills, by bulk copies where there are such, otherwise by all lanes: a ring of `slots`
/// slots for one team. `columns`: it is filled by columns, and never closed.
template <class A, int slots, bool columns = false>
struct DeviceRing {
  using Warp = DeviceWarpOf<A>;
  static constexpr bool bulk = Warp::Card::clusters;
  static constexpr int in_16 = 16 / int(sizeof(A));  ///< words of 16 bytes
  /// Arrivals that a fill takes.
  static constexpr int arrivals = columns ? block_columns::LANES : bulk ? 1 : block_columns::LANES + 1;
  struct State {
    Mbarrier full[slots], empty[slots];
    int open[slots];
  };
  A* memory;
  int words;  ///< of a slot
  State* state;

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
  /// The same; false also when everybody is to stop.
  __device__ __forceinline__ bool wait(const Warp&, int i, const int* stop) const {
    return wait_or_stop(stop, [&] { return state->full[unsigned(i) % slots].is_past(int(unsigned(i) / slots)); });
  }
  __device__ __forceinline__ A* slot(int i) const { return memory + unsigned(i) % slots * words; }
  __device__ __forceinline__ void release(const Warp& warp, int i) const {
    warp.sync();
    warp.once([&] { state->empty[unsigned(i) % slots].arrive(); });
  }

  template <class F>
  __device__ __forceinline__ bool wait_empty(const Warp&, int i, F&& over) const {
    if (i < slots) return true;
    const typename Warp::Wait wait;
    while (!state->empty[unsigned(i) % slots].passed(int(unsigned(i) / slots) - 1)) {
      if (over()) return false;
      wait.pause();
    }
    return true;
  }
  __device__ __forceinline__ void fill(const Warp& warp, int i, const A* from, int count) const {
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
  /// CHAIN_COLUMNS columns of V, with leading dimension LDB.
  __device__ __forceinline__ void fill_columns_of_V(const Warp& warp, int i, const A* from, index_t ld) const {
    using namespace block_columns;
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
  /// A tile of R, or a link, with leading dimension LDT.
  template <class T>
  __device__ __forceinline__ void fill_columns(const Warp& warp, int i, const T* from, index_t ld) const {
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

 private:
  /// What the lanes copy from now on may have been seen by one of them only.
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

/// P within a cluster: 16 rows of a warp go to every block's shared memory, which a barrier there counts.
struct ClusterMail {
  static constexpr int row = block_columns::LP, column = 1;  ///< where the neighbours of an entry of P are
  /// P_(b + REACH) needs P_(b + 1) and on from all teams, which have used P_b then.
  static constexpr int slots = block_columns::REACH;
  static constexpr int slot_words = block_columns::NB * block_columns::LP, words = slots * slot_words;
  static constexpr int bytes = block_columns::NB * block_columns::CHAIN_COLUMNS * 8;

  double* memory;
  Mbarrier* arrived;
  int rank, first;  ///< the first row block whose P comes

  /// P of the first `there` row blocks is there from the start; the first `unused` slots are free from the start.
  __device__ __forceinline__ void init(int there, int unused) const {
    for (int i = 0; i < slots; ++i) {
      arrived[i].init(1);
      if (i < there) arrived[i].arrive();
      if (i < unused) while (!arrived[i].has_come(0)) {}  // it has; a tool wants every phase to be waited for
      if (i >= there || i < unused) arrived[i].arrive_expecting(bytes);
    }
  }
  /// That is P of row blocks above the panel, for CHAIN_COLUMNS columns of V: by all threads of the block.
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
  /// P_b is there: its place is for P_(b + slots) now.
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
    for (int i = 1; i <= DeviceWarp::Card::cluster; ++i) {  // the next in turn first
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

/// P where it is published for everybody: its flag says whether it is there.
template <class S>
struct PublishedMail {
  using A = typename S::Arithmetic;
  using Warp = DeviceWarpOf<A>;
  static constexpr int row = 1, column = block_columns::LDB, words = 0;
  const S& s;
  int cluster;
  index_t stride;       ///< from one transform to the next
  const A* first;       ///< P of row block 0, the columns of the cluster

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

/// By all threads of the blocks that solve for the same columns, where these are a cluster; otherwise by those of one
/// block.
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
