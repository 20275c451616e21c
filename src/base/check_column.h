#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>

#include "base/factor_io.h"
#include "base/threads.h"

/// Checks of numbers of scalar S that are to be stored in a factor of scalars T.
namespace gpucholmod {

/// Returns the largest magnitude in rows [first, last) of one column. Throws not_finite, and throws overflow if a
/// number is too large for T.
template <class T, class S>
double require_column(const char* argument, const S* column, index_t first, index_t last, index_t col) {
  const S largest = largest_of(argument, column + first, last - first, first, col);
  for (index_t i = first; !std::isfinite(T(largest)) && i < last; ++i)
    if (!std::isfinite(T(column[i])))
      throw Error(ErrorCode::overflow,
                  std::string("'") + argument + "' has values too large for the precision asked for",
                  {{"argument", argument}, {"row", double(i + 1)}, {"col", double(col + 1)}});
  return double(largest);
}

/// Returns the largest magnitude in V. Throws what require_column() throws.
template <class T, class S>
double largest_in_V(MatrixView<const S> V) {
  double largest = 0;
  for (index_t q = 0; q < V.cols; ++q) largest = std::max(largest, require_column<T>("V", V.col(q), 0, V.rows, q));
  return largest;
}

/// Returns the largest magnitude in the triangle of A (n x n) that uplo names; `threads` threads look for it. Throws
/// what require_column() throws.
template <class T, class S>
double require_triangle(const char* argument, const S* A, index_t n, Uplo uplo, int threads = 1) {
  std::atomic<double> largest{0};
  const auto look = [&](index_t begin, index_t end) {
    double most = 0;
    for (index_t j = begin; j < end; ++j) {
      const auto [first, last] = rows_of(j, n, uplo);
      most = std::max(most, require_column<T>(argument, A + j * n, first, last, j));
    }
    double before = largest;
    while (before < most && !largest.compare_exchange_weak(before, most)) {}
  };
  if (threads == 1) {
    look(0, n);
    return largest;
  }
  try {
    for_columns(n, threads, look, [] {}, 16);
  } catch (const Error&) {
    look(0, n);  // finds the first column with an error
    throw;
  }
  return largest;
}

/// Checks p columns X of a matrix that are to become its columns at .. at + p - 1 (see HeldFactor::insert()). Returns
/// the largest norm that one of these columns has in the factor; a column with a diagonal entry below 0 counts as 0.
/// Throws not_finite, and throws overflow if a norm is too large for T.
template <class T>
double require_inserted(MatrixView<const double> X, index_t at) {
  double bound = 0;
  for (index_t q = 0; q < X.cols; ++q) {
    const double* const column = X.col(q);
    require_column<double>("X", column, 0, at + q + 1, q);
    require_column<double>("X", column, at + X.cols, X.rows, q);
    const double norm = std::sqrt(std::max(column[at + q], 0.0));
    if (!std::isfinite(T(norm)))
      throw Error(ErrorCode::overflow, "'X' has values too large for the precision of the factor",
                  {{"argument", "X"}, {"row", double(at + q + 1)}, {"col", double(q + 1)}});
    bound = std::max(bound, norm);
  }
  return bound;
}

/// Returns the smallest entry of the diagonal of R (n x n) in T, or infinity if n is 0. Throws bad_diagonal unless
/// every entry is a positive normal number of T.
template <class T, class S>
double require_diagonal(const S* R, index_t n) {
  double least = std::numeric_limits<double>::infinity();
  for (index_t j = 0; j < n; ++j) {
    const S value = R[j + j * n];
    require_positive(value, j);
    require_not_vanished(T(value), value, j);
    least = std::min(least, double(T(value)));
  }
  return least;
}

/// Throws bad_diagonal unless every entry of the diagonal of S22 (p x p), divided by 2^e, is a positive normal number
/// of T. These entries become entries `at` .. of the diagonal of a factor.
template <class T>
void require_inserted_diagonal(MatrixView<const double> S22, index_t at, int e) {
  for (index_t q = 0; q < S22.cols; ++q)
    if (const double value = S22(q, q); !is_normal(e == 0 ? T(value) : T(std::scalbn(value, -e))))
      throw vanished(at + q, value, std::scalbn(double(std::numeric_limits<T>::min()), e));
}

}  // namespace gpucholmod
