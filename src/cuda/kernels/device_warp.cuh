#pragma once

#include <type_traits>

#include "block_columns/segment.h"
#include "cuda/kernels/block_columns.cuh"

namespace gpucholmod::cuda {

/// What block_columns/warp.h asks of a warp, by the lanes of a real one; what each function does: HostWarp in
/// tests/core/host_grid.h. Products need compute capability 8.0. A: what is computed with.
template <class A>
struct DeviceWarpOf {
  using Arithmetic = A;
#ifdef __CUDA_ARCH__
  using Card = typename CardOf<__CUDA_ARCH__>::template With<A>;
#else
  using Card = block_columns::Card90;  // only for what does not depend on it
#endif
  static constexpr bool in_place = Card::products == block_columns::Products::fma;
  template <class S>
  struct PerLane {
    S value;
    __device__ __forceinline__ S& operator[](int) { return value; }
    __device__ __forceinline__ const S& operator[](int) const { return value; }
  };
  static constexpr unsigned all = 0xffffffffu;

  int id, lane;

  template <class F>
  __device__ __forceinline__ void each(F&& f) const { f(lane); }
  template <class F>
  __device__ __forceinline__ void once(F&& f) const {
    if (lane == 0) f();
  }
  __device__ __forceinline__ void sync() const { __syncwarp(); }

  __device__ __forceinline__ void quad_sum(PerLane<A>& x) const {
    x.value += __shfl_xor_sync(all, x.value, 1);
    x.value += __shfl_xor_sync(all, x.value, 2);
  }
  __device__ __forceinline__ void quad_max(PerLane<A>& x) const {
    x.value = fmax(x.value, __shfl_xor_sync(all, x.value, 1));
    x.value = fmax(x.value, __shfl_xor_sync(all, x.value, 2));
  }
  __device__ __forceinline__ void quad_broadcast(PerLane<A>& x, int t) const { x.value = __shfl_sync(all, x.value, lane / 4 * 4 + t); }
  __device__ __forceinline__ A total(const PerLane<A>& x) const {
    A sum = x.value;
    for (int stride = 16; stride > 0; stride /= 2) sum += __shfl_xor_sync(all, sum, stride);
    return sum;
  }
  __device__ __forceinline__ A from_lane(const PerLane<A>& x, int from) const { return __shfl_sync(all, x.value, from); }
  /// For x far from the ends of the range; half the time of rsqrt().
  __device__ static __forceinline__ double reciprocal_root(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x * y, y, 1.0);
    y = fma(y * e, fma(0.375, e, 0.5), y);
    return fma(0.5 * y, fma(-x * y, y, 1.0), y);
  }
  __device__ static __forceinline__ float reciprocal_root(float x) {
    const float y = rsqrtf(x);
    return fmaf(0.5f * y, fmaf(-x * y, y, 1.0f), y);
  }

  template <block_columns::Access access, class S>
  __device__ static __forceinline__ S read(const S* p) {
    if constexpr (access == block_columns::Access::shared) return *p;
    else return read_global<access>(p);
  }
  template <block_columns::Access access, class S>
  __device__ static __forceinline__ void write(S* p, const S& value) {
    if constexpr (access == block_columns::Access::stream) write_stream(p, value);
    else *p = value;
  }

