#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>

#include "base/factor_io.h"
#include "base/threads.h"

/// Whether numbers of scalar S can go to a factor of scalars T.
namespace gpucholmod {

/// The largest magnitude in rows [first, last) of one column. Throws not_finite, and overflow where it is too large for
/// T.
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

/// The same for V.
template <class T, class S>
double largest_in_V(MatrixView<const S> V) {
  double largest = 0;
  for (index_t q = 0; q < V.cols; ++q) largest = std::max(largest, require_column<T>("V", V.col(q), 0, V.rows, q));
  return largest;
}

/// The same for the triangle of A (n x n) that uplo names, by so many threads.
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
    look(0, n);  // which column is the first with an error
    throw;
  }
  return largest;
}

/// Looks at p columns X of a matrix that are to be its numbers at .. at + p - 1, see HeldFactor::insert().
/// Returns the largest norm of one of them in the factor, as far as the diagonal is positive. Throws not_finite, and
/// overflow where that is too large for T.
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

/// Returns the smallest entry of the diagonal of R (n x n) in T; where n is 0, infinity. Throws bad_diagonal.
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

/// Throws bad_diagonal unless the diagonal of S22 (p x p), which becomes that of a factor from number `at` on, consists
/// of normal numbers of T when it is divided by 2^e.
template <class T>
void require_inserted_diagonal(MatrixView<const double> S22, index_t at, int e) {
  for (index_t q = 0; q < S22.cols; ++q)
    if (const double value = S22(q, q); !is_normal(e == 0 ? T(value) : T(std::scalbn(value, -e))))
      throw vanished(at + q, value, std::scalbn(double(std::numeric_limits<T>::min()), e));
}

}  // namespace gpucholmod
