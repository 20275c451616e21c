#pragma once

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>

#include "modify/request.h"

/// Problems with known difficulties, made in long double and rounded once, and the measure of a result.
namespace gpucholmod::test {

using real = long double;
using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic>;
template <class S>
using Stored = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

template <class S>
struct Problem {
  Sign sign;
  Stored<S> R;  ///< n x n, upper
  Stored<S> V;  ///< n x k
};

inline Problem<double> problem(Sign sign, const Matrix& R, const Matrix& V) {
  return {sign, R.cast<double>(), V.cast<double>()};
}

inline double epsilon(Precision precision) { return precision == Precision::single ? 0x1p-23 : 0x1p-52; }

/// The same numbers with every standard library.
class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}
  real uniform() { return real(bits_() >> 11) * 0x1p-53L; }
  real normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586477L * uniform()); }
  Matrix uniform(index_t m, index_t n) { return Matrix::NullaryExpr(m, n, [this] { return uniform(); }); }
  Matrix normal(index_t m, index_t n) { return Matrix::NullaryExpr(m, n, [this] { return normal(); }); }

 private:
  std::mt19937_64 bits_;
};

/// Turns numbers that suit double into ones that are as hard for `eps`.
struct Level {
  double eps;
  double wide(double x) const { return std::pow(x, std::log(eps) / std::log(0x1p-52)); }  ///< a range, a condition
  double tiny(double x) const { return x * (eps / 0x1p-52); }                             ///< a distance from singular
};

inline Matrix factor(const Matrix& A) { return Eigen::LLT<Matrix>(A).matrixU(); }
inline Matrix orthonormal(const Matrix& M) {
  return Eigen::HouseholderQR<Matrix>(M).householderQ() * Matrix::Identity(M.rows(), M.cols());
}

/// Ten to the powers from .. to, in equal steps.
inline Matrix powers(real from, real to, index_t m) {
  return Matrix::NullaryExpr(
      m, 1, [=](Eigen::Index i) { return std::pow(10.0L, m == 1 ? to : from + (to - from) * i / (m - 1)); });
}

inline Matrix well_conditioned(index_t n, Random& random) {
  const Matrix M = random.normal(2 * n, n) / std::sqrt(2 * real(n));
  return factor(M.transpose() * M);
}

/// Factor of a matrix with eigenvalues from 1 down to 1 / condition, eigenvectors Q.
inline Matrix with_condition(real condition, const Matrix& Q) {
  const Matrix lambda = powers(0, -std::log10(condition), Q.cols());
  return factor(Q * lambda.asDiagonal() * Q.transpose());
}

inline Matrix random_with_condition(real condition, index_t n, Random& random) {
  return with_condition(condition, orthonormal(random.normal(n, n)));
}

/// Factor of the covariance of a smooth function at n points, plus `nugget`.
inline Matrix kernel(index_t n, real nugget, Random& random) {
  const Matrix x = random.uniform(n, 1);
  Matrix K(n, n);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) K(i, j) = std::exp(-50 * (x(i) - x(j)) * (x(i) - x(j))) + (i == j ? nugget : 0);
  return factor(K);
}

/// V to take away from R'R: V = R'P with all min(n, k) singular values of P equal to sqrt(1 - gap).
inline Problem<double> contraction(const Matrix& R, const Matrix& seed, real gap) {
  const Matrix P = seed.cols() <= seed.rows() ? orthonormal(seed) : Matrix(orthonormal(seed.transpose()).transpose());
  return problem(Sign::downdate, R, std::sqrt(1 - gap) * (R.transpose() * P));
}

/// The downdate that undoes the update of R by V.
inline Problem<double> undo(const Matrix& R, const Matrix& V) {
  return problem(Sign::downdate, factor(R.transpose() * R + V * V.transpose()), V);
}

/// R'R for an upper R, in long double.
template <class S>
Matrix gram(const Stored<S>& R_stored) {
  const Matrix R = R_stored.template cast<real>();
  Matrix A(R.cols(), R.cols());
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = 0; i <= j; ++i) {
      real sum = 0;
      for (index_t l = 0; l <= i; ++l) sum += R(l, i) * R(l, j);
      A(i, j) = A(j, i) = sum;
    }
  return A;
}

inline real norm_1(const Matrix& A) { return A.size() == 0 ? 0 : A.cwiseAbs().colwise().sum().maxCoeff(); }

/// ratio = ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1)), to be below 30.
class Residual {
 public:
  template <class S>
  explicit Residual(const Problem<S>& p) : size_(p.R.cols() + p.V.cols()) {
    const Matrix A = gram(p.R), V = p.V.template cast<real>(), VV = V * V.transpose();
    target_ = p.sign == Sign::update ? Matrix(A + VV) : Matrix(A - VV);
    scale_ = norm_1(A) + norm_1(VV);
  }
  template <class S>
  double ratio(const Stored<S>& R, double eps) const {
    if (!R.allFinite()) return std::numeric_limits<double>::infinity();
    return double(norm_1(gram(R) - target_) / (size_ * real(eps) * scale_));
  }
  const Matrix& target() const { return target_; }

 private:
  real size_, scale_;
  Matrix target_;
};

/// From 0, the last row of the first leading minor of A that is not positive definite; -1 where there is none.
inline index_t first_indefinite(Matrix A) {
  for (index_t i = 0; i < A.cols(); ++i) {
    if (!(A(i, i) > 0)) return i;
    const index_t m = A.cols() - i - 1;
    A.bottomRightCorner(m, m) -= A.col(i).tail(m) * A.row(i).tail(m) / A(i, i);
  }
  return -1;
}

}  // namespace gpucholmod::test
