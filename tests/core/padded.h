#pragma once

#include <algorithm>
#include <vector>

#include "matrices.h"
#include "tests.h"

/// Matrices as a caller of the C interface has them: with a leading dimension above the order, and with one triangle.
namespace gpucholmod::test {

constexpr double unused = -7.25;  ///< the value of entries that must not be read or written

/// A matrix with rows of `unused` below it. A factor holds `unused` in its other triangle, too.
template <class S>
struct Padded {
  index_t rows, ld;
  std::vector<S> data;

  Padded(const Stored<S>& A, index_t ld)
      : rows(A.rows()), ld(ld), data(std::max<index_t>(ld * A.cols(), 1), S(unused)) {
    for (index_t j = 0; j < A.cols(); ++j) std::copy_n(A.data() + j * rows, rows, data.data() + j * ld);
  }
  Stored<S> matrix(index_t m) const {
    Stored<S> A(m, m);
    for (index_t j = 0; j < m; ++j) std::copy_n(data.data() + j * ld, m, A.data() + j * m);
    return A;
  }
};

/// Returns the upper R as it is stored, with `unused` in the other triangle.
template <class S>
Stored<S> stored(const Stored<S>& R, bool lower) {
  Stored<S> A = lower ? Stored<S>(R.transpose()) : R;
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = 0; i < R.rows(); ++i)
      if (lower ? i < j : i > j) A(i, j) = S(unused);
  return A;
}
/// Returns the upper factor of a matrix as stored() returns it. Expects the other triangle to be unchanged.
template <class S>
Stored<S> upper(const Stored<S>& A, bool lower) {
  Stored<S> R = lower ? Stored<S>(A.transpose()) : A;
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = j + 1; i < R.rows(); ++i) {
      EXPECT_EQ(R(i, j), S(unused));
      R(i, j) = 0;
    }
  return R;
}

}  // namespace gpucholmod::test
