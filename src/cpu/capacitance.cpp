#include "cpu/capacitance.h"

#include <algorithm>
#include <cmath>

#include "base/factor_io.h"
#include "cpu/blas.h"

namespace gpucholmod::cpu {
namespace {

/// X (k x m) <- U^-1 X, or U'^-1 X. U: upper, leading dimension ldu.
void substitute(const double* U, index_t ldu, const char* transposed, index_t k, double* X, index_t m, index_t ldx) {
  if (k == 0 || m == 0) return;
  const int rows = int(k), columns = int(m), lda = int(ldu), ldb = int(ldx);
  const double one = 1;
  dtrsm_("L", "U", transposed, "N", &rows, &columns, &one, U, &lda, X, &ldb, 1, 1, 1, 1);
}

/// C (rows x m) <- C + by A X, or A'X; `inner`: rows of X.
void add_product(double by, const char* transposed, const double* A, index_t lda_given, index_t rows, index_t inner,
                 const double* X, index_t ldx, double* C, index_t ldc, index_t m) {
  if (rows == 0 || inner == 0 || m == 0) return;
  const int r = int(rows), c = int(m), i = int(inner), lda = int(lda_given), ldb = int(ldx), ld = int(ldc);
  const double one = 1;
  dgemm_(transposed, "N", &r, &c, &i, &by, A, &lda, X, &ldb, &one, C, &ld, 1, 1);
}

/// U, upper, of U'U = A. False where A is not positive definite.
bool factorise_in_place(double* A, index_t k, index_t ld) {
  if (k == 0) return true;
  const int n = int(k), lda = int(ld);
  int info = 0;
  dpotrf_("U", &n, A, &lda, &info, 1);
  return info == 0;
}

/// quadratic (m) <- quadratic + the diagonal of X'X.
void add_squares(const double* X, index_t rows, index_t ldx, index_t m, double* quadratic) {
  for (index_t j = 0; j < m; ++j) quadratic[j] += sum_of_squares(X + j * ldx, rows);
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
  double* const S = S_.data();
  const int columns = int(k), rows = int(P.rows), ldp = int(P.ld), ldS = int(k);
  const double zero = 0, one = 1;
  dsyrk_("U", "T", &columns, &rows, &one, P.data, &ldp, &zero, S, &ldS, 1, 1);
  double squares = 0;
  for (index_t j = 0; j < k; ++j)
    for (index_t i = 0; i <= j; ++i) squares += (i < j ? 2 : 1) * S[i + j * k] * S[i + j * k];
  size_ = std::sqrt(squares);
  if (!std::isfinite(size_)) return false;

  for (index_t q = 0; q < added_; ++q) S[q + q * k] += 1;
  if (!factorise_in_place(S, added_, k)) return false;
  double* const G = S + added_ * k;
  substitute(S, k, "T", added_, G, removed, k);
  if (removed > 0) {
    double* const U2 = G + added_;
    const int down = int(removed), up = int(added_);
    for (index_t j = 0; j < removed; ++j)
      for (index_t i = 0; i <= j; ++i) U2[i + j * k] = (i == j ? 1 : 0) - U2[i + j * k];
    if (up > 0) dsyrk_("U", "T", &down, &up, &one, G, &ldS, &one, U2, &ldS, 1, 1);
    if (!factorise_in_place(U2, removed, k)) return false;
  }
  for (index_t q = 0; q < k; ++q) {
    const double d = S[q + q * k];
    if (q >= added_) least_ = std::min(least_, d * d);
    logdet_ += 2 * std::log(d);
  }
  return std::isfinite(logdet_);
}

void Capacitance::solve(double* Y, index_t m, double* T, index_t ldt, double* quadratic, bool whole) {
  const index_t n = P_.rows, k = P_.cols, removed = k - added_;
  double* const T2 = T + added_;
  substitute(at(0, 0), k, "T", added_, T, m, ldt);
  add_product(-1, "T", at(0, added_), k, removed, added_, T, ldt, T2, ldt, m);
  if (added_ > 0) {
    U_.resize(added_ * m);
    for (index_t j = 0; j < m; ++j) std::copy_n(T + j * ldt, added_, U_.data() + j * added_);
    substitute(at(0, 0), k, "N", added_, U_.data(), m, added_);
    add_product(-1, "N", P_.data, P_.ld, n, added_, U_.data(), added_, Y, n, m);
  }
  if (quadratic) {
    std::fill_n(quadratic, m, 0.0);
    add_squares(Y, n, n, m, quadratic);
    if (added_ > 0) add_squares(U_.data(), added_, added_, m, quadratic);
  }
  if (removed == 0) return;
  const double* const U2 = at(added_, added_);
  substitute(U2, k, "T", removed, T2, m, ldt);
  if (quadratic) add_squares(T2, removed, ldt, m, quadratic);
  if (!whole) return;
  substitute(U2, k, "N", removed, T2, m, ldt);
  add_product(1, "N", P_.col(added_), P_.ld, n, removed, T2, ldt, Y, n, m);
  if (added_ == 0) return;
  std::fill(U_.begin(), U_.end(), 0.0);
  add_product(1, "N", at(0, added_), k, added_, removed, T2, ldt, U_.data(), added_, m);
  substitute(at(0, 0), k, "N", added_, U_.data(), m, added_);
  add_product(-1, "N", P_.data, P_.ld, n, added_, U_.data(), added_, Y, n, m);
}

}  // namespace gpucholmod::cpu
