#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <atomic>

#include "call.h"
#include "cpu/host_factor.h"
#include "families.h"
#include "modify/solve_modified.h"

/// Many modifications of one factor, solved with.
namespace gpucholmod::test {
namespace {

using Doubles = Stored<double>;

/// One of them: A_j = scale^2 A + V diag(w) V'.
struct Member {
  Doubles V;
  std::vector<double> w;
  double scale = 1;
};

Member signed_member(Sign sign, const Doubles& V) { return {V, std::vector<double>(V.cols(), sign == Sign::update ? 1 : -1)}; }

struct Found {
  Doubles solution, quadratic;
  std::vector<double> logdet;
  ModifiedOutcome outcome;
  index_t by_factor() const { return std::count(outcome.by_factor.begin(), outcome.by_factor.end(), char(1)); }
};

std::shared_ptr<void> memory(std::size_t bytes) { return {::operator new(bytes), [](void* data) { ::operator delete(data); }}; }

/// b: n x m for all, or n x m f.
Found solved(HeldFactor& R, const std::vector<Member>& members, const Doubles& b, index_t m, const Poll& poll = [](double) {}) {
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
Found solved(const Doubles& R, const std::vector<Member>& members, const Doubles& b, index_t m) {
  const auto held = cpu::borrow(R.data(), R.cols(), memory);
  return solved(*held, members, b, m);
}

/// What is wrong with a solution, a quadratic form and a determinant, in eps of what an error of A_j by eps D makes of them,
/// D = ||scale^2 A||_1 + ||V |W| V'||_1: ||b - A_j x|| / (D ||x|| + ||b||) in the 1-norm, |q - q~| / (D |x| |x~| + q), and
/// |log det - log det~| / (D tr(A_j^-1) + the sum of the logarithms' sizes).
struct Errors {
  double solution = 0, quadratic = 0, logdet = 0;
  void take(const Errors& other) {
    solution = std::max(solution, other.solution);
    quadratic = std::max(quadratic, other.quadratic);
    logdet = std::max(logdet, other.logdet);
  }
};

Errors errors(const Doubles& R, const Member& member, const Matrix& b, const Matrix& x, const double* quadratic, double logdet, double eps) {
  const real s = real(member.scale) * real(member.scale);
  const Matrix A = gram(R), V = member.V.cast<real>();
  Matrix W = V, sizes = V;
  for (index_t q = 0; q < V.cols(); ++q) W.col(q) *= real(member.w[size_t(q)]), sizes.col(q) *= std::abs(real(member.w[size_t(q)]));
  const Matrix target = s * A + product(W, V.transpose());
  const real D = s * norm_1(A) + norm_1(product(sizes, V.transpose()));
  const Eigen::LLT<Matrix> factor(target);
  EXPECT_EQ(factor.info(), Eigen::Success);
  const Matrix exact = factor.solve(b), rest = b - product(target, x);
  Errors found;
  for (index_t i = 0; i < b.cols(); ++i) {
    const real q = b.col(i).dot(exact.col(i));
    found.solution = std::max(found.solution, double(norm_1(rest.col(i)) / (eps * (D * norm_1(x.col(i)) + norm_1(b.col(i))))));
    found.quadratic = std::max(found.quadratic, double(std::abs(q - real(quadratic[i])) / (eps * (D * x.col(i).norm() * exact.col(i).norm() + q))));
  }
  const Matrix U = factor.matrixU(), inverse = factor.solve(Matrix::Identity(A.rows(), A.rows()));
  real sum = 0, sizes_of_logs = 0;
  for (index_t i = 0; i < A.rows(); ++i) sum += 2 * std::log(U(i, i)), sizes_of_logs += 1 + 2 * std::abs(std::log(U(i, i)));
  found.logdet = double(std::abs(sum - real(logdet)) / (eps * (D * inverse.trace() + sizes_of_logs)));
  return found;
}

/// Right-hand sides: any, one in the range of V, one that is a column of A_j's operand, and one in R's weakest direction.
Doubles sides(const Doubles& R, const Doubles& V, Random& random) {
  const index_t n = R.cols();
  Doubles b = random.normal(n, 4).cast<double>();
  if (V.cols() > 0) b.col(1) = V * random.normal(V.cols(), 1).cast<double>();
  b.col(2) = R.transpose() * (R * b.col(2)).eval();
  b.col(3) = R.transpose() * Doubles::Unit(n, n - 1);
  return b;
}

Errors measured(const Problem<double>& p, index_t& by_factor) {
  Random random(9);
  const Doubles R = p.R.triangularView<Eigen::Upper>();
  const std::vector<Member> members = {signed_member(p.sign, p.V)};
  const Doubles b = sides(R, p.V, random);
  const Found found = solved(R, members, b, b.cols());
  by_factor += found.by_factor();
  if (found.outcome.pivot[0] >= 0) return {-1, -1, -1};
  return errors(R, members[0], b.cast<real>(), found.solution.cast<real>(), found.quadratic.data(), found.logdet[0], 0x1p-52);
}

TEST(SolveModified, Measure) {
  const auto show = [](const std::string& name, Sign sign, index_t n, index_t k, const Problem<double>& p) {
    index_t by_factor = 0;
    const Errors e = measured(p, by_factor);
    std::printf("%-30s %s n %3d k %2d: %9.3g %9.3g %9.3g %s\n", name.c_str(), sign == Sign::update ? "up  " : "down", int(n), int(k), e.solution, e.quadratic, e.logdet, by_factor ? "factor" : "");
  };
  for (const index_t n : {10, 65, 150})
    for (const index_t k : {1, 5, 16}) {
      if (k > n) continue;
      for (const Family& family : families)
        for (const Sign sign : signs) {
          Random random(3);
          const Level level{0x1p-52};
          const Matrix R = family.factor(n, level, random);
          show(family.name, sign, n, k, family.make(sign, R, k, level, random));
        }
      if (n < 65) continue;
      for (const Case& c : cases) {
        Random random(4);
        const Problem<double> p = c.make(n, k, Level{0x1p-52}, random);
        show(c.name, p.sign, n, k, p);
      }
    }
}

}  // namespace
}  // namespace gpucholmod::test