  /// By the tensor cores. A lane's columns 2t and 2t + 1 of A are taken as the instruction's columns t and t + 4, and the
  /// rows of B likewise, so that what one product leaves in the registers is what the next one takes.
  template <int s, block_columns::Access access>
  __device__ __forceinline__ void multiply_add(PerLane<block_columns::Fragment<A>>& D, const PerLane<block_columns::LeftFragment<A>>& left, const A* B,
                               int ld) const {
    const auto* at = reinterpret_cast<const block_columns::Pair<A>*>(B + block_columns::group_id(lane) * ld +
                                                                     2 * block_columns::thread_in_group(lane));
    const block_columns::Pair<A> b = read<access>(at);
    multiply_add_to(D, left, s > 0 ? b.x : -b.x, s > 0 ? b.y : -b.y);
  }
  __device__ __forceinline__ void multiply_add_to(PerLane<block_columns::Fragment<A>>& D, const PerLane<block_columns::LeftFragment<A>>& left,
                                                  A b0, A b1) const {
    A* d = D.value.e;
    const A* a = left.value.e;
    if constexpr (Card::products == block_columns::Products::tensor_16_8_8) {
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
      asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
          : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#endif
    } else if constexpr (Card::products == block_columns::Products::tensor_8_8_4) {
      multiply_add_eight(d, a[0], b0);
      multiply_add_eight(d + 2, a[1], b0);
      multiply_add_eight(d, a[2], b1);
      multiply_add_eight(d + 2, a[3], b1);
    } else {
      multiply_add_lanes(d, a, b0, b1);
    }
  }
  /// Eight rows of D by four columns of A, or eight rows and four columns of B: a quarter of the product.
  __device__ static __forceinline__ void multiply_add_eight(double* d, double a, double b) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(b));
