#include "matrices.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>

namespace gpucholmod::test {

Problem<double> problem(Sign sign, const Matrix& R, const Matrix& V) {
  return {sign, R.cast<double>(), V.cast<double>()};
}

Matrix Random::uniform(index_t m, index_t n) {
  return Matrix::NullaryExpr(m, n, [this] { return uniform(); });
}
Matrix Random::normal(index_t m, index_t n) {
  return Matrix::NullaryExpr(m, n, [this] { return normal(); });
}

Matrix product(const Matrix& A, const Matrix& B) { return A * B; }
Matrix factor(const Matrix& A) { return Eigen::LLT<Matrix>(A).matrixU(); }
Matrix orthonormal(const Matrix& M) {
  return Eigen::HouseholderQR<Matrix>(M).householderQ() * Matrix::Identity(M.rows(), M.cols());
}

Matrix powers(real from, real to, index_t m) {
  return Matrix::NullaryExpr(
      m, 1, [=](Eigen::Index i) { return std::pow(10.0L, m == 1 ? to : from + (to - from) * i / (m - 1)); });
}

Matrix well_conditioned(index_t n, Random& random) {
  const Matrix M = random.normal(2 * n, n) / std::sqrt(2 * real(n));
  return factor(M.transpose() * M);
}

Matrix with_condition(real condition, const Matrix& Q) {
  const Matrix lambda = powers(0, -std::log10(condition), Q.cols());
  return factor(Q * lambda.asDiagonal() * Q.transpose());
}

Matrix random_with_condition(real condition, index_t n, Random& random) {
  return with_condition(condition, orthonormal(random.normal(n, n)));
}

Matrix kernel(index_t n, real nugget, Random& random) {
  const Matrix x = random.uniform(n, 1);
  Matrix K(n, n);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) K(i, j) = std::exp(-50 * (x(i) - x(j)) * (x(i) - x(j))) + (i == j ? nugget : 0);
  return factor(K);
}

Problem<double> contraction(const Matrix& R, const Matrix& seed, real gap) {
  const Matrix P = seed.cols() <= seed.rows() ? orthonormal(seed) : Matrix(orthonormal(seed.transpose()).transpose());
  return problem(Sign::downdate, R, std::sqrt(1 - gap) * (R.transpose() * P));
}

Problem<double> undo(const Matrix& R, const Matrix& V) {
  return problem(Sign::downdate, factor(R.transpose() * R + V * V.transpose()), V);
}

Matrix gram_of(const Matrix& R) {
  Matrix A(R.cols(), R.cols());
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = 0; i <= j; ++i) {
      real sum = 0;
      for (index_t l = 0; l <= i; ++l) sum += R(l, i) * R(l, j);
      A(i, j) = A(j, i) = sum;
    }
  return A;
}

real norm_1(const Matrix& A) { return A.size() == 0 ? 0 : A.cwiseAbs().colwise().sum().maxCoeff(); }

double substitution_residual(const Stored<double>& R, TriangularSolve which, const Stored<double>& B,
                             const Stored<double>& X) {
  if (B.size() == 0) return 0;
  const Matrix U = R.cast<real>(), M = which == TriangularSolve::forward ? Matrix(U.transpose()) : U,
               x = X.cast<real>(), b = B.cast<real>();
  return double(norm_1(product(M, x) - b) / (0x1p-52L * (norm_1(M) * norm_1(x) + norm_1(b))));
}

Residual::Residual(Sign sign, const Matrix& R, const Matrix& V) : size_(R.cols() + V.cols()) {
  const Matrix A = gram_of(R), VV = V * V.transpose();
  target_ = sign == Sign::update ? Matrix(A + VV) : Matrix(A - VV);
  scale_ = norm_1(A) + norm_1(VV);
}

double Residual::ratio_of(const Matrix& R, double eps) const {
  return double(norm_1(gram_of(R) - target_) / (size_ * real(eps) * scale_));
}

index_t first_indefinite(Matrix A) {
  for (index_t i = 0; i < A.cols(); ++i) {
    if (!(A(i, i) > 0)) return i;
    const index_t m = A.cols() - i - 1;
    A.bottomRightCorner(m, m) -= A.col(i).tail(m) * A.row(i).tail(m) / A(i, i);
  }
  return -1;
}

}  // namespace gpucholmod::test
