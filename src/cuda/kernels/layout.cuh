#pragma once

#include <cmath>

#include "base/types.h"
#include "block_columns/sizes.h"

/// Kernels that bring a factor into and out of its layout. Matrices are column-major, in device memory.
namespace gpucholmod::cuda {

constexpr int convert_tile = 32, convert_rows = 8, sum_threads = 128;

/// Copies `from` (m x n), or the transpose of `from` (n x m) if `transposed`, to `to` (m x n), in the scalar of `to`.
///   Grid     (m / 32, n / 32), rounded up: a block per tile; 32 x 8 threads
///   Shared   sTile (32 x 33), so that both matrices are accessed along their columns
template <bool transposed, class S, class T>
__global__ void __launch_bounds__(convert_tile* convert_rows)
    convert(MatrixView<const S> from, MatrixView<T> to) {
  const index_t i0 = index_t(blockIdx.x) * convert_tile, j0 = index_t(blockIdx.y) * convert_tile;
  const int x = int(threadIdx.x);
  if constexpr (transposed) {
    __shared__ T sTile[convert_tile][convert_tile + 1];
    for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows)
      if (j0 + x < to.cols && i0 + y < to.rows) sTile[y][x] = T(from.data[j0 + x + (i0 + y) * from.ld]);
    __syncthreads();
    for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows)
      if (i0 + x < to.rows && j0 + y < to.cols) to.data[i0 + x + (j0 + y) * to.ld] = sTile[x][y];
  } else {
    for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows)
      if (i0 + x < to.rows && j0 + y < to.cols)
        to.data[i0 + x + (j0 + y) * to.ld] = T(from.data[i0 + x + (j0 + y) * from.ld]);
  }
}

/// Copies the transpose of the lower triangle of `from` to the upper triangle of `to` (n x n). The lower triangle stays
/// as it is; `from` may be `to`.
///   Grid     (n / 32, n / 32), rounded up: a block per tile of the upper triangle; 32 x 8 threads
///   Shared   sTile (32 x 33), so that both triangles are accessed along their columns
template <class T>
__global__ void __launch_bounds__(convert_tile* convert_rows)
    lower_to_upper(MatrixView<const T> from, MatrixView<T> to) {
  const index_t i0 = index_t(blockIdx.x) * convert_tile, j0 = index_t(blockIdx.y) * convert_tile, n = to.cols;
  if (i0 > j0) return;
  const int x = int(threadIdx.x);
  __shared__ T sTile[convert_tile][convert_tile + 1];
  for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows)
    if (j0 + x < n && i0 + y < n) sTile[y][x] = from.data[j0 + x + (i0 + y) * from.ld];
  __syncthreads();
  for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows)
    if (i0 + x <= j0 + y && j0 + y < n) to.data[i0 + x + (j0 + y) * to.ld] = sTile[x][y];
}

/// Copies the upper triangle of `from`, or the transpose of its lower triangle if `transposed`, to the upper triangle
/// of `to` (n x n), with zeros below the diagonal in tiles that the diagonal crosses. Raises *largest to the largest
/// magnitude of an entry: infinite if an entry is not finite, or if one on the diagonal is not a normal positive
/// number. If to.data is null, nothing is copied.
///   Grid     (n / 32, n / 32), rounded up: a block per tile of the upper triangle; 32 x 8 threads
///   Shared   sTile (32 x 33), so that both matrices are accessed along their columns; sLargest, one a warp
template <bool transposed, class T>
__global__ void __launch_bounds__(convert_tile* convert_rows)
    take_triangle(MatrixView<const T> from, MatrixView<T> to, unsigned long long* largest) {
  const index_t i0 = index_t(blockIdx.x) * convert_tile, j0 = index_t(blockIdx.y) * convert_tile, n = to.cols;
  if (i0 > j0) return;
  const int x = int(threadIdx.x);
  __shared__ T sTile[convert_tile][convert_tile + 1];
  __shared__ double sLargest[convert_rows];
  if constexpr (transposed) {
    for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows)
      if (j0 + x < n && i0 + y < n) sTile[y][x] = from.data[j0 + x + (i0 + y) * from.ld];
    __syncthreads();
  }
  double most = 0;
  for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows) {
    const index_t i = i0 + x, j = j0 + y;
    if (i >= n || j >= n) continue;
    T entry = 0;
    if (i <= j) entry = transposed ? sTile[x][y] : from.data[i + j * from.ld];
    if (to.data) to.data[i + j * to.ld] = entry;
    const double size = i < j || block_columns::is_normal(entry) ? fabs(double(entry)) : i == j ? HUGE_VAL : 0;
    most = size < HUGE_VAL ? fmax(most, size) : HUGE_VAL;
  }
  for (int apart = convert_tile / 2; apart > 0; apart /= 2)
    most = fmax(most, __shfl_down_sync(0xffffffffu, most, apart));
  if (x == 0) sLargest[threadIdx.y] = most;
  __syncthreads();
  if (x != 0 || threadIdx.y != 0) return;
  for (int y = 1; y < convert_rows; ++y) most = fmax(most, sLargest[y]);
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(most));  // ordered, as none is negative
  if (bits > *static_cast<volatile unsigned long long*>(largest)) atomicMax(largest, bits);
}

