#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/types.h"

namespace gpucholmod {

/// The states of the triangle of a factor that is never read; from `filled` on, the later the more suspicious.
enum class OtherTriangle {
  zero,
  filled,            ///< a triangle that is not zero
  transposed,        ///< a triangle that is not zero, while the triangle that is read is: a factor of the other kind
  nearly_symmetric,  ///< the mirror image of the triangle that is read, but for eps^(1/4) of the sizes
  /// The mirror image but for eps^(1/2), which inverting a matrix may leave: the matrix, not its factor.
  symmetric
};

/// Looks at the triangle that is not read: at all of it up to order 32, otherwise at its longest column and at 64
/// places beside the diagonal. If an entry there is not zero, compares up to 64 places beside the diagonal, and as many
/// in that column, with their mirror images. Reads the whole matrix if these comparisons do not tell the matrix from a
/// symmetric one.
template <class S>
class LookAtOtherTriangle {
 public:
  LookAtOtherTriangle(MatrixView<const S> R, Uplo uplo) : R_(R), lower_(uplo == Uplo::lower) {}

  OtherTriangle result() const {
    if (is_zero()) return OtherTriangle::zero;
    if (is_own_zero()) return OtherTriangle::transposed;
    return each_place([&](index_t i, index_t j) { return is_perhaps_mirrored(i, j); }) ? compared()
                                                                                      : OtherTriangle::filled;
  }

 private:
  // For i > j: the two entries that are equal in a symmetric matrix.
  S own(index_t i, index_t j) const { return lower_ ? R_(i, j) : R_(j, i); }
  S other(index_t i, index_t j) const { return lower_ ? R_(j, i) : R_(i, j); }

  bool is_zero() const {
    const index_t n = R_.cols;
    if (n <= whole) {
      for (index_t j = 0; j < n; ++j)
        if (!is_zero_column(j)) return false;
      return true;
    }
    return is_zero_column(lower_ ? n - 1 : 0) && each_place([&](index_t i, index_t j) { return other(i, j) == 0; });
  }

  /// Returns whether column j of the other triangle is zero.
  bool is_zero_column(index_t j) const { return are_zero(j, lower_ ? 0 : j + 1, lower_ ? j : R_.cols); }
  bool is_own_zero() const {
    for (index_t j = 0; j < R_.cols; ++j)
      if (!are_zero(j, lower_ ? j + 1 : 0, lower_ ? R_.cols : j)) return false;
    return true;
  }
  bool are_zero(index_t j, index_t first, index_t last) const {
    return std::all_of(R_.col(j) + first, R_.col(j) + last, [](S x) { return x == 0; });
  }

  /// Calls f(i, j) beside the diagonal, and in the first column and row, or the last ones, until f returns false.
  template <class F>
  bool each_place(F f) const {
    const index_t n = R_.cols, count = std::min<index_t>(n - 1, places);
    for (index_t p = 0; p < count; ++p) {
      index_t i = 1 + p * (n - 1) / count;
      if (n - 1 >= 2 * places) i += p & 1;  // otherwise, at an even distance, all places would be odd
      if (!f(i, i - 1) || !(lower_ ? i == n - 1 || f(n - 1, i - 1) : f(i, 0))) return false;
    }
    return true;
  }

  /// Returns whether two entries may mirror each other. True also for numbers that are small beside the diagonal: in a
  /// symmetric matrix such numbers may be rounding errors.
  bool is_perhaps_mirrored(index_t i, index_t j) const {
    const double a = double(own(i, j)), b = double(other(i, j));
    const double beside = std::sqrt(std::abs(double(R_(i, i)))) * std::sqrt(std::abs(double(R_(j, j))));
    return std::abs(a - b) <= nearly() * std::max({std::abs(a), std::abs(b), beside});
  }

  /// Compares the two triangles as a whole, so that small numbers do not count.
  OtherTriangle compared() const {
    long double difference = 0, size = 0;  // no sum of these overflows
    for (index_t j = 0; j < R_.cols; ++j)
      for (index_t i = j + 1; i < R_.cols; ++i) {
        const long double a = own(i, j), b = other(i, j);
        difference += std::abs(a - b);
        size += std::max(std::abs(a), std::abs(b));
      }
    const auto is_below = [&](double bound) { return std::isfinite(size) && difference <= bound * size; };
    return is_below(nearly() * nearly()) ? OtherTriangle::symmetric
           : is_below(nearly())          ? OtherTriangle::nearly_symmetric
                                         : OtherTriangle::filled;
  }

  static double nearly() { return std::sqrt(std::sqrt(double(std::numeric_limits<S>::epsilon()))); }

  static constexpr index_t whole = 32, places = 64;
  MatrixView<const S> R_;
  bool lower_;
};

template <class S>
OtherTriangle look_at_other_triangle(MatrixView<const S> R, Uplo uplo) {
  return LookAtOtherTriangle<S>(R, uplo).result();
}

}  // namespace gpucholmod
