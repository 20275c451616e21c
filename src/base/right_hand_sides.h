#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "base/task.h"

namespace gpucholmod {

/// Throws overflow unless single precision can hold x, an entry of z or y. row, col: counted from 0.
inline void require_single(const char* argument, double x, index_t row, index_t col) {
  if (!std::isfinite(float(x)))
    throw Error(ErrorCode::overflow,
                std::string("'") + argument + "' has values too large for the precision asked for",
                {{"argument", argument}, {"row", double(row + 1)}, {"col", double(col + 1)}});
}

/// Returns the sum of the squares of a column's entries, each divided by `scale`.
inline double squares(const double* column, index_t rows, double scale) {
  double sum = 0;
  for (index_t i = 0; i < rows; ++i) sum += column[i] / scale * (column[i] / scale);
  return sum;
}

/// Refers to the values that a modification leaves of Y for one right-hand side: one for each of k columns of V, the
/// first `added` of which are added.
struct RestOfSide {
  const double* at;
  index_t stride, k, added;
};

/// Returns the residual sum of squares that `before` becomes. [R z; 0 rho] is the factor of a matrix whose last entry
/// is b'A^-1 b + rho^2, or y'y. That entry is known to its rounding error. So a negative sum becomes 0 if it is no
/// further below 0 than `units` times that entry, and NaN if it is further below. NaN and infinity stay.
/// squares_of_z(): |z|^2 + |z~ / scale|^2.
template <class F>
double residual_sum(double before, const RestOfSide& rest, double scale, Precision precision, F&& squares_of_z) {
  const double units = 100 * (precision == Precision::single ? double(std::numeric_limits<float>::epsilon())
                                                              : std::numeric_limits<double>::epsilon());
  double sum = before, there = sum;
  for (index_t q = 0; q < rest.k; ++q) {
    const double square = rest.at[q * rest.stride] * rest.at[q * rest.stride];
    sum += q < rest.added ? square : -square;
    there += square;
  }
  if (sum < 0) {
    there += squares_of_z();
    sum = std::isfinite(there) && -sum <= units * there ? 0 : std::numeric_limits<double>::quiet_NaN();
  }
  return scale * scale * sum;
}

/// Owns right-hand sides that are modified along with a factor (RightHandSideView), and keeps the results apart until
/// the call has succeeded.
class OwnedRightHandSides {
 public:
  index_t m = 0;
  std::vector<double> z;  ///< n x m
  std::vector<double> Y;  ///< m x k
  /// The residual sums of squares, one for each right-hand side, or none. NaN: more was taken away than there was;
  /// infinity: the sum is beyond the range of doubles.
  std::vector<double> rss;

  OwnedRightHandSides() = default;
  /// Copies `from` (n x m) to z, the transpose of `columns` (k x m) to Y, and sums (m), unless null, to rss. Throws
  /// not_finite, with the name of the argument.
  OwnedRightHandSides(const char* name_of_z, MatrixView<const double> from, const char* name_of_Y,
                      MatrixView<const double> columns, const double* sums)
      : m(from.cols), z(from.rows * m), Y(m * columns.rows) {
    for (index_t j = 0; j < m; ++j) {
      largest_of(name_of_z, from.col(j), from.rows, 0, j);
      if (columns.rows > 0) largest_of(name_of_Y, columns.col(j), columns.rows, 0, j);
      std::copy_n(from.col(j), from.rows, z.data() + j * from.rows);
      for (index_t q = 0; q < columns.rows; ++q) Y[j + q * m] = columns(q, j);
    }
    if (sums) rss.assign(sums, sums + m);
  }

  /// Redirects modified right-hand sides to the caller's memory, n x m, so that z stays as it is. Nobody reads that
  /// memory unless the call has succeeded.
  void put_into(double* place) { place_ = place; }
  bool has_place() const { return place_ != nullptr; }

  /// Allocates the results, and returns the view that a backend sees. `task`: of k columns of V. `columns` (m x k),
  /// sorted and scaled as V is, replaces Y and has to outlive the view. `order`: of the new factor. Throws overflow if
  /// a number is too large for the precision of the task.
  RightHandSideView view(const Task& task, const double* columns, index_t order) {
    for (index_t j = 0; j < m && task.precision == Precision::single; ++j) {
      for (index_t i = 0; i < task.n; ++i) require_single("z", z[i + j * task.n], i, j);
      for (index_t q = 0; q < index_t(Y.size()) / m; ++q) require_single("y", Y[j + q * m], q, j);
    }
    rows_ = order;
    if (!has_place()) out_.resize(order * m);
    rest_.resize(task.k * m);
    return {{z.data(), task.n, m, task.n},
            {columns, m, task.k, m},
            {out(), order, m, order},
            {rest_.data(), m, task.k, m}};
  }

  /// Replaces z, unless put_into() has redirected the results, and rss by those of the modified factor. Must be called
  /// only when the call of `task` has succeeded. unscaled_z: as in Work.
  void settle(const Task& task, bool unscaled_z) {
    if (unscaled_z)
      for (index_t i = 0; i < rows_ * m; ++i) out()[i] *= task.scale;
    for (index_t j = 0; j < index_t(rss.size()); ++j) rss[j] = new_sum(task, j);
    if (!has_place()) z.swap(out_);
  }

 private:
  /// Returns the new residual sum of squares of column j.
  double new_sum(const Task& task, index_t j) const {
    const index_t rows = index_t(z.size()) / m;
    const double* const rest = task.k > 0 ? rest_.data() + j : nullptr;
    return residual_sum(rss[j], {rest, m, task.k, task.added()}, task.scale, task.precision, [&] {
      return squares(z.data() + j * rows, rows, 1) + squares(out() + j * rows_, rows_, task.scale);
    });
  }
  double* out() { return has_place() ? place_ : out_.data(); }
  const double* out() const { return has_place() ? place_ : out_.data(); }

  index_t rows_ = 0;  ///< rows of the result
  double* place_ = nullptr;
  std::vector<double> out_, rest_;
};

}  // namespace gpucholmod
