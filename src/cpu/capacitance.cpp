#include "cpu/capacitance.h"

#include <algorithm>
#include <cmath>

#include "base/factor_io.h"
#include "cpu/blas.h"

namespace gpucholmod::cpu {

using blas::Op;

namespace {

/// Computes quadratic (m, or null) <- quadratic + the diagonal of X'X.
void add_squares(MatrixView<const double> X, double* quadratic) {
  if (!quadratic) return;
  for (index_t j = 0; j < X.cols; ++j) quadratic[j] += sum_of_squares(X.col(j), X.rows);
}

}  // namespace

bool Capacitance::factorise(MatrixView<const double> P, index_t removed) {
  P_ = P;
  added_ = P.cols - removed;
  size_ = logdet_ = 0;
  least_ = 1;
  const index_t k = P.cols;
  if (k == 0) return true;
  S_.resize(k * k);
  const MatrixView<double> S{S_.data(), k, k, k};
  blas::syrk(1, Op::transpose, P, 0, S);
  double squares = 0;
  for (index_t j = 0; j < k; ++j)
    for (index_t i = 0; i <= j; ++i) squares += (i < j ? 2 : 1) * S(i, j) * S(i, j);
  size_ = std::sqrt(squares);
  if (!std::isfinite(size_)) return false;

  for (index_t q = 0; q < added_; ++q) S(q, q) += 1;
  const MatrixView<double> U1 = S.block(0, 0, added_, added_), G = S.block(0, added_, added_, removed),
                           U2 = S.block(added_, added_, removed, removed);
  if (blas::potrf(U1) >= 0) return false;
  blas::trsm_left(Op::transpose, U1, G);
  for (index_t j = 0; j < removed; ++j)
    for (index_t i = 0; i <= j; ++i) U2(i, j) = (i == j ? 1 : 0) - U2(i, j);
  blas::syrk(1, Op::transpose, G, 1, U2);
  if (blas::potrf(U2) >= 0) return false;
  for (index_t q = 0; q < k; ++q) {
    const double d = S(q, q);
    if (q >= added_) least_ = std::min(least_, d * d);
    logdet_ += 2 * std::log(d);
  }
  return std::isfinite(logdet_);
}

void Capacitance::solve(double* Y_data, index_t m, double* T_data, index_t ldt, double* quadratic, bool whole) {
  const index_t n = P_.rows, k = P_.cols, removed = k - added_;
  const MatrixView<double> Y{Y_data, n, m, n};
  if (quadratic) std::fill_n(quadratic, m, 0.0);
  if (k == 0) return add_squares(Y, quadratic);
  const MatrixView<const double> S{S_.data(), k, k, k}, U1 = S.block(0, 0, added_, added_),
      G = S.block(0, added_, added_, removed), U2 = S.block(added_, added_, removed, removed),
      P1 = P_.block(0, 0, n, added_), P2 = P_.block(0, added_, n, removed);
  const MatrixView<double> T1{T_data, added_, m, ldt}, T2{T_data + added_, removed, m, ldt};
  U_.resize(added_ * m);
  const MatrixView<double> X{U_.data(), added_, m, added_};
  blas::trsm_left(Op::transpose, U1, T1);
  blas::gemm(-1, Op::transpose, G, Op::none, T1, 1, T2);
  for (index_t j = 0; j < m; ++j) std::copy_n(T1.col(j), added_, X.col(j));
  blas::trsm_left(Op::none, U1, X);
  blas::gemm(-1, Op::none, P1, Op::none, X, 1, Y);
  add_squares(Y, quadratic);
  add_squares(X, quadratic);
  if (removed == 0) return;
  blas::trsm_left(Op::transpose, U2, T2);
  add_squares(T2, quadratic);
  if (!whole) return;
  blas::trsm_left(Op::none, U2, T2);
  blas::gemm(1, Op::none, P2, Op::none, T2, 1, Y);
  if (added_ == 0) return;
  blas::gemm(1, Op::none, G, Op::none, T2, 0, X);
  blas::trsm_left(Op::none, U1, X);
  blas::gemm(-1, Op::none, P1, Op::none, X, 1, Y);
}

}  // namespace gpucholmod::cpu
