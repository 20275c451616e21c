#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check_column.h"
#include "base/reshaped_sides.h"
#include "cpu/blas.h"
#include "cpu/reshape.h"

namespace gpucholmod::cpu {

/// Computes the p columns that a factor R of scalars T, in any storage, gets when rows and columns are inserted into A,
/// the first as number `at`. R is divided by 2^e, and so are its new columns; X and the right-hand sides are not.
///
///   S12 = R11'^-1 A12     S22'S22 = A22 - S12'S12     S23 = S22'^-1 (A23 - S12'R13)
template <class T>
class Inserted {
 public:
  /// Computes the columns from X (n + p x p). forward(B), B n x p, turns the rows B1 above `at` into R11'^-1 B1, and
  /// then the rows B2 behind them into B2 - R13'B1. If pivot() is not negative, all else is unspecified. Throws
  /// bad_diagonal.
  template <class Forward>
  Inserted(index_t n, index_t at, const double* X, index_t p, int e, const RightHandSideView& right, Forward&& forward)
      : n_(n), at_(at), p_(p), down_(e == 0 ? 1 : std::scalbn(1.0, -e)), S_(n * p), S22_(p * p) {
    const auto divided = [this](double x) { return x * down_; };
    for (index_t q = 0; q < p; ++q) {
      const double* const from = X + q * (n + p);
      std::transform(from, from + at, S_.data() + q * n, divided);
      std::copy_n(from + at, p, S22_.data() + q * p);
      std::transform(from + at + p, from + n + p, S_.data() + q * n + at, divided);
    }
    const MatrixView<double> S{S_.data(), n, p, n}, S22{S22_.data(), p, p, p}, S12 = S.block(0, 0, at, p);
    if (p > 0) forward(S);
    pivot_ = factorise_inserted(S12, S22);
    if (pivot_ >= 0) return;
    require_inserted_diagonal<T>(S22, at, e);
    blas::trsm_right(1, S22, S.block(at, 0, n - at, p));
    Y_ = insert_rows(right, at, S12, S22);
  }

  /// Returns the first pivot of the new block that is not positive, or -1.
  index_t pivot() const { return pivot_; }
  /// Returns the Y of the right-hand sides that belongs to the columns of S23'.
  const std::vector<double>& Y() const { return Y_; }
  /// Returns entry (q, j) of S23.
  T behind(index_t q, index_t j) const { return T(S_[at_ + j + q * n_]); }
  /// Copies column at + q of the new factor, down to its diagonal, to `column`.
  void put(index_t q, T* column) const {
    const auto divided = [this](double x) { return x * down_; };
    const double *const above = S_.data() + q * n_, *const own = S22_.data() + q * p_;
    std::transform(above, above + at_, column, divided);
    std::transform(own, own + q + 1, column + at_, divided);
  }

 private:
  index_t n_, at_, p_;
  double down_;
  std::vector<double> S_, S22_;  ///< S12 above S23', n x p; and S22, p x p
  index_t pivot_ = -1;
  std::vector<double> Y_;
};

}  // namespace gpucholmod::cpu
