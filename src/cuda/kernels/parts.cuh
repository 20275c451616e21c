#pragma once

#include <cmath>
#include <cstring>

#include "base/types.h"
#include "block_columns/sizes.h"

/// Kernels for a factor in the caller's memory, of which parts lie apart (cuda/parts_apart.cuh).
namespace gpucholmod::cuda {

constexpr int part_threads = 256;

/// What the diagonal of a factor holds, as bits of doubles, which are in order as none is negative.
struct DiagonalRange {
  unsigned long long least;            ///< 0 if an entry is no normal positive number
  unsigned long long inverse_of_most;  ///< every bit, so that both begin with all bits set

  GPUCHOLMOD_HOST_DEVICE bool is_within(double lowest, double highest) const {
    return number_of(least) >= lowest && number_of(~inverse_of_most) <= highest;
  }

 private:
  GPUCHOLMOD_HOST_DEVICE static double number_of(unsigned long long bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
  }
};

/// *verdict <- 1 if the diagonal of a factor holds other numbers than these. One thread.
static __global__ void judge_diagonal(const DiagonalRange* range, double least, double most, int* verdict) {
  if (!range->is_within(least, most)) *verdict = 1;
}

/// diagonal <- the diagonal blocks of R (n x n, upper), one below the other, zero below the diagonal, continued by the
/// identity; `last` (null: none is wanted) <- the columns of the last strip, above these blocks, continued by zeros.
///   Grid     a block per diagonal block of `padded` rows, and one per column of the strip
template <class T>
__global__ void __launch_bounds__(part_threads)
    take_parts(MatrixView<const T> R, T* diagonal, T* last, index_t ld, index_t padded, DiagonalRange* range) {
  using block_columns::NB;
  const index_t n = R.cols, blocks = padded / NB, b = blockIdx.x;
  if (b >= blocks) {
    const index_t own = b - blocks, j = padded - block_columns::STRIP + own;
    for (index_t i = threadIdx.x; i < padded; i += part_threads)
      last[i + own * ld] = j < n && i <= j ? R.data[i + j * R.ld] : T(0);
    return;
  }
  for (int at = int(threadIdx.x); at < NB * NB; at += part_threads) {
    const int i = at % NB, j = at / NB;
    const index_t row = b * NB + i, column = b * NB + j;
    T entry = T(i == j);
    if (column < n) entry = i <= j ? R.data[row + column * R.ld] : T(0);
    diagonal[row + j * ld] = entry;
  }
  const index_t j = b * NB + threadIdx.x;
  if (threadIdx.x >= NB) return;
  double least = HUGE_VAL, most = 0;
  if (j < n) {
    const T entry = R.data[j * (R.ld + 1)];
    least = most = block_columns::is_normal(entry) ? double(entry) : 0;
  }
  for (int apart = 16; apart > 0; apart /= 2) {
    least = fmin(least, __shfl_down_sync(0xffffffffu, least, apart));
    most = fmax(most, __shfl_down_sync(0xffffffffu, most, apart));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMin(&range->least, static_cast<unsigned long long>(__double_as_longlong(least)));
  atomicMin(&range->inverse_of_most, ~static_cast<unsigned long long>(__double_as_longlong(most)));
}

/// The upper triangle of R in diagonal blocks, and in the columns of the last strip, <- those parts. Grid: as above.
template <class T>
__global__ void __launch_bounds__(part_threads)
    give_parts(const T* diagonal, const T* last, index_t ld, index_t padded, MatrixView<T> R) {
  using block_columns::NB;
  const index_t n = R.cols, blocks = padded / NB, b = blockIdx.x;
  if (b >= blocks) {
    const index_t own = b - blocks, j = padded - block_columns::STRIP + own;
    if (j >= n) return;
    for (index_t i = threadIdx.x; i < j / NB * NB; i += part_threads) R.data[i + j * R.ld] = last[i + own * ld];
    return;
  }
  for (int at = int(threadIdx.x); at < NB * NB; at += part_threads) {
    const int i = at % NB, j = at / NB;
    const index_t row = b * NB + i, column = b * NB + j;
    if (i <= j && column < n) R.data[row + column * R.ld] = diagonal[row + j * ld];
  }
}

}  // namespace gpucholmod::cuda
