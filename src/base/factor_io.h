#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/types.h"
#include "base/storage.h"
#include "base/threads.h"

/// The way of a factor into the core and out of it. S is the scalar it is stored in, T the one computed in.
namespace gpucholmod {

/// |x| as an integer that orders like |x|, with everything that is not finite on top: one operation checks both.
template <class S>
auto magnitude_bits(S x) {
  std::conditional_t<sizeof(S) == 8, std::uint64_t, std::uint32_t> bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & std::numeric_limits<decltype(bits)>::max() >> 1;
}

inline std::string text(double x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

/// Largest |x| of `count` values, which lie in a column from some row on; throws not_finite.
template <class S>
S largest_of(const char* argument, const S* values, index_t count, index_t row, index_t col) {
  constexpr index_t apart = 8;  // sums that do not wait for each other
  S tops[apart] = {}, nothing[apart] = {};
  const index_t even = count / apart * apart;
  const auto take = [&](S value, index_t j) {
    tops[j] = tops[j] < std::abs(value) ? std::abs(value) : tops[j];
    nothing[j] += value * 0;  // not a number from the first value on that is not finite
  };
  for (index_t i = 0; i < even; i += apart)
    for (index_t j = 0; j < apart; ++j) take(values[i + j], j);
  for (index_t i = even; i < count; ++i) take(values[i], 0);
  bool finite = true;
  S largest = 0;
  for (index_t j = 0; j < apart; ++j) {
    finite = finite && nothing[j] == 0;
    largest = std::max(largest, tops[j]);
  }
  if (finite) return largest;
  index_t i = 0;
  while (std::isfinite(values[i])) ++i;
  throw Error(ErrorCode::not_finite,
              std::string("'") + argument + "' has a value that is not finite at [" + std::to_string(row + i + 1) + ", " +
                  std::to_string(col + 1) + "]",
              {{"argument", argument}, {"row", double(row + i + 1)}, {"col", double(col + 1)}, {"value", double(values[i])}});
}

/// Throws bad_diagonal unless entry j of R's diagonal is positive.
template <class S>
void require_positive(S value, index_t j) {
  if (!(value > 0))
    throw Error(ErrorCode::bad_diagonal, "'R' is not a Cholesky factor: its diagonal must be positive, entry " +
                                             std::to_string(j + 1) + " is " + text(value),
                {{"index", double(j + 1)}, {"value", double(value)}});
}

/// Throws bad_diagonal unless `scaled`, what became of R_jj in the scalar computed with, is positive.
template <class T, class S>
void require_not_vanished(T scaled, S value, index_t j) {
  if (!(scaled > 0))
    throw Error(ErrorCode::bad_diagonal, "diagonal entry " + std::to_string(j + 1) +
                                             " of 'R' is too small beside the largest for the precision asked for",
                {{"index", double(j + 1)}, {"value", double(value)}});
}

/// What to throw for an entry of the result, counted from 0, that is too large.
inline Error overflow(index_t row, index_t col) {
  return Error(ErrorCode::overflow, "the modified factor has entries too large to represent",
               {{"row", double(row + 1)}, {"col", double(col + 1)}});
}

/// Rows [first, second) of column j that belong to the triangle.
inline std::pair<index_t, index_t> rows_of(index_t j, index_t n, Uplo uplo) {
  return uplo == Uplo::upper ? std::pair(index_t(0), j + 1) : std::pair(j, n);
}

/// Check the triangle of R (n x n; finite, positive diagonal) by several threads; the other triangle is never read. Throws
/// not_finite or bad_diagonal, the first in the order of columns. Returns the largest magnitude. watch() is called meanwhile.
template <class S, class W>
S check_triangle(const Source<S>& R, index_t n, Uplo uplo, int threads, W&& watch) {
  using Bits = decltype(magnitude_bits(S()));
  std::atomic<Bits> largest{0};
  std::atomic<bool> bad{false};
  for_columns(n, threads, [&](index_t first, index_t last) {
    std::vector<S> scratch(n);
    Bits top = 0;
    for (index_t j = first; j < last; ++j) {
      const auto [from, to] = rows_of(j, n, uplo);
      const S* values = R.column(j, from, to, scratch.data());
      for (index_t i = 0; i < to - from; ++i) top = std::max(top, magnitude_bits(values[i]));
      if (!(values[j - from] > 0)) bad = true;
    }
    for (Bits seen = largest; seen < top && !largest.compare_exchange_weak(seen, top);) {}
  }, watch);
  S value;
  const Bits bits = largest;
  std::memcpy(&value, &bits, sizeof value);
  if (bad || !std::isfinite(value)) {  // which, and where
    std::vector<S> scratch(n);
    for (index_t j = 0; j < n; ++j) {
      const auto [from, to] = rows_of(j, n, uplo);
      largest_of("R", R.column(j, from, to, scratch.data()), to - from, from, j);
    }
    for (index_t j = 0; j < n; ++j) require_positive(*R.column(j, j, j + 1, scratch.data()), j);
  }
  return value;
}

/// The same of V (finite) too. Returns the largest magnitude in either.
template <class S>
S check_input(MatrixView<const S> R, MatrixView<const S> V, Uplo uplo, int threads = 1) {
  S largest = check_triangle(MemorySource<S>(R.data, R.ld), R.cols, uplo, threads, [] {});
  for (index_t j = 0; j < V.cols; ++j) largest = std::max(largest, largest_of("V", V.col(j), V.rows, 0, j));
  return largest;
}

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

/// Whether a sum of squares tells that no number is too large or too small to be squared, hence that none needs scaling.
template <class T>
bool in_range(T squares) {
  constexpr bool wide = sizeof(T) == 8;
  return squares > (wide ? T(1e-270) : T(1e-12)) && squares < (wide ? T(1e280) : T(1e20));
}

/// W <- 2^-e times the upper factor held in R (transposed when uplo is lower), strict lower triangle zero.
template <class S, class T>
void load_factor(MatrixView<const S> R, Uplo uplo, int e, MatrixView<T> W, int threads = 1) {
  constexpr index_t tile = 32;  // for the transposition
  const index_t n = R.cols;
  const S scale = std::scalbn(S(1), -e);
  for_columns(n, threads, [&](index_t j0, index_t j1) {
    if (uplo == Uplo::upper) {
      for (index_t j = j0; j < j1; ++j)
        for (index_t i = 0; i <= j; ++i) W(i, j) = T(R(i, j) * scale);
    } else {
      for (index_t i0 = 0; i0 < j1; i0 += tile)
        for (index_t i = i0; i < std::min(i0 + tile, j1); ++i)
          for (index_t j = std::max(i, j0); j < j1; ++j) W(i, j) = T(R(j, i) * scale);
    }
    for (index_t j = j0; j < j1; ++j) std::fill(W.col(j) + j + 1, W.col(j) + n, T(0));
  }, [] {});
  for (index_t j = 0; j < n; ++j) require_not_vanished(W(j, j), R(j, j), j);
}

/// out <- `scale` times the upper factor in W, transposed when uplo is lower; W may be `out` itself. Throws overflow, with the
/// place in `out`.
template <class T, class S>
void store_factor(MatrixView<T> W, Uplo uplo, double scale, MatrixView<S> out, int threads = 1) {
  const index_t n = W.cols;
  const bool same = static_cast<const void*>(W.data) == static_cast<const void*>(out.data);
  const bool may_overflow = scale != 1 || sizeof(S) < sizeof(T);
  const auto nothing = [] {};
  if (!same || scale != 1)
    for_columns(n, threads, [&](index_t first, index_t last) {
      for (index_t j = first; j < last; ++j) {
        for (index_t i = 0; i <= j; ++i) {
          out(i, j) = S(W(i, j) * scale);
          if (may_overflow && !std::isfinite(out(i, j))) throw uplo == Uplo::upper ? overflow(i, j) : overflow(j, i);
        }
        std::fill(out.col(j) + j + 1, out.col(j) + n, S(0));
      }
    }, nothing);
  if (uplo == Uplo::upper) return;
  constexpr index_t tile = 32;
  for_columns(n, threads, [&](index_t first, index_t last) {
    for (index_t i0 = 0; i0 < last; i0 += tile)
      for (index_t j = first; j < last; ++j)
        for (index_t i = i0; i < std::min(i0 + tile, j); ++i) std::swap(out(i, j), out(j, i));
  }, nothing);
}

}  // namespace gpucholmod
