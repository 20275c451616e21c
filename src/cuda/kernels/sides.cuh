#pragma once

#include "base/types.h"

/// Kernels that copy the right-hand sides of a pass over a whole factor between page-locked memory of the host, which
/// the device reads and writes itself, and the memory of the pass.
namespace gpucholmod::cuda {

constexpr int side_threads = 256;

/// The columns of Y that belong to the columns of V in a pass: m numbers for each. In the memory of the pass they are
/// of type A, and lie behind the numbers of V.
template <class A>
struct SidesOfColumns {
  A* there;         ///< first number of Y in the pass's first column
  index_t ld;       ///< leading dimension of the pass's columns
  double* Y;        ///< m x k, on the host
  index_t m;
  index_t own[2], first[2], count[2];  ///< runs of columns: first column in the pass and in V, number of columns

  /// Calls f(number in the pass, the same number in Y) for each number of Y. All thread blocks of a row of the grid
  /// share the numbers.
  template <class F>
  __device__ void each(F&& f) const {
    for (int run = 0; run < 2; ++run)
      for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < m * count[run];
           i += index_t(gridDim.x) * blockDim.x)
        f(there[(own[run] + i / m) * ld + i % m], Y[first[run] * m + i]);
  }
};

/// Copies z to dz, continued by zeros, and Y to the pass's columns.
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

/// Copies dz to z, and what is left of Y from the pass's columns to Y. Grid: as for take_sides(), by the columns of z.
template <class T, class A>
__global__ void __launch_bounds__(side_threads)
    give_sides(MatrixView<const T> dz, MatrixView<double> z, SidesOfColumns<A> columns) {
  const index_t first = index_t(blockIdx.x) * blockDim.x + threadIdx.x, step = index_t(gridDim.x) * blockDim.x;
  for (index_t j = blockIdx.y; j < z.cols; j += gridDim.y)
    for (index_t i = first; i < z.rows; i += step) z.data[i + j * z.ld] = double(dz.data[i + j * dz.ld]);
  if (blockIdx.y + 1 == gridDim.y) columns.each([](A there, double& here) { here = double(there); });
}

}  // namespace gpucholmod::cuda
