#pragma once

#include "base/types.h"

/// Right-hand sides that come along with a pass over a whole factor: between page-locked memory of the host, which the
/// device reads and writes itself, and the memory of the pass.
namespace gpucholmod::cuda {

constexpr int side_threads = 256;

/// Y, which belongs to V: m numbers for each column that the pass has, which lie behind those of V there, as A's.
template <class A>
struct SidesOfColumns {
  A* there;         ///< the first of them in the pass's first column
  index_t ld;       ///< of the pass's columns
  double* Y;        ///< m x k, on the host
  index_t m;
  index_t own[2], first[2], count[2];  ///< runs of columns: where they begin in the pass and in V, and how many

  /// f(number in the pass, the same in Y), for each, by all blocks of threads of a row of the grid.
  template <class F>
  __device__ void each(F&& f) const {
    for (int run = 0; run < 2; ++run)
      for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m * count[run];
           i += index_t(gridDim.x) * blockDim.x)
        f(there[(own[run] + i / m) * ld + i % m], Y[first[run] * m + i]);
  }
};

/// dz <- z, continued by zeros; the pass's columns <- Y.
///   Grid     pieces of a column by the columns of dz, and one more for Y; or fewer
template <class T, class A>
__global__ void __launch_bounds__(side_threads)
    take_sides(MatrixView<const double> z, MatrixView<T> dz, SidesOfColumns<A> columns) {
  const index_t first = index_t(blockIdx.x) * blockDim.x + threadIdx.x, step = index_t(gridDim.x) * blockDim.x;
  for (index_t j = blockIdx.y; j < dz.cols; j += gridDim.y)
    for (index_t i = first; i < dz.rows; i += step)
      dz.data[i + j * dz.ld] = i < z.rows && j < z.cols ? T(z.data[i + j * z.ld]) : T(0);
  if (blockIdx.y + 1 == gridDim.y) columns.each([](A& there, double here) { there = A(here); });
}

/// z <- dz; Y <- what is left of it in the pass's columns. Grid: as above, by the columns of z.
template <class T, class A>
__global__ void __launch_bounds__(side_threads)
    give_sides(MatrixView<const T> dz, MatrixView<double> z, SidesOfColumns<A> columns) {
  const index_t first = index_t(blockIdx.x) * blockDim.x + threadIdx.x, step = index_t(gridDim.x) * blockDim.x;
  for (index_t j = blockIdx.y; j < z.cols; j += gridDim.y)
    for (index_t i = first; i < z.rows; i += step) z.data[i + j * z.ld] = double(dz.data[i + j * dz.ld]);
  if (blockIdx.y + 1 == gridDim.y) columns.each([](A there, double& here) { here = double(there); });
}

}  // namespace gpucholmod::cuda
