#include "base/factor_io.h"

#include <atomic>
#include <sstream>
#include <string>
#include <vector>

#include "base/check_column.h"
#include "base/threads.h"

namespace gpucholmod {
namespace {

constexpr index_t tile = 32;  ///< rows and columns that a transposition moves at once

std::string text(double x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

}  // namespace

template <class S>
S largest_of(const char* argument, const S* values, index_t count, index_t row, index_t col) {
  constexpr index_t apart = 8;  // accumulators, which do not wait for each other
  S tops[apart] = {}, nothing[apart] = {};
  const index_t even = count / apart * apart;
  const auto take = [&](S value, index_t j) {
    tops[j] = tops[j] < std::abs(value) ? std::abs(value) : tops[j];
    nothing[j] += value * 0;  // NaN from the first value on that is not finite
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
  throw Error(
      ErrorCode::not_finite,
      std::string("'") + argument + "' has a value that is not finite at [" + std::to_string(row + i + 1) + ", " +
          std::to_string(col + 1) + "]",
      {{"argument", argument}, {"row", double(row + i + 1)}, {"col", double(col + 1)}, {"value", double(values[i])}});
}

template <class S>
void require_positive(S value, index_t j) {
  if (!(value > 0))
    throw Error(ErrorCode::bad_diagonal, "'R' is not a Cholesky factor: its diagonal must be positive, entry " +
                                             std::to_string(j + 1) + " is " + text(value),
                {{"index", double(j + 1)}, {"value", double(value)}});
}

template <class T, class S>
void require_not_vanished(T scaled, S value, index_t j) {
  if (!is_normal(scaled)) throw too_small_to_compute(j, double(value));
}

Error too_small_to_compute(index_t j, double value) {
  return Error(ErrorCode::bad_diagonal,
               "diagonal entry " + std::to_string(j + 1) + " of 'R', " + text(value) +
                   ", is too small to be computed with: beside the largest number of 'R' and 'V', or in the precision "
                   "asked for",
               {{"index", double(j + 1)}, {"value", value}});
}

Error overflow(index_t row, index_t col) {
  return Error(ErrorCode::overflow, "the modified factor has entries too large to represent",
               {{"row", double(row + 1)}, {"col", double(col + 1)}});
}

Error vanished(index_t j, double value, double least) {
  return Error(ErrorCode::bad_diagonal,
               "diagonal entry " + std::to_string(j + 1) + " of the modified factor would be " + text(value) +
                   ", less than " + text(least) +
                   ", below which numbers lose their digits: forget or take away less, " +
                   "or multiply 'R' and 'V' by one number",
               {{"index", double(j + 1)}, {"value", value}});
}

template <class S>
S check_triangle(const Source<S>& R, index_t n, Uplo uplo, int threads, const std::function<void()>& watch) {
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
  if (bad || !std::isfinite(value)) {  // find the first such entry, and throw
    std::vector<S> scratch(n);
    for (index_t j = 0; j < n; ++j) {
      const auto [from, to] = rows_of(j, n, uplo);
      largest_of("R", R.column(j, from, to, scratch.data()), to - from, from, j);
    }
    for (index_t j = 0; j < n; ++j) require_positive(*R.column(j, j, j + 1, scratch.data()), j);
  }
  return value;
}

template <class S>
S check_input(MatrixView<const S> R, MatrixView<const S> V, Uplo uplo, int threads) {
  const S largest = check_triangle(MemorySource<S>(R.data, R.ld), R.cols, uplo, threads, [] {});
  return std::max(largest, S(largest_in_V<S>(V)));
}

/// Copies columns [first, last) of the upper factor R, down to the diagonal and times `scale`, to columns of W.
template <class S, class T>
static void load_columns(MatrixView<const S> R, S scale, MatrixView<T> W, index_t first, index_t last) {
  for (index_t j = first; j < last; ++j)
    for (index_t i = 0; i <= j; ++i) W(i, j) = T(R(i, j) * scale);
}
/// Copies rows [first, last) of the lower factor R, up to the diagonal and times `scale`, to columns of W.
template <class S, class T>
static void load_rows(MatrixView<const S> R, S scale, MatrixView<T> W, index_t first, index_t last) {
  for (index_t i0 = 0; i0 < last; i0 += tile)
    for (index_t i = i0; i < std::min(i0 + tile, last); ++i)
      for (index_t j = std::max(i, first); j < last; ++j) W(i, j) = T(R(j, i) * scale);
}

template <class S, class T>
void load_factor(MatrixView<const S> R, Uplo uplo, int e, MatrixView<T> W, int threads) {
  const index_t n = R.cols;
  const S scale = std::scalbn(S(1), -e);
  for_columns(n, threads, [&](index_t first, index_t last) {
    if (uplo == Uplo::upper) load_columns(R, scale, W, first, last);
    else load_rows(R, scale, W, first, last);
    for (index_t j = first; j < last; ++j) std::fill(W.col(j) + j + 1, W.col(j) + n, T(0));
  }, [] {});
  for (index_t j = 0; j < n; ++j) require_not_vanished(W(j, j), R(j, j), j);
}

template <class T, class S>
void store_factor(MatrixView<const T> W, Uplo uplo, double scale, MatrixView<S> out, int threads) {
  const index_t n = W.cols;
  const bool same = static_cast<const void*>(W.data) == static_cast<const void*>(out.data);
  const bool may_overflow = scale != 1 || sizeof(S) < sizeof(T);
  const auto nothing = [] {};
  const auto store_column = [&](index_t j) {
    for (index_t i = 0; i <= j; ++i) {
      out(i, j) = S(W(i, j) * scale);
      if (may_overflow && !std::isfinite(out(i, j))) throw uplo == Uplo::upper ? overflow(i, j) : overflow(j, i);
    }
    std::fill(out.col(j) + j + 1, out.col(j) + n, S(0));
  };
  if (!same || scale != 1)
    for_columns(n, threads, [&](index_t first, index_t last) {
      for (index_t j = first; j < last; ++j) store_column(j);
    }, nothing);
  for (index_t j = 0; j < n; ++j) require_normal(out(j, j), j);
  if (uplo == Uplo::upper) return;
  for_columns(n, threads, [&](index_t first, index_t last) {
    for (index_t i0 = 0; i0 < last; i0 += tile)
      for (index_t j = first; j < last; ++j)
        for (index_t i = i0; i < std::min(i0 + tile, j); ++i) std::swap(out(i, j), out(j, i));
  }, nothing);
}

#define GPUCHOLMOD_STORED(S) \
  template S largest_of(const char*, const S*, index_t, index_t, index_t); \
  template void require_positive(S, index_t); \
  template S check_triangle(const Source<S>&, index_t, Uplo, int, const std::function<void()>&); \
  template S check_input(MatrixView<const S>, MatrixView<const S>, Uplo, int);
#define GPUCHOLMOD_STORED_AND_COMPUTED(S, T) \
  template void require_not_vanished(T, S, index_t); \
  template void load_factor(MatrixView<const S>, Uplo, int, MatrixView<T>, int); \
  template void store_factor(MatrixView<const T>, Uplo, double, MatrixView<S>, int);

GPUCHOLMOD_STORED(double)
GPUCHOLMOD_STORED(float)
GPUCHOLMOD_STORED_AND_COMPUTED(double, double)
GPUCHOLMOD_STORED_AND_COMPUTED(double, float)
GPUCHOLMOD_STORED_AND_COMPUTED(float, double)
GPUCHOLMOD_STORED_AND_COMPUTED(float, float)

}  // namespace gpucholmod
