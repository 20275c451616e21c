#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/factor_io.h"
#include "base/held_batch.h"
#include "base/task.h"

/// Right-hand sides of a factor whose rows and columns are inserted, removed or moved: their changes besides the
/// modification of the rows behind. Before, R'z = b; after, R~'z~ = b~. Reference: inst/design/reshape.md.
namespace gpucholmod {

/// Returns the numbers of 0 .. n - 1 that are not in `gone`, which ascends.
inline std::vector<index_t> others_than(const std::vector<index_t>& gone, index_t n) {
  std::vector<index_t> keep;
  std::size_t q = 0;
  for (index_t j = 0; j < n; ++j) {
    if (q < gone.size() && gone[q] == j) ++q;
    else keep.push_back(j);
  }
  return keep;
}

/// Copies the rows of z that stay to right.out. Returns the rows that are removed, m x |gone|, which belong to the
/// columns of the update.
inline std::vector<double> remove_rows(const RightHandSideView& right, const std::vector<index_t>& gone,
                                       const std::vector<index_t>& keep) {
  const index_t m = right.m();
  std::vector<double> Y(m * gone.size());
  for (index_t s = 0; s < m; ++s) {
    for (std::size_t q = 0; q < gone.size(); ++q) Y[s + q * m] = right.z(gone[q], s);
    for (std::size_t j = 0; j < keep.size(); ++j) right.out(j, s) = right.z(keep[j], s);
  }
  return Y;
}

/// Copies z to right.out, with z2 = S22'^-1 (b2 - S12'z1) inserted at row `at`; right.Y is b2'. Returns z2' (m x p),
/// which belongs to the columns of the downdate. S12: `at` rows; S22: p x p, upper.
inline std::vector<double> insert_rows(const RightHandSideView& right, index_t at, MatrixView<const double> S12,
                                       MatrixView<const double> S22) {
  const index_t p = S22.cols, m = right.m();
  std::vector<double> Y(m * p);
  for (index_t s = 0; s < m; ++s) {
    const double* const z = right.z.col(s);
    double* const out = right.out.col(s);
    std::copy_n(z, at, out);
    std::copy(z + at, z + right.z.rows, out + at + p);
    for (index_t q = 0; q < p; ++q) {
      double sum = right.Y(s, q);
      for (index_t i = 0; i < at; ++i) sum -= S12(i, q) * z[i];
      for (index_t i = 0; i < q; ++i) sum -= S22(i, q) * out[at + i];
      Y[s + q * m] = out[at + q] = sum / S22(q, q);
    }
  }
  return Y;
}

/// Holds right-hand sides of a batch whose members lose rows, arranged for the modification of the rows that stay.
class SidesOfRemoval {
 public:
  /// Copies rows that stay and rows that are removed. orders: orders of the members before; n: the largest of them.
  SidesOfRemoval(const BatchRemoval& what, const std::vector<index_t>& orders, index_t n) : given_(what.sides) {
    const index_t m = given_.m, p = what.p, left = n - p, b = index_t(orders.size());
    kept_.resize(left * m * b);
    gone_.resize(p * m * b);
    for (index_t member = 0; member < b && m > 0; ++member) {
      const std::vector<index_t> gone(what.of(member), what.of(member) + p), keep = others_than(gone, orders[member]);
      const double* const z = given_.of(n, p, member, left).z;
      for (index_t s = 0; s < m; ++s) {
        for (std::size_t j = 0; j < keep.size(); ++j) kept_[index_t(j) + (s + member * m) * left] = z[keep[j] + s * n];
        for (index_t q = 0; q < p; ++q) gone_[q + (s + member * m) * p] = z[gone[q] + s * n];
      }
    }
  }
  /// Returns the right-hand sides of the modification, which refer to memory of this object.
  BatchSides of_modification() const {
    return {given_.m, {kept_.data(), gone_.data(), given_.first.out, given_.first.rest}};
  }

 private:
  BatchSides given_;
  std::vector<double> kept_, gone_;
};

/// Holds the rows and columns that are inserted at `at`, for a factor divided by 2^e: X divided by 4^e, the new rows of
/// b by 2^e. The constructor throws bad_diagonal if an entry of the diagonal of the inserted block loses digits by the
/// division; other entries may lose digits.
class ScaledRows {
 public:
  ScaledRows(const double* X, index_t rows, index_t at, index_t p, const RightHandSideView& right, int e)
      : X_(X, X + rows * p), Y_(right.Y.data, right.Y.data + right.m() * p) {
    for (double& x : X_) x = std::scalbn(x, -2 * e);
    for (double& y : Y_) y = std::scalbn(y, -e);
    constexpr double least = std::numeric_limits<double>::min();
    for (index_t q = 0; q < p; ++q)
      if (const index_t i = at + q + q * rows; X[i] > 0 && !is_normal(X_[i]))
        throw vanished(at + q, std::sqrt(X[i]), std::scalbn(std::sqrt(least), e));
  }
  const double* X() const { return X_.data(); }
  Task of(Task task) const {
    task.right.Y.data = Y_.data();
    return task;
  }

 private:
  std::vector<double> X_, Y_;
};

}  // namespace gpucholmod
