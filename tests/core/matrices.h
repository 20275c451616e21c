#pragma once

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <random>

#include "base/held_factor.h"
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

Problem<double> problem(Sign sign, const Matrix& R, const Matrix& V);

inline double epsilon(Precision precision) { return precision == Precision::single ? 0x1p-23 : 0x1p-52; }

/// Draws random numbers, the same with every standard library.
class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}
  real uniform() { return real(bits_() >> 11) * 0x1p-53L; }
  real normal() { return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(6.283185307179586477L * uniform()); }
  Matrix uniform(index_t m, index_t n);
  Matrix normal(index_t m, index_t n);

 private:
  std::mt19937_64 bits_;
};

/// Converts numbers that suit double to numbers that are as hard for `eps`.
struct Level {
  double eps;
  /// Converts a range or a condition.
  double wide(double x) const { return std::pow(x, std::log(eps) / std::log(0x1p-52)); }
  /// Converts a distance from singular.
  double tiny(double x) const { return x * (eps / 0x1p-52); }
};

Matrix product(const Matrix& A, const Matrix& B);
Matrix factor(const Matrix& A);
Matrix orthonormal(const Matrix& M);

/// Returns ten to m powers between `from` and `to`, in equal steps.
Matrix powers(real from, real to, index_t m);

Matrix well_conditioned(index_t n, Random& random);

/// Returns the factor of a matrix with eigenvalues from 1 down to 1 / condition and eigenvectors Q.
Matrix with_condition(real condition, const Matrix& Q);
Matrix random_with_condition(real condition, index_t n, Random& random);

/// Returns the factor of the covariance of a smooth function at n points, plus `nugget`.
Matrix kernel(index_t n, real nugget, Random& random);

/// Returns the downdate of R'R by V = R'P, all min(n, k) singular values of P being sqrt(1 - gap).
Problem<double> contraction(const Matrix& R, const Matrix& seed, real gap);

/// Returns the downdate that undoes the update of R by V.
Problem<double> undo(const Matrix& R, const Matrix& V);

/// Returns R'R for an upper R.
Matrix gram_of(const Matrix& R);
template <class S>
Matrix gram(const Stored<S>& R) {
  return gram_of(R.template cast<real>());
}

real norm_1(const Matrix& A);

/// Returns ||M X - B||_1 / (2^-52 (||M||_1 ||X||_1 + ||B||_1)) of one substitution in double; M is R, or R' forward.
double substitution_residual(const Stored<double>& R, TriangularSolve which, const Stored<double>& B,
                             const Stored<double>& X);

/// Computes ratio = ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1)), which should be below 30.
class Residual {
 public:
  template <class S>
  explicit Residual(const Problem<S>& p) : Residual(p.sign, p.R.template cast<real>(), p.V.template cast<real>()) {}
  template <class S>
  double ratio(const Stored<S>& R, double eps) const {
    if (!R.allFinite()) return std::numeric_limits<double>::infinity();
    return ratio_of(R.template cast<real>(), eps);
  }
  const Matrix& target() const { return target_; }

 private:
  Residual(Sign sign, const Matrix& R, const Matrix& V);
  double ratio_of(const Matrix& R, double eps) const;

  real size_, scale_;
  Matrix target_;
};

/// Returns the last row, from 0, of the first leading minor of A that is not positive definite; -1 if there is none.
index_t first_indefinite(Matrix A);

}  // namespace gpucholmod::test
