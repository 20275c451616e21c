#pragma once

#include "base/factor_io.h"

/// Whether numbers of scalar S can go to a factor of scalars T.
namespace gpucholmod {

/// The largest magnitude in rows [first, last) of one column. Throws not_finite, and overflow where it is too large for T.
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

/// The same for the triangle of A (n x n) that uplo names.
template <class T, class S>
double require_triangle(const char* argument, const S* A, index_t n, Uplo uplo) {
  double largest = 0;
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, uplo);
    largest = std::max(largest, require_column<T>(argument, A + j * n, first, last, j));
  }
  return largest;
}

/// Throws bad_diagonal.
template <class T, class S>
void require_diagonal(const S* R, index_t n) {
  for (index_t j = 0; j < n; ++j) {
    require_positive(R[j + j * n], j);
    require_not_vanished(T(R[j + j * n]), R[j + j * n], j);
  }
}

}  // namespace gpucholmod
