#include "modify/condition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace gpucholmod {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double sum_of_magnitudes(const double* x, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += std::abs(x[i]);
  return std::isfinite(sum) ? sum : infinite;
}

class NormEstimate {
 public:
  NormEstimate(index_t n, const Multiply& multiply) : n_(n), multiply_(multiply), is_known_(n) {}

  double result() {
    start();
    for (int step = 0; step < 5 && std::isfinite(found_); ++step)
      if (!improve()) break;
    return found_;
  }

 private:
  static constexpr index_t most = 8;

  void start() {
    std::vector<double> X(2 * n_);
    for (index_t i = 0; i < n_; ++i) {
      X[i] = 1 / double(n_);
      X[n_ + i] = (i % 2 == 0 ? 1 : -1) * (1 + double(i) / double(std::max<index_t>(1, n_ - 1))) * 2 / (3 * double(n_));
    }
    multiply_(X, 2);
    found_ = std::max(sum_of_magnitudes(X.data(), n_), sum_of_magnitudes(X.data() + n_, n_));
    signs_ = signs_of(X.data());
  }

  /// Looks at more columns of the matrix. Returns false if a further step would not raise the estimate.
  bool improve() {
    std::vector<double> slope = signs_;
    multiply_(slope, 1);
    if (sum_of_magnitudes(slope.data(), n_) == infinite) return found_ = infinite, false;
    const std::vector<index_t> at = largest(slope);
    if (at.empty()) return false;
    std::vector<double> X(n_ * index_t(at.size()));
    for (std::size_t q = 0; q < at.size(); ++q) X[at[q] + index_t(q) * n_] = 1;
    multiply_(X, index_t(at.size()));
    double best = -1;
    const double* column = nullptr;
    for (std::size_t q = 0; q < at.size(); ++q)
      if (const double size = sum_of_magnitudes(X.data() + index_t(q) * n_, n_); size > best) {
        best = size;
        column = X.data() + index_t(q) * n_;
      }
    if (best <= found_) return false;
    found_ = best;
    const std::vector<double> before = std::move(signs_);
    signs_ = signs_of(column);
    return signs_ != before;
  }

  /// Returns the places of the `most` largest magnitudes, without the places that have been looked at.
  std::vector<index_t> largest(const std::vector<double>& slope) {
    std::vector<index_t> order(n_);
    std::iota(order.begin(), order.end(), index_t(0));
    const auto end = order.begin() + std::min(most, n_);
    std::partial_sort(order.begin(), end, order.end(), [&](index_t i, index_t j) {
      return std::abs(slope[i]) != std::abs(slope[j]) ? std::abs(slope[i]) > std::abs(slope[j]) : i < j;
    });
    std::vector<index_t> at;
    for (auto i = order.begin(); i != end; ++i)
      if (!is_known_[*i]) at.push_back(*i);
    for (const index_t i : at) is_known_[i] = true;
    return at;
  }

  std::vector<double> signs_of(const double* x) const {
    std::vector<double> signs(n_);
    for (index_t i = 0; i < n_; ++i) signs[i] = x[i] < 0 ? -1 : 1;
    return signs;
  }

  index_t n_;
  const Multiply& multiply_;
  std::vector<char> is_known_;
  std::vector<double> signs_;
  double found_ = 0;
};

}  // namespace

double estimated_norm(index_t n, const Multiply& multiply) { return NormEstimate(n, multiply).result(); }

double reciprocal_condition(const HeldFactor& R) {
  const index_t n = R.order();
  if (n == 0) return 1;
  std::vector<double> diagonal(n);
  R.diagonal(diagonal.data());
  const auto [least, largest] = std::minmax_element(diagonal.begin(), diagonal.end());
  if (*least == 0) return 0;
  // Products are with A / s^2, s being a power of 2: squares of numbers near the ends of the range overflow or vanish.
  const double s = std::exp2(std::round(std::log2(*largest)));
  const auto times = [](std::vector<double>& X, double by) {
    for (double& x : X) x *= by;
  };
  const Multiply by_A = [&](std::vector<double>& X, index_t m) {
    times(X, 1 / s);
    R.multiply(TriangularProduct::plain, X.data(), m);
    times(X, 1 / s);
    R.multiply(TriangularProduct::transposed, X.data(), m);
  };
  const Multiply by_inverse = [&](std::vector<double>& X, index_t m) {
    R.solve(TriangularSolve::forward, X.data(), m);
    times(X, s);
    R.solve(TriangularSolve::back, X.data(), m);
    times(X, s);
  };
  const double condition = estimated_norm(n, by_A) * estimated_norm(n, by_inverse);
  return std::isfinite(condition) ? 1 / std::max(1.0, condition) : 0;
}

}  // namespace gpucholmod
