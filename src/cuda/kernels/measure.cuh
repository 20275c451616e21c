#pragma once

#include "base/types.h"

/// Plain kernels: products, by which results are also judged, and a copy of the triangle, to measure modifications by.
/// Matrices are column-major, in device memory, R upper.
namespace gpucholmod::cuda {

constexpr int sweep_threads = 256, sweep_vectors = 4, product_threads = 128;
/// The number of terms that are summed up by themselves, as the errors to be measured are a few units of rounding.
constexpr int product_part = 64;

/// Copies R to `out`, both n x n with columns aligned to 16 bytes. Below the diagonal nothing is read or written.
///   Grid     a block of 256 threads per column, the longest first
///   Memory   16 bytes a thread at a time, four of them under way, not kept in the caches; the words at the diagonal
///            that do not fill 16 bytes are copied one by one
template <class T>
__global__ void __launch_bounds__(sweep_threads) sweep_triangle(MatrixView<const T> R, MatrixView<T> out) {
  constexpr index_t words = 16 / sizeof(T);
  const index_t j = R.cols - 1 - index_t(blockIdx.x), vectors = (j + 1) / words;
  const T* from = R.data + j * R.ld;
  T* to = out.data + j * out.ld;
  const auto* from16 = reinterpret_cast<const int4*>(from);
  auto* to16 = reinterpret_cast<int4*>(to);
  for (index_t v = threadIdx.x; v < vectors; v += sweep_vectors * sweep_threads) {
    int4 r[sweep_vectors];
#pragma unroll
    for (int u = 0; u < sweep_vectors; ++u)
      if (v + u * sweep_threads < vectors) r[u] = __ldcs(from16 + v + u * sweep_threads);
#pragma unroll
    for (int u = 0; u < sweep_vectors; ++u)
      if (v + u * sweep_threads < vectors) __stcs(to16 + v + u * sweep_threads, r[u]);
  }
  const index_t i = vectors * words + threadIdx.x;
  if (i <= j) to[i] = from[i];
}

/// Computes Z <- R X, in double whatever R is stored in; X and Z are n x m, columns without gaps.
///   Grid     (n / 128, m), rounded up: a thread per row, so that a warp reads along a column of R
template <class T>
__global__ void __launch_bounds__(product_threads) multiply_upper(MatrixView<const T> R, const double* X, double* Z) {
  const index_t n = R.cols, i0 = index_t(blockIdx.x) * product_threads, i = i0 + threadIdx.x;
  const double* x = X + index_t(blockIdx.y) * n;
  if (i >= n) return;
  double sum = 0;
  for (index_t first = i0; first < n; first += product_part) {
    double part = 0;
    for (index_t j = first; j < n && j < first + product_part; ++j)
      if (j >= i) part += double(R.data[i + j * R.ld]) * x[j];
    sum += part;
  }
  Z[i + index_t(blockIdx.y) * n] = sum;
}

/// Computes Y <- R'Z, in double whatever R is stored in; Z and Y are n x m, columns without gaps.
///   Grid     (n, m): a warp per column of R
template <class T>
__global__ void __launch_bounds__(32) multiply_upper_transposed(MatrixView<const T> R, const double* Z, double* Y) {
  const index_t n = R.cols, j = blockIdx.x;
  const double* z = Z + index_t(blockIdx.y) * n;
  double sum = 0;
  for (index_t first = threadIdx.x; first <= j; first += 32 * product_part) {
    double part = 0;
    for (index_t i = first; i <= j && i < first + 32 * product_part; i += 32)
      part += double(R.data[i + j * R.ld]) * z[i];
    sum += part;
  }
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
  if (threadIdx.x == 0) Y[j + index_t(blockIdx.y) * n] = sum;
}

}  // namespace gpucholmod::cuda
