#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/factor_io.h"
#include "base/task.h"

/// Right-hand sides of a factor whose rows and columns come, go or move: what happens to them besides the modification
/// of what lies behind. Before, R'z = b; after, R~'z~ = b~. Reference: inst/design/reshape.md.
namespace gpucholmod {

/// Those of 0 .. n - 1 that are not in `gone`, which ascends.
inline std::vector<index_t> others_than(const std::vector<index_t>& gone, index_t n) {
  std::vector<index_t> keep;
  std::size_t q = 0;
  for (index_t j = 0; j < n; ++j) {
    if (q < gone.size() && gone[q] == j) ++q;
    else keep.push_back(j);
  }
  return keep;
}

/// right.out <- the rows of z that stay. Returns those that go, m x |gone|: they belong to the columns of the update.
inline std::vector<double> remove_rows(const RightSides& right, const std::vector<index_t>& gone,
                                       const std::vector<index_t>& keep) {
  const index_t left = index_t(keep.size()), n = left + index_t(gone.size());
  std::vector<double> Y(right.m * gone.size());
  for (index_t s = 0; s < right.m; ++s) {
    for (std::size_t q = 0; q < gone.size(); ++q) Y[s + q * right.m] = right.z[gone[q] + s * n];
    for (index_t j = 0; j < left; ++j) right.out[j + s * left] = right.z[keep[j] + s * n];
  }
  return Y;
}

/// right.out <- z with z2 = S22'^-1 (b2 - S12'z1) put in at row `at`, b2' in right.Y. Returns z2' (m x p): it belongs
/// to the columns of the downdate. S12: `at` rows; S22: p x p, upper.
inline std::vector<double> insert_rows(const RightSides& right, index_t n, index_t at, MatrixView<const double> S12,
                                       MatrixView<const double> S22) {
  const index_t p = S22.cols;
  std::vector<double> Y(right.m * p);
  for (index_t s = 0; s < right.m; ++s) {
    const double* const z = right.z + s * n;
    double* const out = right.out + s * (n + p);
    std::copy_n(z, at, out);
    std::copy(z + at, z + n, out + at + p);
    for (index_t q = 0; q < p; ++q) {
      double sum = right.Y[s + q * right.m];
      for (index_t i = 0; i < at; ++i) sum -= S12(i, q) * z[i];
      for (index_t i = 0; i < q; ++i) sum -= S22(i, q) * out[at + i];
      Y[s + q * right.m] = out[at + q] = sum / S22(q, q);
    }
  }
  return Y;
}

/// What is inserted at `at`, for a factor divided by 2^e: X by 4^e, the new rows of b by 2^e. Throws bad_diagonal where
/// an entry of the diagonal of the inserted block loses digits by that; those beside it may.
class ScaledRows {
 public:
  ScaledRows(const double* X, index_t rows, index_t at, index_t p, const RightSides& right, int e)
      : X_(X, X + rows * p), Y_(right.Y, right.Y + right.m * p) {
    for (double& x : X_) x = std::scalbn(x, -2 * e);
    for (double& y : Y_) y = std::scalbn(y, -e);
    constexpr double least = std::numeric_limits<double>::min();
    for (index_t q = 0; q < p; ++q)
      if (const index_t i = at + q + q * rows; X[i] > 0 && !is_normal(X_[i]))
        throw vanished(at + q, std::sqrt(X[i]), std::scalbn(std::sqrt(least), e));
  }
  const double* X() const { return X_.data(); }
  Task of(Task task) const {
    task.right.Y = Y_.data();
    return task;
  }

 private:
  std::vector<double> X_, Y_;
};

/// Rows of right.out from `first` on, as those of a factor that is modified by itself: Y (m x k) belongs to the columns
/// of V.
class TrailingSides : NotCopied {
 public:
  /// right.out (n rows) holds z in the new order.
  TrailingSides(const RightSides& right, index_t n, index_t first, const std::vector<double>& Y)
      : right_(right), n_(n), first_(first), z_(rows() * right.m), Y_(Y) {
    for (index_t s = 0; s < right.m; ++s) std::copy_n(right.out + first + s * n, rows(), z_.data() + s * rows());
    out_ = z_;
  }
  RightSides sides() { return {right_.m, z_.data(), Y_.data(), out_.data(), right_.rest}; }
  /// The modification has gone well.
  void settle() const {
    if (rows() == 0) std::copy(Y_.begin(), Y_.end(), right_.rest);
    for (index_t s = 0; s < right_.m; ++s) std::copy_n(out_.data() + s * rows(), rows(), right_.out + first_ + s * n_);
  }

 private:
  index_t rows() const { return n_ - first_; }

  RightSides right_;
  index_t n_, first_;
  std::vector<double> z_, out_;
  const std::vector<double>& Y_;
};

}  // namespace gpucholmod
