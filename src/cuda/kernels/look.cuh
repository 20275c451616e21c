#pragma once

#include <cmath>

#include "base/types.h"
#include "block_columns/pass.h"
#include "block_columns/warp.h"

/// A look at the columns of V of a pass, which nobody has read before.
namespace gpucholmod::cuda {

/// Pieces of the columns of V in a pass, for look_at_columns(): so many of each column.
struct Pieces {
  const block_columns::Looked* looks;
  int count;
  double most;  ///< that is a plain number
};

constexpr int look_threads = 256;

/// Finds the largest magnitude in pieces of columns of V (m rows, leading dimension ld), and the sums of their squares,
/// each in one order.
///   Grid     pieces of a column by columns
///   Shared   what each warp has seen
static __global__ void __launch_bounds__(look_threads)
    look_at_columns(const double* V, index_t ld, index_t m, block_columns::Looked* out) {
  __shared__ block_columns::Looked sLooks[look_threads / block_columns::LANES];
  const double* const column = V + blockIdx.y * ld;
  block_columns::Looked mine{0, 0};
  for (index_t i = blockIdx.x * look_threads + threadIdx.x; i < m; i += index_t(gridDim.x) * look_threads) {
    const double size = fabs(column[i]);
    mine.largest = size < HUGE_VAL ? fmax(mine.largest, size) : HUGE_VAL;
    mine.squares += size * size;
  }
  const auto add = [&](const block_columns::Looked& other) {
    mine.largest = fmax(mine.largest, other.largest);
    mine.squares += other.squares;
  };
  for (int apart = block_columns::LANES / 2; apart > 0; apart /= 2)
    add({__shfl_down_sync(0xffffffffu, mine.largest, apart), __shfl_down_sync(0xffffffffu, mine.squares, apart)});
  if (threadIdx.x % block_columns::LANES == 0) sLooks[threadIdx.x / block_columns::LANES] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < look_threads / block_columns::LANES; ++w) add(sLooks[w]);
  out[blockIdx.y * gridDim.x + blockIdx.x] = mine;
}

/// What columns of V are multiplied by.
struct Multiples {
  double of[block_columns::most_columns];
};

/// Multiplies columns (m rows, leading dimension ld). Grid: pieces of a column by columns.
static __global__ void __launch_bounds__(look_threads)
    multiply_columns(double* V, index_t ld, index_t m, const Multiples by) {
  const double multiple = by.of[blockIdx.y];
  double* const column = V + blockIdx.y * ld;
  for (index_t i = blockIdx.x * look_threads + threadIdx.x; i < m; i += index_t(gridDim.x) * look_threads)
    column[i] *= multiple;
}

}  // namespace gpucholmod::cuda
