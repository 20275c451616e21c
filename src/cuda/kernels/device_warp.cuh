#pragma once

#include "cuda/kernels/device_products.cuh"
#include "cuda/kernels/reciprocal.cuh"

namespace gpucholmod::cuda {

/// Implements the Warp of block_columns/warp.h by the lanes of a warp of the GPU. HostWarp in tests/core/host_grid.h
/// tells what each function does. A is the type that the warp computes with.
template <class A>
struct DeviceWarpOf : DeviceProducts<A> {
  using Arithmetic = A;
  template <class S>
  using PerLane = typename DeviceProducts<A>::template PerLane<S>;
  using DeviceProducts<A>::all;
  using DeviceProducts<A>::lane;

  DeviceWarpOf() = default;
  __device__ __forceinline__ DeviceWarpOf(int id, int lane) {
    this->id = id;
    this->lane = lane;
  }

  template <class F>
  __device__ __forceinline__ void each(F&& f) const { f(lane); }
  template <class F>
  __device__ __forceinline__ void once(F&& f) const {
    if (lane == 0) f();
  }
  __device__ __forceinline__ void sync() const { __syncwarp(); }

  __device__ __forceinline__ A total(const PerLane<A>& x) const {
    A sum = x.value;
    for (int stride = 16; stride > 0; stride /= 2) sum += __shfl_xor_sync(all, sum, stride);
    return sum;
  }
  __device__ __forceinline__ A from_lane(const PerLane<A>& x, int from) const {
    return __shfl_sync(all, x.value, from);
  }
  template <class F>
  __device__ __forceinline__ int leading(F&& f) const {
    const unsigned no = ~__ballot_sync(all, f(lane));
    return no == 0 ? block_columns::LANES : __ffs(int(no)) - 1;
  }

  __device__ static __forceinline__ double reciprocal(double x) { return cuda::reciprocal(x); }
  __device__ static __forceinline__ double reciprocal_root(double x) { return cuda::reciprocal_root(x); }
  __device__ static __forceinline__ float reciprocal_root(float x) {
    const float y = rsqrtf(x);
    return fmaf(0.5f * y, fmaf(-x * y, y, 1.0f), y);
  }
};

using DeviceWarp = DeviceWarpOf<double>;

/// A team of some or all warps of a thread block.
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
  Warp warp;           ///< the thread's warp; its id counts from the first warp of the team
  int named = 0;       ///< number of the team's own barrier; 0: the barrier of the whole thread block
  int warps = block_columns::WARPS;

  __device__ __forceinline__ int size() const { return warps; }
  __device__ __forceinline__ void barrier() {
    if (named == 0) __syncthreads();
    else asm volatile("bar.sync %0, %1;" ::"r"(named), "r"(warps * block_columns::LANES) : "memory");
  }
  /// Calls f(warp) in every warp, then waits at a barrier.
  template <class F>
  __device__ __forceinline__ void warps_sync(F&& f) {
    f(warp);
    barrier();
  }
  /// Calls f(warp) in every warp, without a barrier at the end.
  template <class F>
  __device__ __forceinline__ void each_warp(F&& f) { f(warp); }
  /// Returns whether f(warp), one bool for each warp, is true in all warps. Ends in a barrier.
  template <class F>
  __device__ __forceinline__ bool all_sync(F&& f) {
    const int mine = f(warp);
    if (named == 0) return __syncthreads_and(mine);
    int all;
    asm volatile("{.reg .pred p, q; setp.ne.s32 p, %1, 0; bar.red.and.pred q, %2, %3, p; selp.s32 %0, 1, 0, q;}"
                 : "=r"(all) : "r"(mine), "r"(named), "r"(warps * block_columns::LANES) : "memory");
    return all;
  }
  /// Returns f(warp) to each warp by itself, without a barrier.
  template <class F>
  __device__ __forceinline__ bool all_warps(F&& f) { return f(warp); }
  /// Calls f(warp, i) in the warps for which is_first(warp), and g(warp, i) in the others, for i from `begin` on, until
  /// a call returns false or i is `end`; without a barrier. Returns this i.
  template <class P, class F, class G>
  __device__ __forceinline__ int each_in_step(int begin, int end, P&& is_first, F&& f, G&& g) {
    int i = begin;
    if (is_first(warp)) GPUCHOLMOD_NO_UNROLL for (; i < end && f(warp, i); ++i) {}
    else GPUCHOLMOD_NO_UNROLL for (; i < end && g(warp, i); ++i) {}
    return i;
  }
  /// Calls f(number of the thread) in every thread, then waits at a barrier.
  template <class F>
  __device__ __forceinline__ void threads_sync(F&& f) {
    f(warp.id * block_columns::LANES + warp.lane);
    barrier();
  }
  /// Calls f(number of the thread) in every thread, without a barrier.
  template <class F>
  __device__ __forceinline__ void each_thread(F&& f) { f(warp.id * block_columns::LANES + warp.lane); }
  /// Calls f(team of the first `count` warps) in these warps. Their barrier is number 1, which no other team may have.
  /// The whole team does not wait at a barrier.
  template <class F>
  __device__ __forceinline__ void with_first(int count, F&& f) {
    if (warp.id < count) f(DeviceTeamOf{shared, warp, 1, count});
  }
  /// Calls f() in the thread that publishes, without a barrier.
  template <class F>
  __device__ __forceinline__ void once(F&& f) {
    if (warp.id == 0 && warp.lane == 0) f();
  }
  /// Sets a flag. A reader that acquires the flag sees what the team has written before its last barrier, and what the
  /// publishing thread has written since.
  __device__ __forceinline__ void store_release(int* flag, int value) {
#if __CUDA_ARCH__ >= 700
    if (warp.id == 0 && warp.lane == 0)
      asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#endif
  }
  /// Tells all roles that a row block is rejected. `left` is to be read as SegmentState::left. With `across`, `state`
  /// is in the memory of another GPU.
  __device__ __forceinline__ void reject(block_columns::SegmentState* state, int left, bool across = false) {
    once([&] {
      if (across) atomicMax_system(&state->left, left);
      else atomicMax(&state->left, left);
      Warp::store_release(&state->stop, 1, across);
    });
  }
  __device__ __forceinline__ void stop(block_columns::PassState* pass_state, block_columns::Stop why, int pivot,
                                       double entry = 0) {
    once([&] {
      pass_state->pivot = pivot;
      pass_state->set_entry(entry);
    });
    store_release(&pass_state->stop, why);
  }
};

using DeviceTeam = DeviceTeamOf<double>;

template <class A>
__device__ __forceinline__ DeviceTeamOf<A> whole_block(A* shared) {
  return {shared, {int(threadIdx.x) / block_columns::LANES, int(threadIdx.x) % block_columns::LANES}};
}

}  // namespace gpucholmod::cuda
