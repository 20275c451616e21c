#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "cuda/transfer.cuh"

/// Solutions and inverses by cuBLAS with a factor on the GPU, in a Session: by panels of columns, so that O(n) device
/// memory is enough.
namespace gpucholmod::cuda {

/// Keeps substitutions in single precision from leaving the range of floats if their results, in double, stay in the
/// range of doubles. R counts as R / 2^e, e being found from `bound`, which no norm of a column of R exceeds. Each
/// right-hand side is scaled so that its largest number is about 1. In double precision nothing is scaled.
template <class T>
class WithinRange {
 public:
  explicit WithinRange(double bound) {
    if (sizeof(T) < sizeof(double) && bound > 0 && std::isfinite(bound))
      e_ = std::min(std::max(std::ilogb(bound), -100), 100);
  }
  /// Returns 2^e.
  T size() const { return T(std::ldexp(1.0, e_)); }
  /// Multiplies b (n) by 2^-f, so that its largest number is about 1. Returns f.
  static int shrink(double* b, index_t n) {
    double largest = 0;
    if (sizeof(T) < sizeof(double))
      for (index_t i = 0; i < n; ++i) largest = std::isfinite(b[i]) ? std::max(largest, std::abs(b[i])) : largest;
    const int f = largest > 0 ? std::ilogb(largest) : 0;
    multiply(b, n, -f);
    return f;
  }
  /// Undoes the scaling of a solution: x (n) <- x 2^(f - e substitutions), after that many substitutions.
  void grow(double* x, index_t n, int f, int substitutions) const { multiply(x, n, f - substitutions * e_); }

 private:
  static void multiply(double* x, index_t n, int f) {
    for (index_t i = 0; f != 0 && i < n; ++i) x[i] = std::ldexp(x[i], f);
  }

  int e_ = 0;
};

/// Solves in place: B (host) <- R'^-1 B, R^-1 B or both. R is upper, and its columns have norms of at most `bound`. If
/// the function throws, columns of B may have changed.
template <class T>
void solve_by_cublas(MatrixView<const T> R, double bound, TriangularSolve which, MatrixView<double> B,
                     Context& context) {
  const WithinRange<T> range(bound);
  std::vector<int> shrunk(B.cols);
  for (index_t j = 0; j < B.cols; ++j) shrunk[j] = range.shrink(B.col(j), B.rows);
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
    if (which != TriangularSolve::back) cublas.solve(true, n, cols, R.data, R.ld, dB.data(), n, range.size());
    if (which != TriangularSolve::forward) cublas.solve(false, n, cols, R.data, R.ld, dB.data(), n, range.size());
    convert_matrix<T, double>(false, {dB.data(), n, cols, n}, dpanel, stream);
    copy_matrix<double>({staging.data(), n, cols, n}, panel, cudaMemcpyDeviceToHost, stream);
  }
  check(cudaStreamSynchronize(stream), "solve by cuBLAS");
  for (index_t j = 0; j < B.cols; ++j) range.grow(B.col(j), B.rows, shrunk[j], which == TriangularSolve::both ? 2 : 1);
}

/// Inverts: A (host) <- A^-1, from its factor R. For a panel of columns only the rows from the diagonal on are solved
/// for. With R22 the trailing block,
///
///     A^-1(j:n, panel) = R22^-1 R22'^-1 [I; 0],
///
/// and the rest of A^-1 is the mirror image of these rows. Takes as many operations as LAPACK's potri. `bound`: see
/// solve_by_cublas().
template <class T>
void invert_by_cublas(MatrixView<const T> R, double bound, MatrixView<double> A, Context& context) {
  const WithinRange<T> range(bound);
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
    cublas.solve(true, rows, cols, dR22, R.ld, X.data, rows, range.size());
    cublas.solve(false, rows, cols, dR22, R.ld, X.data, rows, range.size());

    convert_matrix<T, double>(false, {X.data, rows, cols, rows}, {staging.data(), rows, cols, rows}, stream);
    copy_matrix<double>({staging.data(), rows, cols, rows}, A.block(first, first, rows, cols), cudaMemcpyDeviceToHost,
                        stream);
    if (below == 0) continue;
    convert_matrix<T, double>(true, {X.data + cols, below, cols, rows}, {staging.data(), cols, below, cols}, stream);
    copy_matrix<double>({staging.data(), cols, below, cols}, A.block(first, first + cols, cols, below),
                        cudaMemcpyDeviceToHost, stream);
  }
  check(cudaStreamSynchronize(stream), "invert by cuBLAS");
  for (index_t j = 0; j < n; ++j) {
    range.grow(A.col(j), n, 0, 2);
    for (index_t i = j / most * most; i < j; ++i) A(i, j) = A(j, i);
  }
}

}  // namespace gpucholmod::cuda
