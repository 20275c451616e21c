#pragma once

#include <algorithm>
#include <vector>

#include "matrices.h"
#include "tests.h"

/// Matrices as a caller of the C interface has them: with leading dimensions above the order, and one triangle.
namespace gpucholmod::test {

constexpr double unused = -7.25;  ///< where nothing is to be read or written

/// A matrix with rows of `unused` below it; of a factor, the other triangle too.
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

/// R, upper, as it is stored; the other triangle is `unused`.
template <class S>
Stored<S> stored(const Stored<S>& R, bool lower) {
  Stored<S> A = lower ? Stored<S>(R.transpose()) : R;
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = 0; i < R.rows(); ++i)
      if (lower ? i < j : i > j) A(i, j) = S(unused);
  return A;
}
/// The upper factor that is stored so. The other triangle has to be as it was.
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
