#pragma once

#include <vector>

#include "regression/shift.h"

namespace gpucholmod::regression {

/// Bounds the rounding errors of a regression since its rows were last decomposed.
///
/// Orthogonal steps, which add rows, change column j of [X y] by units of rounding of the column's norm, as a QR
/// decomposition of all rows does. Steps that remove rows leave an error E in the normal equations, |E_ij| <= sqrt(e_i
/// e_j), which is relative to the largest norms that the columns have had. Errors of different steps have different
/// signs, so e_j^2 grows at each step by the square of a unit of rounding of the sum of squares of column j. Let s_j be
/// the sums of squares that are left, a_j = e_j / s_j, and C the matrix X'WX scaled to a diagonal of ones. Then
/// coefficients (in units of |y| / |x_j|) have lost about ||C^-1|| (|a| + sqrt(|a| a_y)).
class Account {
 public:
  Account() = default;
  Account(index_t p, index_t m) : p_(p), sums_(p + m), squared_errors_(p + m) {}

  std::vector<double>& sums() { return sums_; }
  std::vector<double>& squared_errors() { return squared_errors_; }
  const std::vector<double>& sums() const { return sums_; }
  double moved = 0;      ///< rows that have come and gone since the rows were last decomposed
  bool removed = false;  ///< True if rows have gone since the rows were last decomposed

  /// Counts a step: sums and errors are multiplied by `forget`, then rows come, including the rows of a penalty, and
  /// rows go.
  void count(const Rows& added, const Rows& gone, double forget);
  /// Begins with a factor and its sides that a decomposition has made, with an error of a unit of rounding.
  Account(MatrixView<const double> R, const Sides& sides);

  /// Describes how accurate the account says that a factor is.
  struct State {
    double independence = 1;  ///< least share of the norm of a column of X that the columns before it do not have
    double loss = 0;          ///< error of the coefficients, relative to their size together

    /// Returns whether removed rows may have left an error of more than 1e-10 in the coefficients.
    bool has_lost() const;
    /// Returns whether coefficients may be off by more than a decomposition of the rows would leave them.
    bool is_worse_than_new() const;
  };
  /// Returns the state of a factor with that diagonal.
  State look(const double* diagonal) const;
  /// Returns whether a coefficient of response j may be off by more than 1e-10 of itself, and by more than after a
  /// decomposition. beta: p, NaN for columns that depend on others. shift: the shift of the rows that were counted.
  bool is_off(const State& state, index_t j, const double* beta, const Shift& shift) const;
  /// Returns the relative error of the residual sum of squares of response j.
  double loss_of_rss(index_t j, double rss, const double* beta, const Shift& shift) const;

 private:
  void add(const Rows& rows, std::vector<double>& to) const;

  index_t p_ = 0;
  std::vector<double> sums_;            ///< s: weighted sums of squares of columns of [X y], with the penalty: p + m
  std::vector<double> squared_errors_;  ///< e^2: p + m
};

}  // namespace gpucholmod::regression
