#pragma once

#include "paper/rotate.h"

namespace gpucholmod::cuda {

/// Runs a phase in each thread of a thread block on the device, then a barrier for all threads.
template <class T, int E>
class PanelThreads {
 public:
  __device__ int threads() const { return int(blockDim.x); }
  template <class F>
  __device__ void each_sync(F&& f) {
    f(int(threadIdx.x), rV_);
    __syncthreads();
  }

 private:
  T rV_[E];
};

/// Applies the rotations of a row block to a panel of R and to the rows of V that belong to its columns.
///
///   Grid      one block per blockDim.x columns; blockDim.x a multiple of 32, at most 256
///   Shared    paper::shared_bytes<T>(blockDim.x, E), dynamic; at most 47 KB
///   The rest  paper::rotate_block, which a CPU can run too
///   Reference Walder (2010), the kernel for off-diagonal panels
template <int E, Sign sign, class T>
__global__ void __launch_bounds__(paper::max_threads_per_block) panel_rotate(const paper::Launch<T> launch) {
  extern __shared__ __align__(16) unsigned char shared[];
  T* sR = reinterpret_cast<T*>(shared);
  Rotation<T>* sG = reinterpret_cast<Rotation<T>*>(sR + blockDim.x * (paper::TILE + 1));
  PanelThreads<T, E> team;
  paper::rotate_block<E, sign>(launch, int(blockIdx.x), team, sR, sG);
}

}  // namespace gpucholmod::cuda
