#pragma once

#include "cuda/kernels/staging_ring.cuh"

namespace gpucholmod::cuda {

/// The mbarriers by which the warps of a group wait for each other in LastGroups: two for each half of a row block of
/// each group. One warp fills a half, another warp reads it.
template <class A>
struct DeviceRelay {
  using Warp = DeviceWarpOf<A>;
  static constexpr int all = block_columns::LAST_GROUPS * block_columns::HALVES;
  struct State {
    Mbarrier full[all], empty[all];
  };
  State* state;

  __device__ __forceinline__ void init() const {
    for (int i = 0; i < all; ++i) {
      state->full[i].init(1);
      state->empty[i].init(1);
    }
  }
  /// Waits until a half of a group is filled in turn i, counted from 0.
  __device__ __forceinline__ void wait(const Warp&, int group, int half, int i) const {
    until_passed(state->full[group * block_columns::HALVES + half], i);
  }
  __device__ __forceinline__ void release(const Warp& warp, int group, int half) const {
    warp.sync();
    warp.once([&] { state->empty[group * block_columns::HALVES + half].arrive(); });
  }
  /// Waits until a half of a group may be filled in turn i.
  __device__ __forceinline__ void wait_empty(const Warp&, int group, int half, int i) const {
    if (i > 0) until_passed(state->empty[group * block_columns::HALVES + half], i - 1);
  }
  __device__ __forceinline__ void fill(const Warp& warp, int group, int half) const {
    warp.sync();
    warp.once([&] { state->full[group * block_columns::HALVES + half].arrive(); });
  }

 private:
  __device__ static __forceinline__ void until_passed(const Mbarrier& barrier, int turn) {
    const typename Warp::Wait wait;
    while (!barrier.passed(turn)) wait.pause();
  }
};

}  // namespace gpucholmod::cuda