#endif
  }
  /// All of it, without tensor cores: a lane has what it needs of A in its quad, of B in the groups 2t and 2t + 1. A loop, as there are many
  /// products in a kernel, and the compiler takes minutes over them otherwise.
  __device__ __forceinline__ void multiply_add_lanes(A* d, const A* a, A b0, A b1) const {
    const auto add = [d](A low, A high, A left, A right) {
      d[0] = fma(low, left, d[0]);
      d[1] = fma(low, right, d[1]);
      d[2] = fma(high, left, d[2]);
      d[3] = fma(high, right, d[3]);
    };
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const auto from_A = [&](A x) { return __shfl_sync(all, x, lane / 4 * 4 + k); };
      const auto from_B = [&](A x, int next) { return __shfl_sync(all, x, lane % 4 * 8 + 4 * next + k); };
      add(from_A(a[0]), from_A(a[1]), from_B(b0, 0), from_B(b0, 1));
      add(from_A(a[2]), from_A(a[3]), from_B(b1, 0), from_B(b1, 1));
    }
  }

  /// The same with B(k, n) at B[k * ld + n].
  template <int s>
  __device__ __forceinline__ void multiply_add_rows(PerLane<block_columns::Fragment<A>>& D, const PerLane<block_columns::LeftFragment<A>>& left,
                                                    const A* B, int ld) const {
    const A* at = B + 2 * block_columns::thread_in_group(lane) * ld + block_columns::group_id(lane);
    multiply_add_to(D, left, s > 0 ? at[0] : -at[0], s > 0 ? at[ld] : -at[ld]);
  }

  /// D <- D + s AB, A by load_left_apart(), B(k, n) at B[k * k_stride + n * n_stride].
  template <int s>
  __device__ __forceinline__ void multiply_add_apart(PerLane<block_columns::Fragment<A>>& D, const PerLane<block_columns::LeftFragment<A>>& left,
                                                     const A* B, int k_stride, int n_stride) const {
    const A* at = B + block_columns::thread_in_group(lane) * k_stride + block_columns::group_id(lane) * n_stride;
    multiply_add_to(D, left, s > 0 ? at[0] : -at[0], s > 0 ? at[4 * k_stride] : -at[4 * k_stride]);
  }

  /// The same with B(k, n) = tile(8 * half + n, k).
  template <int half>
  __device__ __forceinline__ void multiply_add_half(PerLane<block_columns::Fragment<A>>& D, const PerLane<block_columns::LeftFragment<A>>& left,
                                                    const PerLane<block_columns::Fragment<A>>& tile) const {
    multiply_add_to(D, left, tile.value.e[2 * half], tile.value.e[2 * half + 1]);
  }

  /// D_j <- D_j + s L B_j, L(m, k) at left[m * left_ld + k] (16 x 8), B_j(k, n) at right[j * stride + n * right_ld + k], count of them, in
  /// shared memory: sixteen bytes of a row of L serve 2 count columns. Half of a quad's lanes (with floats), or each of them, begins in
  /// another place of the sum: free of bank conflicts where the leading dimensions are eight more than a multiple of 16, or 8.
  template <int s, int count>
  __device__ __forceinline__ void multiply_add_in_place(PerLane<block_columns::Fragment<A>>* D, const A* left, int left_ld, const A* right,
                                                        int right_ld, int stride) const {
    constexpr int parts = 8 / in_16;
    const int t = block_columns::thread_in_group(lane);
    left += block_columns::group_id(lane) * left_ld;
    right += 2 * t * right_ld;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int at = (part ^ t * parts / 4) * in_16;
      const Sixteen low = sixteen(left + at), high = sixteen(left + 8 * left_ld + at);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const Sixteen b0 = sixteen(right + j * stride + at), b1 = sixteen(right + j * stride + right_ld + at);
        A* d = D[j].value.e;
#pragma unroll
        for (int k = 0; k < in_16; ++k) {
          d[0] = fma(s > 0 ? low.e[k] : -low.e[k], b0.e[k], d[0]);
          d[1] = fma(s > 0 ? low.e[k] : -low.e[k], b1.e[k], d[1]);
          d[2] = fma(s > 0 ? high.e[k] : -high.e[k], b0.e[k], d[2]);
          d[3] = fma(s > 0 ? high.e[k] : -high.e[k], b1.e[k], d[3]);
        }
      }
    }
  }

  /// 16 rows of a matrix of order NB: a lane has every fourth of them, and eight columns, so that the sums of a product with CHAIN_COLUMNS
  /// columns take nothing from other lanes until they are added up.
  struct Rows {
    A e[4][8];
  };
  /// Element (m, l) at p[m * ld + l], in shared memory.
  __device__ __forceinline__ Rows load_rows(const A* p, int ld) const {
    Rows rows;
    p += block_columns::group_id(lane) % 4 * ld + first_of_sum();
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int l = 0; l < 8; l += in_16) {
        const Sixteen part = sixteen(p + 4 * i * ld + l);
#pragma unroll
        for (int k = 0; k < in_16; ++k) rows.e[i][l + k] = part.e[k];
      }
    return rows;
  }
  /// D <- D + s rows P, P(l, q) at P[q * ld + l].
  template <int s>
  __device__ __forceinline__ void multiply_add_rows_of(PerLane<block_columns::Fragment<A>>& D, const Rows& rows, const A* P, int ld) const {
    // Each step leaves a lane half of what it has, of those eight lanes that have the same rows: at last rows g and g + 8, columns 2t, 2t + 1.
    const bool upper = lane & 16, right = lane & 2, odd = lane & 1;
    A two[2][8], four[2][4];
    constexpr int columns = sizeof(A) == sizeof(float) ? 8 : 2;  // at a time, for the registers
    P += first_of_sum();
#pragma unroll
    for (int first = 0; first < 8; first += columns) {
      A sum[4][columns] = {};
#pragma unroll
      for (int l = 0; l < 8; l += in_16) {
        Sixteen part[columns];
#pragma unroll
        for (int q = 0; q < columns; ++q) part[q] = sixteen(P + (first + q) * ld + l);
#pragma unroll
        for (int k = 0; k < in_16; ++k)
#pragma unroll
          for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int q = 0; q < columns; ++q) sum[i][q] = fma(rows.e[i][l + k], part[q].e[k], sum[i][q]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int q = 0; q < columns; ++q) two[i][first + q] = halve(sum[2 * i][q], sum[2 * i + 1][q], upper, 16);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int q = 0; q < 4; ++q) four[i][q] = halve(two[i][q], two[i][q + 4], right, 2);
#pragma unroll
      for (int q = 0; q < 2; ++q) D.value.e[2 * i + q] += s * halve(four[i][q], four[i][q + 2], odd, 1);
    }
  }

  /// A word of shared memory by itself: the compiler does not take its neighbour along.
  __device__ static __forceinline__ double shared_word(const double* p) {
    double value;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(unsigned(__cvta_generic_to_shared(p))) : "memory");
    return value;
  }
  __device__ static __forceinline__ float shared_word(const float* p) { return *p; }

  static __device__ __forceinline__ void copy_16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from)
                 : "memory");
