#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>

#include "modify_storage.h"

/// The modifications that the contract (modify_contract.h) asks of a storage, and the checks of their results.
namespace gpucholmod::test {

inline Doubles rounded(const Matrix& A, Precision precision) {
  return precision == Precision::single ? Doubles(A.cast<float>().cast<double>()) : Doubles(A.cast<double>());
}

enum class Change { update, downdate, mixed, weighted };
const std::vector<Change> all_changes = {Change::update, Change::downdate, Change::mixed, Change::weighted};
inline std::string text(Change change) {
  return std::array{"update", "downdate", "mixed", "weighted"}[std::size_t(change)];
}

/// Returns the weights of k columns: of one sign, sorted signs, or powers of 4 and 0 with both signs in turn.
inline std::vector<double> weights_of(Change change, index_t k) {
  constexpr double some[] = {-1, 4, 0, -0.25, 1};
  std::vector<double> w(k, change == Change::downdate ? -1 : 1);
  if (change == Change::mixed) std::fill(w.end() - (k + 1) / 2, w.end(), -1.0);
  for (index_t q = 0; q < k && change == Change::weighted; ++q) w[q] = some[q % 5];
  return w;
}

inline std::vector<double> as_vector(const Doubles& A) { return {A.data(), A.data() + A.size()}; }

/// A factor, and a modification of it that is possible.
struct ContractProblem {
  Doubles R;
  Modification asked;

