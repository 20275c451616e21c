#pragma once

#include "cuda/kernels/device_warp.cuh"
#include "block_columns/stepwise.h"

namespace gpucholmod::cuda {

__device__ __forceinline__ DeviceTeam whole_block(double* shared) {
  return {shared, {int(threadIdx.x) / block_columns::LANES, int(threadIdx.x) % block_columns::LANES}};
}

/// Whether there is a persistent kernel for an architecture, as __CUDA_ARCH__ counts them.
#define GPUCHOLMOD_PERSISTENT(architecture) ((architecture) >= 900 && (architecture) < 1200)
/// Whether there are kernels for segments: they have instructions besides that nvcc knows from CUDA 12.1 on.
#define GPUCHOLMOD_SEGMENTS(architecture) (GPUCHOLMOD_PERSISTENT(architecture) && CUDART_VERSION >= 12010)
/// A parameter that stays in constant memory, where a kernel can have such.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define GPUCHOLMOD_GRID_CONSTANT
#else
#define GPUCHOLMOD_GRID_CONSTANT __grid_constant__
#endif

/// A modification in one launch: every block of threads takes strips of columns by ticket, from the left.
///
///   Grid      at most as many blocks as run at once; a strip only waits for strips with earlier tickets, so no cooperative
///             launch is needed
///   Threads   256, one block a multiprocessor: a warp keeps V of its 16 columns in registers, and up to 64 rows of R
///   Shared    block_columns::SharedMemory<K>::words doubles, dynamic
///   The rest  block_columns/strip.h, which a CPU can run too
///
/// For the GPUs of data centres from compute capability 9.0 on: others have too little shared memory, and code for
/// them is left out.
template <class T, int K>
__global__ void __launch_bounds__(DeviceTeam::THREADS, 1) modify_strips(const block_columns::Job<T> job) {
#if GPUCHOLMOD_PERSISTENT(__CUDA_ARCH__)
  using Task = block_columns::StripTask<T, K, DeviceTeam>;
  extern __shared__ __align__(16) double shared[];
  __shared__ int ticket;
  const DeviceTeam team = whole_block(shared);
  for (;;) {
    if (threadIdx.x == 0) ticket = atomicAdd(job.ticket, 1);
    __syncthreads();
    const int strip = job.first + ticket;
    __syncthreads();
    if (strip >= job.end) return;
    typename Task::Blocks blocks(team, job.shared, strip * block_columns::BLOCKS);
    typename Task::States states;
    if (!Task(team, job, strip, blocks, states).run()) return;
  }
#endif
}

/// The plain path, block_columns/stepwise.h. Grid: one block of threads per strip of the panel; one for find_steps; the
/// strips from that of row block b on for apply_steps.
template <class T, int K>
__global__ void __launch_bounds__(DeviceTeam::THREADS) begin_steps(const block_columns::Job<T> job) {
  block_columns::Stepwise<T, K, DeviceTeam>(whole_block(nullptr), job, job.first + int(blockIdx.x)).catch_up();
}
template <class T, int K>
__global__ void __launch_bounds__(DeviceTeam::THREADS) find_steps(const block_columns::Job<T> job, int b) {
  __shared__ int failed;
  block_columns::Stepwise<T, K, DeviceTeam>(whole_block(nullptr), job, b / block_columns::BLOCKS).find(b, &failed);
}
template <class T, int K>
__global__ void __launch_bounds__(DeviceTeam::THREADS) apply_steps(const block_columns::Job<T> job, int b) {
  const int strip = b / block_columns::BLOCKS + int(blockIdx.x);
  block_columns::Stepwise<T, K, DeviceTeam>(whole_block(nullptr), job, strip).apply(b);
}

}  // namespace gpucholmod::cuda