#endif
  }
  static __device__ __forceinline__ void end_copy() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  template <int pending>
  static __device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
  }

  template <class F>
  __device__ __forceinline__ int leading(F&& f) const {
    const unsigned no = ~__ballot_sync(all, f(lane));
    return no == 0 ? block_columns::LANES : __ffs(int(no)) - 1;
  }
  __device__ static __forceinline__ int load_acquire(const int* flag, bool several = false) {
    int value = 0;
#if __CUDA_ARCH__ >= 700
    if (several) asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    else asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
#endif
    return value;
  }
  __device__ static __forceinline__ int load_relaxed(const int* flag) { return *static_cast<const volatile int*>(flag); }
  __device__ static __forceinline__ void store_release(int* flag, int value, bool several = false) {
#if __CUDA_ARCH__ >= 700
    if (several) asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
    else asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#endif
  }
  __device__ static __forceinline__ void add_release(int* counter, int more = 1, bool several = false) {
#if __CUDA_ARCH__ >= 700
    if (several) asm volatile("red.release.sys.global.add.s32 [%0], %1;" ::"l"(counter), "r"(more) : "memory");
    else asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(counter), "r"(more) : "memory");
#endif
  }
  __device__ static __forceinline__ void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
  /// One wait, which polls. Where GPUCHOLMOD_WATCHDOG says after how many seconds, a wait of that length ends the kernel.
  struct Wait {
#ifdef GPUCHOLMOD_WATCHDOG
    unsigned long long since = now();
    __device__ __forceinline__ void pause() const {
      if (now() - since > GPUCHOLMOD_WATCHDOG * 1000000000ull) __trap();
    }
    __device__ static __forceinline__ unsigned long long now() {
      unsigned long long ns;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
      return ns;
    }
#else
    __device__ __forceinline__ void pause() const {}
#endif
  };
  /// What has been computed from x is not kept for after: where registers are scarcer than time.
  __device__ static __forceinline__ void compute_anew(index_t& x) { asm volatile("" : "+l"(x)); }

 private:
  static constexpr int in_16 = 16 / int(sizeof(A));
  struct alignas(16) Sixteen {
    A e[in_16];
  };
  __device__ static __forceinline__ Sixteen sixteen(const A* p) { return *reinterpret_cast<const Sixteen*>(p); }
  /// The first of the eight columns of Rows that a lane has.
  __device__ __forceinline__ int first_of_sum() const { return block_columns::thread_in_group(lane) * 8 + lane / 16 * 32; }
  /// `second`, or else `first`, and what the lane beside, which keeps the same, has of it.
  __device__ static __forceinline__ A halve(A first, A second, bool take_second, int distance) {
    return (take_second ? second : first) + __shfl_xor_sync(all, take_second ? first : second, distance);
  }

  template <class T>
  using Vector = std::conditional_t<std::is_same_v<T, double>, double2, float2>;

  template <block_columns::Access access, class T>
  __device__ static __forceinline__ block_columns::Pair<T> read_global(const block_columns::Pair<T>* p) {
    const auto* at = reinterpret_cast<const Vector<T>*>(p);
    const Vector<T> v = access == block_columns::Access::transform ? __ldcg(at) : __ldcs(at);
    return {v.x, v.y};
  }
  template <block_columns::Access access, class T>
  __device__ static __forceinline__ T read_global(const T* p) { return __ldcg(p); }

  template <class T>
  __device__ static __forceinline__ void write_stream(block_columns::Pair<T>* p, const block_columns::Pair<T>& v) {
    __stcs(reinterpret_cast<Vector<T>*>(p), Vector<T>{v.x, v.y});
  }
  template <class T>
  __device__ static __forceinline__ void write_stream(T* p, const T& v) { __stcs(p, v); }
};

