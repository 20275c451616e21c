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

/// The way of a factor into the core and out of it. S is the scalar it is stored in, T the one computed in; each is
/// double or float.
namespace gpucholmod {

/// |x| as an integer that orders like |x|, with everything that is not finite on top: one operation checks both.
template <class S>
auto magnitude_bits(S x) {
  std::conditional_t<sizeof(S) == 8, std::uint64_t, std::uint32_t> bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & std::numeric_limits<decltype(bits)>::max() >> 1;
}

/// Largest |x| of `count` values, which lie in a column from some row on; throws not_finite.
template <class S>
S largest_of(const char* argument, const S* values, index_t count, index_t row, index_t col);

/// Throws bad_diagonal unless entry j of R's diagonal is positive.
template <class S>
void require_positive(S value, index_t j);

/// Throws bad_diagonal unless `scaled`, what became of R_jj in the scalar computed with, is a positive normal number.
template <class T, class S>
void require_not_vanished(T scaled, S value, index_t j);

/// Is true of positive numbers that have all their digits, and whose inverses are finite.
template <class S>
bool is_normal(S x) {
  return x >= std::numeric_limits<S>::min();
}

/// What to throw for an entry of the result, counted from 0, that is too large.
Error overflow(index_t row, index_t col);

/// What to throw for entry j of R's diagonal, counted from 0, that is too small to be computed with.
Error too_small_to_compute(index_t j, double value);

/// What to throw for entry j of the diagonal of the result, counted from 0, that would be `value`, where `least` is the
/// smallest number that keeps its digits.
Error vanished(index_t j, double value, double least);

/// Throws bad_diagonal unless `made`, entry j of the diagonal of a result, is a positive normal number of the scalar
/// that it is stored in.
template <class S>
void require_normal(S made, index_t j) {
  if (!is_normal(made)) throw vanished(j, double(made), double(std::numeric_limits<S>::min()));
}

/// Rows [first, second) of column j that belong to the triangle.
inline std::pair<index_t, index_t> rows_of(index_t j, index_t n, Uplo uplo) {
  return uplo == Uplo::upper ? std::pair(index_t(0), j + 1) : std::pair(j, n);
}

/// Check the triangle of R (n x n; finite, positive diagonal) by several threads; the other triangle is never read.
/// Throws not_finite or bad_diagonal, the first in the order of columns. Returns the largest magnitude. watch() is
/// called meanwhile.
template <class S>
S check_triangle(const Source<S>& R, index_t n, Uplo uplo, int threads, const std::function<void()>& watch);

/// The same of V (finite) too. Returns the largest magnitude in either.
template <class S>
S check_input(MatrixView<const S> R, MatrixView<const S> V, Uplo uplo, int threads = 1);

/// The exponent e for which R and V are computed with as 2^-e R and 2^-e V: 0 unless squares of `largest`, in T, come
/// near the ends of T's range; then the one nearest to 0 that brings it back. Powers of two round nothing, and
/// (2^-e R, 2^-e V) -> 2^-e R~.
template <class T, class S>
int scale_exponent(S largest) {
  if (largest == 0) return 0;
  constexpr int safe = std::numeric_limits<T>::max_exponent / 2 - 28;
  const int e = std::ilogb(largest);
  return e > safe ? e - safe : e < -safe ? e + safe : 0;
}
/// The same for numbers that are no larger than `most`, which may be beyond the range of T.
template <class T>
int exponent_below(double most) {
  return scale_exponent<T>(T(std::min(most, double(std::numeric_limits<T>::max()))));
}

/// Returns log det R'R, of the diagonal of R.
inline double logdet_of(const double* diagonal, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += 2 * std::log(diagonal[i]);
  return sum;
}

/// Of `count` values; by several sums side by side, as each waits for its last addition.
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

/// The same in double precision, one after the other.
template <class T>
double squares_of_column(const T* values, index_t count) {
  double sum = 0;
  for (index_t i = 0; i < count; ++i) sum += double(values[i]) * double(values[i]);
  return sum;
}

/// Whether a sum of squares tells that no number is too large or too small to be squared, hence that none needs
/// scaling.
template <class T>
bool in_range(T squares) {
  constexpr bool wide = sizeof(T) == 8;
  return squares > (wide ? T(1e-270) : T(1e-12)) && squares < (wide ? T(1e280) : T(1e20));
}

/// W <- 2^-e times the upper factor held in R (transposed when uplo is lower), strict lower triangle zero.
template <class S, class T>
void load_factor(MatrixView<const S> R, Uplo uplo, int e, MatrixView<T> W, int threads = 1);

/// out <- `scale` times the upper factor in W, transposed when uplo is lower; W may be `out` itself. Throws overflow,
/// with the place in `out`, and bad_diagonal, as require_normal() does.
template <class T, class S>
void store_factor(MatrixView<const T> W, Uplo uplo, double scale, MatrixView<S> out, int threads = 1);

}  // namespace gpucholmod
