#include <Rcpp.h>

#include <algorithm>

#include "base/check_column.h"
#include "cpu/blas.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"

using namespace gpucholmod;

// Factorises A + added I. A: n x n double matrix, symmetric, of which the upper triangle is read. Returns list(pivot,
// R): R is the upper factor; pivot counts from 1, 0 means success.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factorise(SEXP A, double added) {
  return guarded([&] {
    const index_t n = Rf_nrows(A);
    require_triangle<double>("A", REAL(A), n, Uplo::upper);
    const Rcpp::Shield<SEXP> made(new_matrix(REALSXP, n, n));
    const MatrixView<double> R{REAL(made), n, n, n};
    for (index_t j = 0; j < n; ++j) {
      std::copy_n(REAL(A) + j * n, j + 1, R.col(j));
      std::fill(R.col(j) + j + 1, R.col(j) + n, 0.0);
      R(j, j) += added;
    }
    const index_t pivot = blas::potrf(R);
    return Rcpp::List::create(Rcpp::_["pivot"] = int(pivot + 1), Rcpp::_["R"] = SEXP(made));
  });
}
