#pragma once

#include "cuda/kernels/device_warp.cuh"

namespace gpucholmod::cuda {

__device__ __forceinline__ DeviceTeam whole_block(double* shared) {
  return {shared, {int(threadIdx.x) / block_columns::LANES, int(threadIdx.x) % block_columns::LANES}};
}

/// Whether there are kernels for segments for an architecture, as __CUDA_ARCH__ counts them: for the GPUs of data centres from compute
/// capability 9.0 on, as others have too little shared memory, or no such tensor cores; nvcc knows all their instructions from CUDA 12.1 on.
#define GPUCHOLMOD_SEGMENTS(architecture) ((architecture) >= 900 && (architecture) < 1200 && CUDART_VERSION >= 12010)
/// A parameter that stays in constant memory, where a kernel can have such.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define GPUCHOLMOD_GRID_CONSTANT
#else
#define GPUCHOLMOD_GRID_CONSTANT __grid_constant__
#endif

}  // namespace gpucholmod::cuda
