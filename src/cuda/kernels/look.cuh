#pragma once

#include <cmath>

#include "base/types.h"
#include "block_columns/pass.h"
#include "block_columns/warp.h"

/// The first look at the columns of V of a pass.
namespace gpucholmod::cuda {

/// The findings of take_columns() in all pieces of the columns of V in a pass.
struct Pieces {
  const block_columns::Looked* looks;
  int count;    ///< number of pieces
  double most;  ///< largest magnitude of a plain number
};

constexpr int look_threads = 256;
constexpr int look_at_once = 8;  ///< numbers that a thread reads before it goes on, as each read takes long

/// The places of the columns of V of a pass, in the order of the pass, before anything has read them.
struct UnseenColumns {
  struct Column {
    const double* from;  ///< the column; null: there is none, and the pass has zeros
    double by;           ///< multiplier of the column
    int number;          ///< number among the columns that there are
  } of[block_columns::most_columns];
};

/// Copies the columns of V (m rows), each times its multiplier, to `out` (rows x columns of the pass), in the scalar of
/// `out`, continued by zeros. The columns may be stored in `out`. Finds the largest magnitude and the sum of squares of
/// each piece of a column, in a fixed order.
///   Grid     pieces of a column by columns of the pass
///   Shared   the findings of each warp
template <class A>
__global__ void __launch_bounds__(look_threads)
    take_columns(const UnseenColumns V, index_t m, A* out, index_t rows,
                 block_columns::Looked* looks) {
  __shared__ block_columns::Looked sLooks[look_threads / block_columns::LANES];
  const UnseenColumns::Column column = V.of[blockIdx.y];
  const index_t step = index_t(gridDim.x) * look_threads;
  block_columns::Looked mine{0, 0};
  for (index_t first = blockIdx.x * look_threads + threadIdx.x; first < rows; first += look_at_once * step) {
    double numbers[look_at_once];
#pragma unroll
    for (int l = 0; l < look_at_once; ++l) {
      const index_t i = first + l * step;
      numbers[l] = column.from && i < m ? column.from[i] * column.by : 0;
    }
#pragma unroll
    for (int l = 0; l < look_at_once; ++l) {
      const index_t i = first + l * step;
      if (i < rows) out[i + blockIdx.y * rows] = A(numbers[l]);
      const double size = fabs(numbers[l]);
      mine.largest = size < HUGE_VAL ? fmax(mine.largest, size) : HUGE_VAL;
      mine.squares += size * size;
    }
  }
  if (!column.from) return;
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
  looks[column.number * gridDim.x + blockIdx.x] = mine;
}

}  // namespace gpucholmod::cuda
