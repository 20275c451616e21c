#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/storage.h"
#include "base/types.h"

/// Checks and conversions of a factor on its way into the core and out of it. S is the scalar in which the factor is
/// stored, T the scalar in which it is computed with; each is double or float.
namespace gpucholmod {

/// Returns |x| as an integer that orders like |x|. Every x that is not finite is above all finite numbers, so that one
/// maximum finds both the largest magnitude and a number that is not finite.
template <class S>
auto magnitude_bits(S x) {
  std::conditional_t<sizeof(S) == 8, std::uint64_t, std::uint32_t> bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & std::numeric_limits<decltype(bits)>::max() >> 1;
}

/// Returns the largest |x| of `count` values, which are entries of column `col` from row `row` on. Throws not_finite.
template <class S>
S largest_of(const char* argument, const S* values, index_t count, index_t row, index_t col);

/// Throws bad_diagonal unless entry j of R's diagonal is positive.
template <class S>
void require_positive(S value, index_t j);

/// Throws bad_diagonal unless `scaled`, which is R_jj (`value`) in the scalar computed with, is a positive normal
/// number.
template <class T, class S>
void require_not_vanished(T scaled, S value, index_t j);

/// Returns whether x is positive and not subnormal: such numbers have all their digits, and their inverses are finite.
template <class S>
bool is_normal(S x) {
  return x >= std::numeric_limits<S>::min();
}

/// Returns the error to throw for an entry of the result, counted from 0, that is too large.
Error overflow(index_t row, index_t col);

/// Returns the error to throw for entry j of R's diagonal, counted from 0, that is too small to be computed with.
Error too_small_to_compute(index_t j, double value);

/// Returns the error to throw for entry j of the diagonal of the result, counted from 0, that would be `value`; `least`
/// is the smallest number that keeps its digits.
Error vanished(index_t j, double value, double least);

/// Throws bad_diagonal unless `made`, entry j of the diagonal of a result, is a positive normal number of the scalar
/// that it is stored in.
template <class S>
void require_normal(S made, index_t j) {
  if (!is_normal(made)) throw vanished(j, double(made), double(std::numeric_limits<S>::min()));
}

/// Returns the rows [first, second) of column j that belong to the triangle that uplo names.
inline std::pair<index_t, index_t> rows_of(index_t j, index_t n, Uplo uplo) {
  return uplo == Uplo::upper ? std::pair(index_t(0), j + 1) : std::pair(j, n);
}

/// Checks the triangle of R (n x n; finite, positive diagonal) by several threads, and never reads the other triangle.
/// Returns the largest magnitude. Throws not_finite or else bad_diagonal, for the first such entry in the order of
/// columns. Calls watch() meanwhile.
template <class S>
S check_triangle(const Source<S>& R, index_t n, Uplo uplo, int threads, const std::function<void()>& watch);

/// Checks the triangle of R as check_triangle() does, and V (finite). Returns the largest magnitude in either.
template <class S>
S check_input(MatrixView<const S> R, MatrixView<const S> V, Uplo uplo, int threads = 1);

/// Returns the exponent e for computing with 2^-e R and 2^-e V. The exponent is 0 unless squares of `largest`, in T,
/// come near the ends of T's range; then e is the exponent nearest to 0 that keeps squares away from the ends. Powers
/// of two round nothing, and (2^-e R, 2^-e V) -> 2^-e R~.
template <class T, class S>
int scale_exponent(S largest) {
  if (largest == 0) return 0;
  constexpr int safe = std::numeric_limits<T>::max_exponent / 2 - 28;
  const int e = std::ilogb(largest);
  return e > safe ? e - safe : e < -safe ? e + safe : 0;
}
/// Returns scale_exponent() of numbers that are no larger than `most`, which may be beyond the range of T.
template <class T>
int exponent_below(double most) {
  return scale_exponent<T>(T(std::min(most, double(std::numeric_limits<T>::max()))));
}

/// Returns log det R'R, computed from the diagonal of R (n).
inline double logdet_of(const double* diagonal, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += 2 * std::log(diagonal[i]);
  return sum;
}

/// Returns the sum of the squares of `count` values. Adds to several sums side by side, because each addition waits for
/// the last addition to its sum.
template <class T>
T sum_of_squares(const T* values, index_t count) {
  constexpr index_t sums = 16;
  T part[sums] = {}, sum = 0;
  index_t i = 0;
  for (; i + sums <= count; i += sums)
    for (index_t l = 0; l < sums; ++l) part[l] += values[i + l] * values[i + l];
  if (i > 0)
    for (const T x : part) sum += x;
  for (; i < count; ++i) sum += values[i] * values[i];
  return sum;
}

/// Returns the sum of the squares of `count` values, added one after the other in double precision.
template <class T>
double squares_of_column(const T* values, index_t count) {
  double sum = 0;
  for (index_t i = 0; i < count; ++i) sum += double(values[i]) * double(values[i]);
  return sum;
}

/// Returns whether a sum of squares tells that no number is too large or too small to be squared, hence that no number
/// needs scaling.
template <class T>
bool in_range(T squares) {
  constexpr bool wide = sizeof(T) == 8;
  return squares > (wide ? T(1e-270) : T(1e-12)) && squares < (wide ? T(1e280) : T(1e20));
}

/// Copies 2^-e times the upper factor held in R (transposed if uplo is lower) to W, whose strict lower triangle becomes
/// zero. Throws bad_diagonal, as require_not_vanished() does.
template <class S, class T>
void load_factor(MatrixView<const S> R, Uplo uplo, int e, MatrixView<T> W, int threads = 1);

/// Copies `scale` times the upper factor in W, transposed if uplo is lower, to `out`; W may be `out` itself. Throws
/// overflow, with the place in `out`, and bad_diagonal, as require_normal() does.
template <class T, class S>
void store_factor(MatrixView<const T> W, Uplo uplo, double scale, MatrixView<S> out, int threads = 1);

}  // namespace gpucholmod
