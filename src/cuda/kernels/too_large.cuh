#pragma once

#include <cmath>

#include "base/types.h"

/// Checks of numbers: of those that are about to become floats, and of V before a factor is written to.
namespace gpucholmod::cuda {

constexpr int look_threads = 256;

/// Lowers *first to the least i of a finite number that is not finite as a float, if there is one.
///   Grid     any number of blocks, which take the numbers in turn
static __global__ void __launch_bounds__(look_threads)
    find_too_large(const double* numbers, index_t count, unsigned long long* first) {
  const index_t step = index_t(gridDim.x) * blockDim.x;
  for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    if (isfinite(numbers[i]) && !isfinite(float(numbers[i]))) {
      atomicMin(first, static_cast<unsigned long long>(i));
      return;
    }
}

/// Sets *found to 1 if the magnitude of a number is not at most `most`, as that of NaN is not.
///   Grid     any number of blocks, which take the numbers in turn
static __global__ void __launch_bounds__(look_threads)
    find_beyond(const double* numbers, index_t count, double most, int* found) {
  const index_t step = index_t(gridDim.x) * blockDim.x;
  for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    if (!(fabs(numbers[i]) <= most)) *found = 1;
}

}  // namespace gpucholmod::cuda