using DeviceWarp = DeviceWarpOf<double>;

/// Some warps of a block of threads, or all.
template <class A>
struct DeviceTeamOf {
  using Warp = DeviceWarpOf<A>;
  static constexpr int THREADS = block_columns::WARPS * block_columns::LANES;
  template <class S>
  struct PerWarp {
    S value;
    __device__ __forceinline__ S& operator[](const Warp&) { return value; }
  };

  template <class S>
  struct PerThread {
    S value;
    __device__ __forceinline__ S& operator[](int) { return value; }
  };

  A* shared;
  Warp warp;           ///< its id counts from the first of the team
  int named = 0;       ///< 0: the whole block, otherwise the number of the team's own barrier
  int warps = block_columns::WARPS;

  __device__ __forceinline__ int size() const { return warps; }
  __device__ __forceinline__ void barrier() {
    if (named == 0) __syncthreads();
    else asm volatile("bar.sync %0, %1;" ::"r"(named), "r"(warps * block_columns::LANES) : "memory");
  }
  /// f(warp) in every warp, then a barrier.
  template <class F>
  __device__ __forceinline__ void warps_sync(F&& f) {
    f(warp);
    barrier();
  }
  /// f(warp) in every warp, without a barrier at the end.
  template <class F>
  __device__ __forceinline__ void each_warp(F&& f) { f(warp); }
  /// Whether f(warp), one bool for each warp, is true in all of them: ends in a barrier.
  template <class F>
  __device__ __forceinline__ bool all_sync(F&& f) {
    const int mine = f(warp);
    if (named == 0) return __syncthreads_and(mine);
    int all;
    asm volatile("{.reg .pred p, q; setp.ne.s32 p, %1, 0; bar.red.and.pred q, %2, %3, p; selp.s32 %0, 1, 0, q;}"
                 : "=r"(all) : "r"(mine), "r"(named), "r"(warps * block_columns::LANES) : "memory");
    return all;
  }
  /// f(warp), to each warp by itself; without a barrier.
  template <class F>
  __device__ __forceinline__ bool all_warps(F&& f) { return f(warp); }
  /// f(number of the thread) in every thread, then a barrier.
  template <class F>
  __device__ __forceinline__ void threads_sync(F&& f) {
    f(warp.id * block_columns::LANES + warp.lane);
    barrier();
  }
  /// The same without a barrier.
  template <class F>
  __device__ __forceinline__ void each_thread(F&& f) { f(warp.id * block_columns::LANES + warp.lane); }
  /// f() in the thread that publishes, without a barrier.
  template <class F>
  __device__ __forceinline__ void once(F&& f) {
    if (warp.id == 0 && warp.lane == 0) f();
  }
  /// What the team has written before its last barrier, and this thread since, is there for whoever sees the flag.
  __device__ __forceinline__ void store_release(int* flag) {
#if __CUDA_ARCH__ >= 700
    if (warp.id == 0 && warp.lane == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
#endif
  }
  /// Tells everybody that the last `left` row blocks are not to be done.
  __device__ __forceinline__ void refuse(block_columns::SegmentState* state, int left) {
    once([&] { atomicMax(&state->left, left); });
    store_release(&state->stop);
  }
  __device__ __forceinline__ void stop(block_columns::PassState* pass_state, int pivot) {
    once([&] { pass_state->pivot = pivot; });
    store_release(&pass_state->stop);
  }
};

using DeviceTeam = DeviceTeamOf<double>;

template <class A>
__device__ __forceinline__ DeviceTeamOf<A> whole_block(A* shared) {
  return {shared, {int(threadIdx.x) / block_columns::LANES, int(threadIdx.x) % block_columns::LANES}};
}

}  // namespace gpucholmod::cuda
