#pragma once

#include <gpucholmod.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "matrices.h"

/// Numbers and measures that tests of gpucholmod.hpp share.
namespace gpucholmod::test {

/// Holds a factor R, columns V that are added, A = R'R and V V'.
template <class S>
struct Numbers {
  static constexpr index_t n = 20, k = 3;
  std::vector<S> R, V;
  std::vector<double> wide;  ///< V in doubles
  Matrix A, VV;

  Numbers() : R(n * n), V(n * k) {
    Random random(5);
    const Stored<S> factor = well_conditioned(n, random).cast<S>(),
                    columns = (random.normal(n, k) / 30).template cast<S>();
    std::copy_n(factor.data(), n * n, R.data());
    std::copy_n(columns.data(), n * k, V.data());
    wide.assign(V.begin(), V.end());
    A = gram(factor);
    VV = product(columns.template cast<real>(), columns.transpose().template cast<real>());
  }
};

/// Returns ||R'R - A||_1 / (n eps ||A||_1); of R, only the upper triangle is read.
template <class S>
double off(const std::vector<S>& R, const Matrix& A, double eps) {
  const index_t m = A.cols();
  Stored<S> upper = Stored<S>::Zero(m, m);
  for (index_t j = 0; j < m; ++j)
    for (index_t i = 0; i <= j; ++i) upper(i, j) = R[size_t(i + j * m)];
  return double(norm_1(gram(upper) - A)) / (double(norm_1(A)) * eps * double(m));
}
template <class S>
double off(const std::vector<S>& R, const Matrix& A) {
  return off(R, A, double(std::numeric_limits<S>::epsilon()));
}

/// Returns the code of the Failure that f() throws, or GPUCHOLMOD_OK.
template <class F>
gpucholmod_code code_of(F&& f) {
  try {
    f();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()), "");
    return failure.code();
  }
  return GPUCHOLMOD_OK;
}

}  // namespace gpucholmod::test
