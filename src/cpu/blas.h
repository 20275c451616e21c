#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/types.h"

// BLAS and LAPACK, with which every R is linked; the last arguments are the lengths of the character arguments.
extern "C" {
void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const double* alpha,
            const double* A, const int* lda, const double* B, const int* ldb, const double* beta, double* C,
            const int* ldc, std::size_t, std::size_t);
void dsyrk_(const char* uplo, const char* trans, const int* n, const int* k, const double* alpha, const double* A,
            const int* lda, const double* beta, double* C, const int* ldc, std::size_t, std::size_t);
void dtrmm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,
            const double* alpha, const double* A, const int* lda, double* B, const int* ldb, std::size_t, std::size_t,
            std::size_t, std::size_t);
void dtrsm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,
            const double* alpha, const double* A, const int* lda, double* B, const int* ldb, std::size_t, std::size_t,
            std::size_t, std::size_t);
void dtrsv_(const char* uplo, const char* trans, const char* diag, const int* n, const double* A, const int* lda,
            double* x, const int* incx, std::size_t, std::size_t, std::size_t);
void dpotrf_(const char* uplo, const int* n, double* A, const int* lda, int* info, std::size_t);
void dpotri_(const char* uplo, const int* n, double* A, const int* lda, int* info, std::size_t);
void dtrtri_(const char* uplo, const char* diag, const int* n, double* A, const int* lda, int* info, std::size_t,
             std::size_t);
void dgeqrf_(const int* m, const int* n, double* A, const int* lda, double* tau, double* work, const int* lwork,
             int* info);
}

/// BLAS and LAPACK on views, with triangles that are upper unless `uplo` says otherwise. No routine is called if there
/// is nothing to compute.
namespace gpucholmod::blas {

enum class Op : char { none = 'N', transpose = 'T' };

/// The sizes of a view as BLAS takes them.
struct Sizes {
  int rows, cols, ld;
  template <class T>
  explicit Sizes(MatrixView<T> A) : rows(int(A.rows)), cols(int(A.cols)), ld(int(std::max<index_t>(A.ld, 1))) {}
};

/// Computes C <- beta C + alpha op(A) op(B).
inline void gemm(double alpha, Op op_A, MatrixView<const double> A, Op op_B, MatrixView<const double> B, double beta,
                 MatrixView<double> C) {
  const Sizes a(A), b(B), c(C);
  const int inner = op_A == Op::none ? a.cols : a.rows;
  const char transa = char(op_A), transb = char(op_B);
  if (c.rows == 0 || c.cols == 0 || (inner == 0 && beta == 1)) return;
  dgemm_(&transa, &transb, &c.rows, &c.cols, &inner, &alpha, A.data, &a.ld, B.data, &b.ld, &beta, C.data, &c.ld, 1, 1);
}

/// Computes the upper triangle of C <- beta C + alpha AA', or, if op is transpose, of C <- beta C + alpha A'A.
inline void syrk(double alpha, Op op, MatrixView<const double> A, double beta, MatrixView<double> C) {
  const Sizes a(A), c(C);
  const int inner = op == Op::none ? a.cols : a.rows;
  const char trans = char(op);
  if (c.cols == 0 || (inner == 0 && beta == 1)) return;
  dsyrk_("U", &trans, &c.cols, &inner, &alpha, A.data, &a.ld, &beta, C.data, &c.ld, 1, 1);
}

/// Computes B <- op(U) B.
inline void trmm_left(Op op, MatrixView<const double> U, MatrixView<double> B) {
  const Sizes u(U), b(B);
  const double one = 1;
  const char trans = char(op);
  if (b.rows == 0 || b.cols == 0) return;
  dtrmm_("L", "U", &trans, "N", &b.rows, &b.cols, &one, U.data, &u.ld, B.data, &b.ld, 1, 1, 1, 1);
}

/// Computes B <- op(U)^-1 B.
inline void trsm_left(Op op, MatrixView<const double> U, MatrixView<double> B, Uplo uplo = Uplo::upper) {
  const Sizes u(U), b(B);
  const double one = 1;
  const char trans = char(op), triangle = uplo == Uplo::upper ? 'U' : 'L';
  if (b.rows == 0 || b.cols == 0) return;
  dtrsm_("L", &triangle, &trans, "N", &b.rows, &b.cols, &one, U.data, &u.ld, B.data, &b.ld, 1, 1, 1, 1);
}

/// Computes B <- alpha B U^-1.
inline void trsm_right(double alpha, MatrixView<const double> U, MatrixView<double> B) {
  const Sizes u(U), b(B);
  if (b.rows == 0 || b.cols == 0) return;
  dtrsm_("R", "U", "N", "N", &b.rows, &b.cols, &alpha, U.data, &u.ld, B.data, &b.ld, 1, 1, 1, 1);
}

/// Computes x <- op(U)^-1 x.
inline void trsv(Op op, MatrixView<const double> U, double* x, Uplo uplo = Uplo::upper) {
  const Sizes u(U);
  const int stride = 1;
  const char trans = char(op), triangle = uplo == Uplo::upper ? 'U' : 'L';
  if (u.cols > 0) dtrsv_(&triangle, &trans, "N", &u.cols, U.data, &u.ld, x, &stride, 1, 1, 1);
}

/// Computes, in A's triangle, U with U'U = A, or L with LL' = A. Returns the first pivot that is not positive, or -1.
inline index_t potrf(MatrixView<double> A, Uplo uplo = Uplo::upper) {
  const Sizes a(A);
  const char triangle = uplo == Uplo::upper ? 'U' : 'L';
  int info = 0;
  if (a.cols > 0) dpotrf_(&triangle, &a.cols, A.data, &a.ld, &info, 1);
  return info - 1;
}

/// Computes U <- the upper triangle of (U'U)^-1.
inline void potri(MatrixView<double> U) {
  const Sizes u(U);
  int info = 0;
  if (u.cols > 0) dpotri_("U", &u.cols, U.data, &u.ld, &info, 1);
}

/// Computes U <- U^-1.
inline void trtri(MatrixView<double> U) {
  const Sizes u(U);
  int info = 0;
  if (u.cols > 0) dtrtri_("U", "N", &u.cols, U.data, &u.ld, &info, 1, 1);
}

/// Computes A = QR: the upper triangle of A <- R; the entries below the triangle become the reflectors of Q.
inline void geqrf(MatrixView<double> A) {
  const Sizes a(A);
  if (a.rows == 0 || a.cols == 0) return;
  std::vector<double> tau(std::min(a.rows, a.cols)), work(1);
  int info = 0, length = -1;
  dgeqrf_(&a.rows, &a.cols, A.data, &a.ld, tau.data(), work.data(), &length, &info);
  length = int(work[0]);
  work.resize(length);
  dgeqrf_(&a.rows, &a.cols, A.data, &a.ld, tau.data(), work.data(), &length, &info);
}

}  // namespace gpucholmod::blas
