#pragma once

#include "base/types.h"
#include "block_columns/shifted.h"
#include "cuda/kernels/device_warp.cuh"

/// Kernels that move entries of a factor. Matrices are column-major, in device memory.
namespace gpucholmod::cuda {

constexpr int gather_threads = 256;

/// Describes how entries of a factor move. The arrays are in device memory, indexed by the columns of the new factor.
struct Moves {
  const int* rows;     ///< row of the old factor; negative: zero. Null: row i comes from row i
  const int* columns;  ///< column of the old factor; negative: zero. A column that stays keeps its rows
  const int* readers;  ///< new column that comes from the old column of this number, or -1. Null: not in place
  int* counters;       ///< zeros at the start: tickets, then, in place, the pieces read for each new column
  index_t first;       ///< first column that moves
  bool back;           ///< True if the last column moves first; in place, no column comes from one written before
};

/// Copies from(rows[i], columns[j]) to to(i, j) for i <= j; entries below the diagonal of `from` are zero. In place, a
/// thread block holds a piece of a column in registers until the column that the piece overwrites has been read. Thread
/// blocks with earlier tickets read that column, so no thread block waits for one that has not begun.
///   Grid     as many blocks as run at once
template <class T>
__global__ void __launch_bounds__(gather_threads)
    move_entries(MatrixView<const T> from, Moves moves, MatrixView<T> to) {
  constexpr int each = 8, piece = each * gather_threads;
  __shared__ int sTicket;
  const int pieces = int((to.rows + piece - 1) / piece);
  int* const read = moves.counters + 1;
  while (true) {
    if (threadIdx.x == 0) sTicket = atomicAdd(moves.counters, 1);
    __syncthreads();
    const index_t turn = sTicket / pieces, begin = index_t(sTicket % pieces) * piece + threadIdx.x;
    if (turn >= to.cols - moves.first) return;
    const index_t number = moves.back ? to.cols - 1 - turn : moves.first + turn, column = moves.columns[number];
    if (moves.readers && column == number) {  // the column stays
      __syncthreads();
      continue;
    }
    T value[each];
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const index_t i = begin + e * gather_threads;
      const index_t row = i > number ? -1 : moves.rows ? moves.rows[i] : i;
      value[e] = row >= 0 && row <= column ? from.data[row + column * from.ld] : T(0);
    }
    __syncthreads();
    if (moves.readers) {
      if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(read + number, 1);
        const int reader = moves.readers[number];
        if (reader >= 0)
          while (*static_cast<volatile int*>(read + reader) < pieces) {}
        __threadfence();
      }
      __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < each; ++e)
      if (const index_t i = begin + e * gather_threads; i <= number) to.data[i + number * to.ld] = value[e];
  }
}

/// Copies R(gone[q], keep[first + i]) to V(i, q); entries below the diagonal of R are zero.
///   Grid     (V.cols, V.rows / 256), rounded up
template <class T>
__global__ void __launch_bounds__(gather_threads)
    gather_rows(MatrixView<const T> R, const int* gone, const int* keep, index_t first, MatrixView<double> V) {
  const index_t i = index_t(blockIdx.y) * gather_threads + threadIdx.x, q = blockIdx.x;
  if (i >= V.rows) return;
  const index_t row = gone[q], column = keep[first + i];
  V.data[i + q * V.ld] = row < column ? double(R.data[row + column * R.ld]) : 0;
}

/// Finds the reflections from row `begin` on of a column that has moved to the right, and applies them to the columns
/// that they come from. Grid: one block.
template <class T>
__global__ void __launch_bounds__(DeviceTeam::THREADS) find_reflections(block_columns::Shifted<T> s, index_t begin) {
  __shared__ double shared[block_columns::Reflecting<T, DeviceTeam>::words];
  block_columns::Reflecting<T, DeviceTeam>(whole_block(shared), s).find(begin);
}

/// Applies the reflections from row `begin` on to the columns to the right, from `behind` on.
///   Grid     a block for every 32 columns
template <class T>
__global__ void __launch_bounds__(DeviceTeam::THREADS)
    follow_reflections(block_columns::Shifted<T> s, index_t begin, index_t behind) {
  using Reflecting = block_columns::Reflecting<T, DeviceTeam>;
  __shared__ double shared[Reflecting::words];
  Reflecting(whole_block(shared), s).follow(begin, behind + index_t(blockIdx.x) * Reflecting::COLUMNS);
}

/// Applies all reflections, after a column has moved to the left, to the columns behind its new place.
///   Grid     a block for every 32 columns
template <class T>
__global__ void __launch_bounds__(DeviceTeam::THREADS) follow_back(block_columns::Shifted<T> s) {
  using Reflecting = block_columns::Reflecting<T, DeviceTeam>;
  __shared__ double shared[Reflecting::words];
  Reflecting(whole_block(shared), s).follow_back(s.first + 1 + index_t(blockIdx.x) * Reflecting::COLUMNS);
}

}  // namespace gpucholmod::cuda
