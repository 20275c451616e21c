#pragma once

#include <cmath>
#include <string>

#include "base/factor_io.h"

/// Whether numbers of scalar S on the host can go to a factor of scalars T on the GPU.
namespace gpucholmod::cuda {

/// Throws not_finite, and overflow where a value is too large for T, in rows [first, last) of one column.
template <class T, class S>
void check_column(const char* argument, const S* column, index_t first, index_t last, index_t col) {
  if (std::isfinite(T(largest_in_column(argument, column, first, last, col)))) return;
  for (index_t i = first; i < last; ++i)
    if (!std::isfinite(T(column[i])))
      throw Error(ErrorCode::overflow,
                  std::string("'") + argument + "' has values too large for the precision asked for",
                  {{"argument", argument}, {"row", double(i + 1)}, {"col", double(col + 1)}});
}

/// The same for the triangle of A (n x n) that uplo names.
template <class T, class S>
void check_triangle(const char* argument, const S* A, index_t n, Uplo uplo) {
  for (index_t j = 0; j < n; ++j)
    check_column<T>(argument, A + j * n, uplo == Uplo::upper ? 0 : j, uplo == Uplo::upper ? j + 1 : n, j);
}

/// Throws bad_diagonal.
template <class T, class S>
void check_diagonal(const S* R, index_t n) {
  for (index_t j = 0; j < n; ++j)
    if (!(T(R[j + j * n]) > 0))
      throw Error(ErrorCode::bad_diagonal,
                  "'R' is not a Cholesky factor: its diagonal must be positive in the precision asked for, entry " +
                      std::to_string(j + 1) + " is " + text(R[j + j * n]),
                  {{"index", double(j + 1)}, {"value", double(R[j + j * n])}});
}

}  // namespace gpucholmod::cuda