/// Copies the upper triangle of `from` to the upper triangle of `to` (n x n), or, if `transposed`, its transpose to the
/// lower triangle of `to`. The other triangle of `to` stays as it is.
///   Grid     (n / 32, n / 32), rounded up: a block per tile of the upper triangle; 32 x 8 threads
///   Shared   sTile (32 x 33), so that both triangles are accessed along their columns
template <bool transposed, class T>
__global__ void __launch_bounds__(convert_tile* convert_rows)
    give_triangle(MatrixView<const T> from, MatrixView<T> to) {
  const index_t i0 = index_t(blockIdx.x) * convert_tile, j0 = index_t(blockIdx.y) * convert_tile, n = to.cols;
  if (i0 > j0) return;
  const int x = int(threadIdx.x);
  __shared__ T sTile[convert_tile][convert_tile + 1];
  for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows) {
    const index_t i = i0 + x, j = j0 + y;
    if (i > j || j >= n) continue;
    if constexpr (transposed) sTile[x][y] = from.data[i + j * from.ld];
    else to.data[i + j * to.ld] = from.data[i + j * from.ld];
  }
  if constexpr (transposed) {
    __syncthreads();
    for (int y = int(threadIdx.y); y < convert_tile; y += convert_rows) {
      const index_t row = j0 + x, column = i0 + y;
      if (row >= column && row < n) to.data[row + column * to.ld] = sTile[y][x];
    }
  }
}

/// Sets out(i, j) to 1 if i = j + below, otherwise to 0.
///   Grid     a block per column
template <class T>
__global__ void set_identity(MatrixView<T> out, index_t below) {
  const index_t j = blockIdx.x;
  for (index_t i = threadIdx.x; i < out.rows; i += blockDim.x) out.data[i + j * out.ld] = T(i == j + below);
}

/// Zeroes R below the diagonal within diagonal blocks of order `order`, see Layout.
///   Grid     a block per column
template <class T>
__global__ void clear_below(MatrixView<T> R, int order) {
  const index_t j = blockIdx.x, end = (j / order + 1) * order;
  for (index_t i = j + 1 + threadIdx.x; i < end; i += blockDim.x) R.data[i + j * R.ld] = T(0);
}

/// Computes out <- s R, both upper. Lowers places[0] to the least i + j n of an entry of `out` that is not finite, and
/// places[1] to the least j of a diagonal entry that is smaller than `least`, if there are such entries.
///   Grid     a block per column
template <class T>
__global__ void scale_triangle(MatrixView<const T> R, T s, T least, MatrixView<T> out, unsigned long long* places) {
  const index_t j = blockIdx.x;
  for (index_t i = threadIdx.x; i <= j; i += blockDim.x) {
    const T x = out.data[i + j * out.ld] = s * R.data[i + j * R.ld];
    if (!isfinite(x)) atomicMin(places, static_cast<unsigned long long>(i + j * R.cols));
    if (i == j && !(x >= least)) atomicMin(places + 1, static_cast<unsigned long long>(j));
  }
}

/// Computes the sums of squares of the columns of R (upper) that `columns` lists, or of all columns if it is null, in
/// double and in a fixed order: repeatable.
///   Grid     a block of 128 threads per column
///   Shared   sSum (128)
template <class T>
__global__ void __launch_bounds__(sum_threads) column_squares(MatrixView<const T> R, const int* columns, double* sums) {
  __shared__ double sSum[sum_threads];
  const index_t j = columns ? columns[blockIdx.x] : index_t(blockIdx.x);
  const int t = int(threadIdx.x);
  double sum = 0;
  for (index_t i = t; i <= j; i += sum_threads) {
    const double x = R.data[i + j * R.ld];
    sum += x * x;
  }
  sSum[t] = sum;
  for (int half = sum_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sSum[t] += sSum[t + half];
  }
  if (t == 0) sums[blockIdx.x] = sSum[0];
}

}  // namespace gpucholmod::cuda
