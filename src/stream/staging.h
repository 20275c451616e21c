#pragma once

#include "base/factor_io.h"
#include "block_columns/pass.h"

/// Conversions between a factor as it is stored (S, either triangle) and a chunk of a panel as the device reads it (T,
/// upper, ld x columns, continued by the identity behind row and column n).
namespace gpucholmod::stream {

/// Records what was seen of the entries of a factor.
template <class S>
struct Seen {
  using Bits = decltype(magnitude_bits(S()));
  Bits largest = 0;          ///< magnitude_bits of the largest entry
  bool bad_diagonal = false;  ///< True if a diagonal entry is not positive, or no normal number in T

  void add(const Seen& other) {
    largest = std::max(largest, other.largest);
    bad_diagonal = bad_diagonal || other.bad_diagonal;
  }
  S value() const {
    S x;
    std::memcpy(&x, &largest, sizeof x);
    return x;
  }
};

/// Computes to[i * step] <- scale * from[i]. Returns the largest magnitude_bits of `from`.
template <class S, class T>
typename Seen<S>::Bits scaled_copy(const S* from, index_t count, S scale, T* to, index_t step = 1) {
  typename Seen<S>::Bits largest = 0;
  for (index_t i = 0; i < count; ++i) {
    largest = std::max(largest, magnitude_bits(from[i]));
    to[i * step] = T(from[i] * scale);
  }
  return largest;
}

/// Fills the chunk with columns [begin, end) of 2^-e times the upper factor that R holds, and with zeros below the
/// diagonal down to the end of the diagonal block of order NB. `scratch` has room for n entries.
template <class S, class T>
Seen<S> fill(const Source<S>& R, index_t n, Uplo uplo, int e, index_t begin, index_t end, MatrixView<T> chunk,
             S* scratch) {
  Seen<S> seen;
  const S scale = std::scalbn(S(1), -e);
  const index_t inside = std::min(end, n);
  if (uplo == Uplo::upper) {
    for (index_t j = begin; j < inside; ++j) {
      const S* from = R.column(j, 0, j + 1, scratch);
      seen.largest = std::max(seen.largest, scale == 1 ? scaled_copy(from, j + 1, S(1), chunk.col(j - begin))
                                                       : scaled_copy(from, j + 1, scale, chunk.col(j - begin)));
    }
  } else if (begin < inside) {
    for (index_t i = 0; i < inside; ++i) {
      const index_t first = std::max(i, begin);
      const S* from = R.column(i, first, inside, scratch);
      seen.largest =
          std::max(seen.largest, scaled_copy(from, inside - first, scale, &chunk(i, first - begin), chunk.ld));
    }
  }
  for (index_t j = begin; j < end; ++j) {
    T* column = chunk.col(j - begin);
    if (j >= n) std::fill(column, column + j, T(0));
    if (j >= n) column[j] = T(1);
    std::fill(column + j + 1, column + (j / block_columns::NB + 1) * block_columns::NB, T(0));
    seen.bad_diagonal = seen.bad_diagonal || !is_normal(column[j]);
  }
  return seen;
}

/// An entry of the result that S cannot hold: an entry that is too large, or a diagonal entry that is no normal number.
template <class S>
struct Unfit {
  index_t row = -1, col = -1;  ///< place of the entry; row -1: there is no such entry
  S value = 0;

  Error error() const {
    return std::isfinite(value) ? vanished(row, value, std::numeric_limits<S>::min()) : overflow(row, col);
  }
};

/// Writes `scale` times the chunk to its place in `out`, and clears the other triangle there. Returns an entry that S
/// cannot hold, if there is one.
template <class S, class T>
Unfit<S> empty(MatrixView<const T> chunk, index_t begin, index_t end, index_t n, Uplo uplo, double scale,
                                  Sink<S>& out, S* scratch) {
  const bool as_it_is = std::is_same_v<S, T> && scale == 1;
  Unfit<S> unfit;
  // (row, col) is a place in the upper factor; the `count` entries are neighbours in a column of `out`.
  const auto convert = [&](index_t row, index_t count, index_t col) {
    const T* from = &chunk(row, col - begin);
    const bool along = uplo == Uplo::upper;
    for (index_t i = 0; i < count; ++i) {
      scratch[i] = S(from[along ? i : i * chunk.ld] * scale);
      if (!as_it_is && !std::isfinite(scratch[i]))
        unfit = along ? Unfit<S>{row + i, col, scratch[i]} : Unfit<S>{col + i, row, scratch[i]};
    }
    return scratch;
  };
  const index_t inside = std::min(end, n);
  if (uplo == Uplo::upper) {
    for (index_t j = begin; j < inside; ++j) {
      const T* from = chunk.col(j - begin);
      if (as_it_is) out.put(j, 0, j + 1, reinterpret_cast<const S*>(from));
      else out.put(j, 0, j + 1, convert(0, j + 1, j));
      out.clear(j, j + 1, n);
    }
  } else if (begin < inside) {
    for (index_t i = 0; i < inside; ++i) {
      const index_t first = std::max(i, begin);
      out.put(i, first, inside, convert(i, inside - first, first));
    }
    for (index_t j = begin; j < inside; ++j) out.clear(j, 0, j);
  }
  for (index_t j = begin; j < inside && unfit.row < 0; ++j)
    if (const S made = S(chunk(j, j - begin) * scale); !is_normal(made)) unfit = {j, j, made};
  return unfit;
}

}  // namespace gpucholmod::stream
