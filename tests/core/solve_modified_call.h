#pragma once

#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "cpu/host_factor.h"
#include "families.h"
#include "modify/solve_modified.h"

/// Solutions with many modifications of one factor, and their errors.
namespace gpucholmod::test {

using Doubles = Stored<double>;

/// A modification A_j = scale^2 A + V diag(w) V'.
struct Member {
  Doubles V;
  std::vector<double> w;
  double scale = 1;
};

inline Member signed_member(Sign sign, const Doubles& V) {
  return {V, std::vector<double>(V.cols(), sign == Sign::update ? 1 : -1)};
}

struct Found {
  Doubles solution, quadratic;
  std::vector<double> logdet;
  ModifiedOutcome outcome;
  index_t by_factor() const { return std::count(outcome.by_factor.begin(), outcome.by_factor.end(), char(1)); }
};

/// Solves with f members. b: n x m for all members, or n x m f, m columns for each.
inline Found solved(
    HeldFactor& R, const std::vector<Member>& members, const Doubles& b, index_t m, const Poll& poll = [](double) {}) {
  const index_t n = R.order(), f = index_t(members.size());
  ModifiedSystems systems;
  systems.asked.n = n;
  systems.asked.precision = R.precision();
  std::vector<double> V, w;
  for (const Member& member : members) {
    V.insert(V.end(), member.V.data(), member.V.data() + member.V.size());
    w.insert(w.end(), member.w.begin(), member.w.end());
    systems.k.push_back(member.V.cols());
    systems.scale.push_back(member.scale);
  }
  Found found{Doubles::Constant(n, m * f, NAN), Doubles::Constant(m, f, NAN), std::vector<double>(f, NAN), {}};
  systems.V = V.data();
  systems.weights = w.data();
  systems.m = m;
  systems.b = b.data();
  systems.own_b = b.cols() != m;
  systems.solution = found.solution.data();
  systems.quadratic = found.quadratic.data();
  systems.logdet = found.logdet.data();
  found.outcome = solve_modified(R, systems, poll);
  return found;
}
inline Found solved(const Doubles& R, const std::vector<Member>& members, const Doubles& b, index_t m) {
  const auto held = cpu::borrow(R.data(), R.cols(), cpu::ordinary_memory);
  return solved(*held, members, b, m);
}

/// The errors of a solution x, a quadratic form q and a determinant, in eps times the change that an error of A_j by D
/// makes, D = ||scale^2 A||_1 + ||V |W| V'||_1:
///
///   ||b - A_j x|| / (D ||x|| + ||b||) in the 1-norm, |q - q~| / (D |x| |x~| + q),
///   |log det - log det~| / (D tr(A_j^-1) + the sum of the logarithms' sizes).
struct Errors {
  double solution = 0, quadratic = 0, logdet = 0;
  void take(const Errors& other) {
    solution = std::max(solution, other.solution);
    quadratic = std::max(quadratic, other.quadratic);
    logdet = std::max(logdet, other.logdet);
  }
};

/// Holds A_j and the D of its errors.
struct Operand {
  Matrix A;
  real D;
  Operand(const Doubles& R, const Member& member) {
    const real s = real(member.scale) * real(member.scale);
    const Matrix V = member.V.cast<real>();
    Matrix W = V, sizes = V;
    for (index_t q = 0; q < V.cols(); ++q)
      W.col(q) *= real(member.w[size_t(q)]), sizes.col(q) *= std::abs(real(member.w[size_t(q)]));
    A = s * gram(R);
    D = norm_1(A) + norm_1(product(sizes, V.transpose()));
    A += product(W, V.transpose());
  }
};

inline Errors errors(const Doubles& R, const Member& member, const Matrix& b, const Matrix& x, const double* quadratic,
                     double logdet, double eps) {
  const auto [target, D] = Operand(R, member);
  const Eigen::LLT<Matrix> factor(target);
  // Weights may be so far apart that A_j is not positive definite in long double. Then only x is checked.
  const bool known = factor.info() == Eigen::Success;
  const Matrix exact = factor.solve(b), rest = b - product(target, x);
  Errors found;
  for (index_t i = 0; i < b.cols(); ++i) {
    const real size = D * norm_1(x.col(i)) + norm_1(b.col(i));
    found.solution = std::max(found.solution, double(norm_1(rest.col(i)) / (eps * size)));
    if (!known) continue;
    const real q = b.col(i).dot(exact.col(i));
    found.quadratic = std::max(found.quadratic, double(std::abs(q - real(quadratic[i])) /
                                                       (eps * (D * x.col(i).norm() * exact.col(i).norm() + q))));
  }
  if (!known) return found;
  const Matrix U = factor.matrixU(), inverse = factor.solve(Matrix::Identity(target.rows(), target.rows()));
  real sum = 0, sizes_of_logs = 0;
  for (index_t i = 0; i < target.rows(); ++i)
    sum += 2 * std::log(U(i, i)), sizes_of_logs += 1 + 2 * std::abs(std::log(U(i, i)));
  found.logdet = double(std::abs(sum - real(logdet)) / (eps * (D * inverse.trace() + sizes_of_logs)));
  return found;
}

/// Returns four right-hand sides: any, one in the range of V, one multiplied by A and so large where A is, and the last
/// column of R'.
inline Doubles sides(const Doubles& R, const Doubles& V, Random& random) {
  const index_t n = R.cols();
  Doubles b = random.normal(n, 4).cast<double>();
  if (V.cols() > 0) b.col(1) = V * random.normal(V.cols(), 1).cast<double>();
  b.col(2) = R.transpose() * (R * b.col(2)).eval();
  b.col(3) = R.transpose().col(n - 1);
  return b;
}

/// Returns the upper factor of p, with NaN below the diagonal, which must not be read.
inline Doubles factor_of(const Problem<double>& p) {
  Doubles R = p.R;
  for (index_t j = 0; j < R.cols(); ++j) R.col(j).tail(R.cols() - j - 1).setConstant(NAN);
  return R;
}
inline Doubles upper(const Doubles& R) { return R.triangularView<Eigen::Upper>(); }

/// Solves with members of the upper factor R, each of which has to be positive definite, and checks the errors. Returns
/// the number of members for which R was modified.
inline index_t expect_accurate(const Doubles& R, const std::vector<Member>& members, const std::string& what,
                               Precision precision = Precision::double_, double most = 40) {
  Random random(9);
  const Doubles b = sides(upper(R), members[0].V, random);
  const auto held = cpu::hold(R.data(), R.cols(), Uplo::upper, precision, 0, cpu::ordinary_memory);
  const Found found = solved(*held, members, b, b.cols());
  for (std::size_t j = 0; j < members.size(); ++j) {
    EXPECT_EQ(found.outcome.pivot[j], -1) << what << " " << j;
    if (found.outcome.pivot[j] >= 0) continue;
    const index_t first = index_t(j) * b.cols();
    const Errors e =
        errors(upper(R), members[j], b.cast<real>(), found.solution.middleCols(first, b.cols()).cast<real>(),
               found.quadratic.col(index_t(j)).data(), found.logdet[j], epsilon(precision));
    EXPECT_LT(e.solution, most) << what << " " << j;
    EXPECT_LT(e.quadratic, most) << what << " " << j;
    EXPECT_LT(e.logdet, most) << what << " " << j;
  }
  return found.by_factor();
}

/// Returns members with V of the problem, with V / 8, without V and, in an update, with 64 V.
inline std::vector<Member> around(const Problem<double>& p) {
  std::vector<Member> members = {signed_member(p.sign, p.V), signed_member(p.sign, p.V / 8),
                                 signed_member(p.sign, p.V.leftCols(0))};
  if (p.sign == Sign::update) members.push_back(signed_member(p.sign, p.V * 64));
  return members;
}

}  // namespace gpucholmod::test