  /// Makes a problem. The columns of V that are taken away, and their right-hand sides, have been added to the factor
  /// before, in long double.
  ContractProblem(index_t n, index_t k, Change change, Precision precision, double scale = 1) {
    Random random(17);
    asked.weights = weights_of(change, k);
    asked.scale = scale;
    const Matrix R0 = well_conditioned(n, random), z0 = random.normal(n, 2), Y = random.normal(2, k);
    Matrix V = random.normal(n, k) / std::sqrt(real(std::max<index_t>(n, 1))), A = gram_of(R0),
           b = product(R0.transpose(), z0);
    std::vector<real> squares = {3 + z0.col(0).squaredNorm(), 0.5L + z0.col(1).squaredNorm()};
    for (index_t q = 0; q < k; ++q) {
      const real w = asked.weights[q];
      if (w != 0) V.col(q) /= std::sqrt(std::abs(w));
      if (w >= 0) continue;
      A -= w * V.col(q) * V.col(q).transpose();
      b -= w * V.col(q) * Y.col(q).transpose();
      for (index_t j = 0; j < 2; ++j) squares[j] -= w * Y(j, q) * Y(j, q);
    }
    const Matrix exact = factor(A), z = exact.transpose().triangularView<Eigen::Lower>().solve(b);
    R = rounded(exact, precision);
    asked.V = rounded(scale * V, precision);
    asked.sides.m = 2;
    asked.sides.z = as_vector(rounded(z, precision));
    asked.sides.Y = as_vector(rounded(scale * Y, precision));
    for (index_t j = 0; j < 2; ++j) asked.sides.rss.push_back(double(squares[j] - z.col(j).squaredNorm()));
  }
  Modification without_sides() const {
    Modification all = asked;
    all.sides = {};
    return all;
  }
};
/// Returns a problem, which is made only once: all storages ask for the same problems.
inline const ContractProblem& contract_problem(index_t n, index_t k, Change change, Precision precision,
                                               double scale = 1) {
  static std::map<std::tuple<index_t, index_t, Change, Precision, double>, ContractProblem> all;
  const auto key = std::tuple(n, k, change, precision, scale);
  const auto found = all.find(key);
  return found != all.end() ? found->second
                            : all.emplace(key, ContractProblem(n, k, change, precision, scale)).first->second;
}

inline Matrix z_of(const OwnedRightHandSides& sides) {
  return Eigen::Map<const Doubles>(sides.z.data(), index_t(sides.z.size()) / sides.m, sides.m).cast<real>();
}

/// Expects, in long double, with W = diag(weights) and b~ = scale^2 R'z + V W Y',
///
///   ||R~'z~ - b~||_1 / (eps (scale^2 || |R'||z| ||_1 + || |V||W||Y'| ||_1)) < 40
///   rss~ = scale^2 (rss + ||z||^2) + the sum of weights y^2 - ||R~'^-1 b~||^2, to 40 eps times its terms.
///
/// target: A~.
inline void expect_sides(const Doubles& before, const Modification& asked, const Matrix& target, const Doubles& after,
                         const OwnedRightHandSides& sides, double eps) {
  const index_t n = before.cols(), k = asked.k(), m = asked.sides.m;
  const real square = real(asked.scale) * asked.scale;
  const Matrix W = Eigen::Map<const Doubles>(asked.weights.data(), k, 1).cast<real>().asDiagonal();
  const Matrix R = before.cast<real>(), now = after.cast<real>(), VW = product(asked.V.cast<real>(), W);
  const Matrix z = z_of(asked.sides), Y = Eigen::Map<const Doubles>(asked.sides.Y.data(), m, k).cast<real>();
  const Matrix b = square * product(R.transpose(), z) + product(VW, Y.transpose());
  Matrix exact(0, m);
  if (n > 0) {
    const real size = square * norm_1(product(R.transpose().cwiseAbs(), z.cwiseAbs())) +
                      norm_1(product(VW.cwiseAbs(), Y.transpose().cwiseAbs()));
    EXPECT_LT(double(norm_1(product(now.transpose(), z_of(sides)) - b) / (eps * size)), 40);
    exact = factor(target).transpose().triangularView<Eigen::Lower>().solve(b);
  }
  for (index_t j = 0; j < m; ++j) {
    real there = square * (asked.sides.rss[j] + z.col(j).squaredNorm()), terms = there;
    for (index_t q = 0; q < k; ++q) {
      there += W(q, q) * Y(j, q) * Y(j, q);
      terms += std::abs(W(q, q)) * Y(j, q) * Y(j, q);
    }
    EXPECT_NEAR(sides.rss[j], double(there - exact.col(j).squaredNorm()), 40 * eps * double(terms)) << "rss " << j;
  }
}

/// Expects a positive diagonal and, in long double, with W = diag(weights) and A~ = scale^2 R'R + V W V',
///
///   ratio = ||R~'R~ - A~||_1 / ((n + k) eps (scale^2 ||R'R||_1 + ||V |W| V'||_1)) < 30,
///
/// and the right-hand sides of A~.
inline void expect_modified(const Doubles& before, const Modification& asked, const Doubles& after,
                            const OwnedRightHandSides& sides, double eps) {
  const index_t n = before.cols(), k = asked.k();
  ASSERT_EQ(after.cols(), n);
  ASSERT_TRUE(after.allFinite());
  for (index_t j = 0; j < n; ++j) EXPECT_GT(after(j, j), 0);
  const real square = real(asked.scale) * asked.scale;
  const Matrix W = Eigen::Map<const Doubles>(asked.weights.data(), k, 1).cast<real>().asDiagonal();
  const Matrix V = asked.V.cast<real>(), A = gram(before);
  const Matrix target = square * A + product(product(V, W), V.transpose());
  const real size = square * norm_1(A) + norm_1(product(product(V, W.cwiseAbs()), V.transpose()));
  if (n > 0) { EXPECT_LT(double(norm_1(gram(after) - target) / (real(n + k) * eps * size)), 30); }
  if (asked.sides.m > 0) expect_sides(before, asked, target, after, sides, eps);
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), sizeof(double) * a.size()) == 0);
}
inline bool same_bits(const OwnedRightHandSides& a, const OwnedRightHandSides& b) {
  return same_bits(a.z, b.z) && same_bits(a.rss, b.rss);
}

}  // namespace gpucholmod::test
