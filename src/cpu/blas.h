#pragma once

#include <cstddef>

// BLAS and LAPACK, as every R is linked with; the lengths of the character arguments come last.
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
}
