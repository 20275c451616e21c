#pragma once

#include "base/types.h"

/// cuBLAS and cuSOLVER, opened at first need: the package is linked with neither, so it installs and runs without them.
///
/// The constructors throw backend_unavailable (reason "no_cublas", "no_cusolver") if a library cannot be opened; every
/// function throws cuda_failure with the `status` that the library returned. Handles stay until the process ends.
/// Matrices are column-major and on the current device; the work is queued in `stream`, a cudaStream_t.
namespace gpucholmod::cuda {

class Cublas {
 public:
  explicit Cublas(void* stream);

  /// Solves from the left: dB (n x m) <- size R^-1 dB, or size R'^-1 dB if `transposed` is true. dR: n x n, upper.
  template <class T>
  void solve(bool transposed, index_t n, index_t m, const T* dR, index_t ldr, T* dB, index_t ldb, T size = 1) const;

  /// Solves from the right: dB (m x n) <- dB R^-1. dR: n x n, upper.
  template <class T>
  void solve_right(index_t m, index_t n, const T* dR, index_t ldr, T* dB, index_t ldb) const;

  /// Computes dC <- dC - dA'dB.
  template <class T>
  void subtract_product(MatrixView<const T> dA, MatrixView<const T> dB, MatrixView<T> dC) const;

  /// Computes dB (n x m) <- R'dB. dR: n x n, upper.
  template <class T>
  void multiply_transposed(index_t n, index_t m, const T* dR, index_t ldr, T* dB, index_t ldb) const;

 private:
  void* handle_ = nullptr;
};

class Cusolver {
 public:
  explicit Cusolver(void* stream);

  /// Returns the number of scalars of workspace that factorise() needs.
  template <class T>
  index_t workspace(Uplo uplo, index_t n, T* dA, index_t lda) const;
  /// Computes the Cholesky factor of dA (n x n, the triangle that uplo names) in place. *dinfo <- 0, or the order of
  /// the first leading minor that is not positive. On an H200 the lower triangle takes 40 to 72 % of the time of the
  /// upper one.
  template <class T>
  void factorise(Uplo uplo, index_t n, T* dA, index_t lda, T* dwork, index_t words, int* dinfo) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace gpucholmod::cuda
