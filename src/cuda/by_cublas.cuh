#pragma once

#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "cuda/transfer.cuh"

/// What cuBLAS does with a factor on the GPU, in a Session: by panels of columns, so that O(n) device memory is enough.
namespace gpucholmod::cuda {

/// B (host) <- R'^-1 B, R^-1 B or both, R upper. Where it throws, columns of B may be solved already.
template <class T>
void solve_by_cublas(MatrixView<const T> R, TriangularSolve which, MatrixView<double> B, Context& context) {
  const index_t n = R.cols, most = std::min(B.cols, transfer_columns);
  const cudaStream_t stream = context.stream();
  const Cublas& cublas = context.cublas();
  const PoolBuffer<double> staging(context.pool(), n * most);
  const PoolBuffer<T> dB(context.pool(), n * most);
  for (index_t first = 0; first < B.cols; first += most) {
    const index_t cols = std::min(most, B.cols - first);
    const MatrixView<double> panel = B.block(0, first, n, cols), dpanel{staging.data(), n, cols, n};
    copy_matrix<double>({panel.data, n, cols, panel.ld}, dpanel, cudaMemcpyHostToDevice, stream);
    convert_matrix<double, T>(false, {staging.data(), n, cols, n}, {dB.data(), n, cols, n}, stream);
    if (which != TriangularSolve::back) cublas.solve(true, n, cols, R.data, R.ld, dB.data(), n);
    if (which != TriangularSolve::forward) cublas.solve(false, n, cols, R.data, R.ld, dB.data(), n);
    convert_matrix<T, double>(false, {dB.data(), n, cols, n}, dpanel, stream);
    copy_matrix<double>({staging.data(), n, cols, n}, panel, cudaMemcpyDeviceToHost, stream);
  }
}

/// A (host) <- A^-1 from its factor R: of a panel of columns only the rows from the diagonal on are solved for; with R22 the
/// trailing block,
///
///     A^-1(j:n, panel) = R22^-1 R22'^-1 [I; 0],
///
/// and the rest is their mirror image. As many operations as LAPACK's potri.
template <class T>
void invert_by_cublas(MatrixView<const T> R, MatrixView<double> A, Context& context) {
  const index_t n = R.cols, most = std::min(n, transfer_columns);
  const cudaStream_t stream = context.stream();
  const Cublas& cublas = context.cublas();
  const PoolBuffer<double> staging(context.pool(), n * most);
  const PoolBuffer<T> dX(context.pool(), n * most);
  for (index_t first = 0; first < n; first += most) {
    const index_t rows = n - first, cols = std::min(most, rows), below = rows - cols;
    const MatrixView<T> X{dX.data(), rows, cols, rows};
    set_identity<<<unsigned(cols), 256, 0, stream>>>(X, 0);
    check(cudaGetLastError(), "start an identity");
    const T* dR22 = R.col(first) + first;
    cublas.solve(true, rows, cols, dR22, R.ld, X.data, rows);
    cublas.solve(false, rows, cols, dR22, R.ld, X.data, rows);

    convert_matrix<T, double>(false, {X.data, rows, cols, rows}, {staging.data(), rows, cols, rows}, stream);
    copy_matrix<double>({staging.data(), rows, cols, rows}, A.block(first, first, rows, cols), cudaMemcpyDeviceToHost, stream);
    if (below == 0) continue;
    convert_matrix<T, double>(true, {X.data + cols, below, cols, rows}, {staging.data(), cols, below, cols}, stream);
    copy_matrix<double>({staging.data(), cols, below, cols}, A.block(first, first + cols, cols, below), cudaMemcpyDeviceToHost, stream);
  }
  check(cudaStreamSynchronize(stream), "invert by cuBLAS");
  for (index_t j = 0; j < n; ++j)
    for (index_t i = j / most * most; i < j; ++i) A(i, j) = A(j, i);
}

}  // namespace gpucholmod::cuda
