#pragma once

#include "base/types.h"
#include "block_columns/turns.h"

/// Kernels for a factor in the caller's memory, some parts of which lie apart (cuda/parts_apart.cuh).
namespace gpucholmod::cuda {

/// The number of threads of a thread block, and of the numbers that each thread copies. A thread reads all its numbers
/// before it writes the first, as each read takes long.
constexpr int part_threads = 256, part_numbers = 4, part_words = part_threads * part_numbers;
/// The number of columns of a diagonal block that a thread block copies, and of thread blocks for a diagonal block.
constexpr int part_columns = part_words / block_columns::NB, part_pieces = block_columns::NB / part_columns;

/// The places of the parts of a factor that lie apart. `padded` is the number of rows of the factor and the identity
/// that continues it. See SegmentFactor.
template <class T>
struct Parts {
  T* diagonal;
  int first_beside;
  T* last;  ///< the columns of the last strip above their diagonal blocks; null: they do not lie apart
  index_t ld, padded;

  GPUCHOLMOD_HOST_DEVICE index_t of_diagonal() const { return padded / block_columns::NB * part_pieces; }
  GPUCHOLMOD_HOST_DEVICE index_t of_column() const { return (padded + part_words - 1) / part_words; }
  /// Returns the number of thread blocks that copy the parts. Those for diagonal blocks come first.
  GPUCHOLMOD_HOST_DEVICE index_t pieces() const {
    return of_diagonal() + (last ? block_columns::STRIP * of_column() : 0);
  }

  struct Number {
    T* at;  ///< the number; null: the thread has none
    index_t row, column;
  };
  /// Returns the place of number l of a thread.
  GPUCHOLMOD_HOST_DEVICE Number number(index_t piece, int thread, int l) const {
    using namespace block_columns;
    const int at = l * part_threads + thread;
    if (piece < of_diagonal()) {
      const int b = int(piece / part_pieces), i = at % NB, j = int(piece % part_pieces) * part_columns + at / NB;
      const SegmentFactor<T> factor{nullptr, nullptr, ld, nullptr, nullptr, 0, diagonal, first_beside};
      const index_t column = index_t(b) * NB + j;
      return {factor.column_after(b, column) + i, index_t(b) * NB + i, column};
    }
    const index_t of_last = piece - of_diagonal(), own = of_last / of_column(), column = padded - STRIP + own,
                  i = of_last % of_column() * part_words + at;
    return {i < column / NB * NB ? last + i + own * ld : nullptr, i, column};
  }
};

/// Copies the parts of R (n x n, upper) to `parts`, with zeros below the diagonal, continued by the identity. Each
/// thread block that copies diagonal blocks sets its is_moderate to whether all diagonal entries that it copies are
/// normal and in [least, most].
///   Grid     parts.pieces()
template <class T>
__global__ void __launch_bounds__(part_threads)
    take_parts(MatrixView<const T> R, const Parts<T> parts, T least, T most, int* is_moderate) {
  T entries[part_numbers];
  bool moderate = true;
#pragma unroll
  for (int l = 0; l < part_numbers; ++l) {
    const auto [at, row, column] = parts.number(blockIdx.x, int(threadIdx.x), l);
    entries[l] = T(row == column);
    if (at && column < R.cols) entries[l] = row <= column ? R.data[row + column * R.ld] : T(0);
    const T entry = entries[l];
    if (row == column) moderate = moderate && block_columns::is_normal(entry) && entry >= least && entry <= most;
  }
#pragma unroll
  for (int l = 0; l < part_numbers; ++l)
    if (T* const at = parts.number(blockIdx.x, int(threadIdx.x), l).at) *at = entries[l];
  const bool all = __syncthreads_and(moderate);
  if (threadIdx.x == 0 && blockIdx.x < parts.of_diagonal()) is_moderate[blockIdx.x] = all;
}

/// Returns whether all `count` numbers at `are` are true. Runs in a whole thread block.
static __device__ bool all_of(const int* are, index_t count) {
  bool all = true;
  for (index_t i = threadIdx.x; i < count; i += blockDim.x) all = all && are[i];
  return __syncthreads_and(all);
}

/// Copies the parts to the upper triangle of R in diagonal blocks, and to the columns of the last strip. Sets *verdict,
/// unless `verdict` is null, to 0 if the pass is done and the diagonal was moderate; otherwise to 1. Grid: as for
/// take_parts().
template <class T>
__global__ void __launch_bounds__(part_threads)
    give_parts(const Parts<T> parts, MatrixView<T> R, const int* is_moderate, block_columns::PassEnd pass,
               int* verdict) {
  T entries[part_numbers];
  const auto place = [&](int l) -> T* {
    const auto [at, row, column] = parts.number(blockIdx.x, int(threadIdx.x), l);
    if (!at || row > column || column >= R.cols) return nullptr;
    entries[l] = *at;
    return R.data + row + column * R.ld;
  };
  T* to[part_numbers];
#pragma unroll
  for (int l = 0; l < part_numbers; ++l) to[l] = place(l);
#pragma unroll
  for (int l = 0; l < part_numbers; ++l)
    if (to[l]) *to[l] = entries[l];
  if (!verdict || blockIdx.x > 0) return;
  const bool sound = all_of(is_moderate, parts.of_diagonal());
  if (threadIdx.x == 0) *verdict = sound && pass.is_done() ? 0 : 1;
}

/// Sets *is to whether all `count` numbers at `are` are true. One thread block.
static __global__ void __launch_bounds__(part_threads) find_whether_all(const int* are, index_t count, int* is) {
  const bool all = all_of(are, count);
  if (threadIdx.x == 0) *is = all;
}

}  // namespace gpucholmod::cuda
