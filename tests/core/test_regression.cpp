#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "regression/rolling.h"

namespace gpucholmod::regression {
namespace {

/// Observations of p regressors, the first of which is 1, and one response, with column norms of very different size.
struct Data {
  index_t p, count;
  std::vector<double> x, y, w;

  Data(index_t p, index_t count, unsigned seed) : p(p), count(count), x(p * count), y(count), w(count) {
    std::mt19937 bits(seed);
    std::normal_distribution<double> normal;
    for (index_t i = 0; i < count; ++i) {
      double mean = 0;
      for (index_t j = 0; j < p; ++j) {
        const double size = std::pow(10.0, double(j % 3) - 1), value = j == 0 ? 1 : size * normal(bits);
        x[j + i * p] = value;
        mean += value / size;
      }
      y[i] = mean + normal(bits);
      w[i] = i % 7 == 3 ? 0 : 1 + double(i % 3);
    }
  }
  Rows rows() const { return {{x.data(), p, count, p}, {y.data(), 1, count, 1}, w.data()}; }
};

/// Returns the largest of |R'R - X'WX - diag(penalty)|_ij / (|x_i| |x_j|), in units of rounding.
double error_of(MatrixView<const double> R, const Rows& rows, const double* penalty) {
  const index_t p = R.cols;
  const auto entry = [&](index_t i, index_t j) {
    long double sum = penalty && i == j ? penalty[i] : 0;
    for (index_t q = 0; q < rows.count(); ++q) sum += (long double)rows.weight(q) * rows.x(i, q) * rows.x(j, q);
    return sum;
  };
  double worst = 0;
  for (index_t j = 0; j < p; ++j)
    for (index_t i = 0; i <= j; ++i) {
      long double sum = 0;
      for (index_t q = 0; q <= i; ++q) sum += (long double)R(q, i) * R(q, j);
      const long double size = std::sqrt(entry(i, i) * entry(j, j));
      worst = std::max(worst, double(std::abs(sum - entry(i, j)) / size) / 2.2e-16);
    }
  return worst;
}

Outcome run(const Place<double>& place, const double* V, const Request& asked) {
  return modify(place, V, asked, unwatched);
}
Request request() {
  Request made;
  made.backend = Backend::cpu;
  made.method = Method::blocked;
  made.threads = 1;
  return made;
}

TEST(Regression, DecomposedRowsGiveTheirFactorAndSums) {
  for (const index_t count : {0, 1, 3, 5, 6, 40})
    for (const bool with_penalty : {false, true}) {
      const Data data(5, count, 1);
      const std::vector<double> penalty{0, 1, 2, 0, 0.5};
      std::vector<double> memory(25, -1);
      const MatrixView<double> R{memory.data(), 5, 5, 5};
      const double* const given = with_penalty ? penalty.data() : nullptr;
      const Sides sides = decompose(data.rows(), given, Shift(), R);
      if (count >= 5) {
        EXPECT_LT(error_of(R, data.rows(), given), 40);
      }
      long double squares = 0, sum = sides.rss[0];
      for (index_t i = 0; i < count; ++i) squares += data.rows().weight(i) * data.y[i] * data.y[i];
      for (const double z : sides.z) sum += z * z;
      EXPECT_NEAR(double(sum), double(squares), 1e-13 * double(squares));
      for (index_t j = 0; j < 5; ++j) {
        EXPECT_GE(R(j, j), 0);
        for (index_t i = j + 1; i < 5; ++i) EXPECT_EQ(R(i, j), 0);
      }
    }
}

TEST(Regression, ColumnsThatDependOnOthersAreLeftOut) {
  Data data(4, 20, 2);
  for (index_t i = 0; i < 20; ++i) data.x[2 + i * 4] = 3 * data.x[1 + i * 4] - data.x[i * 4];
  std::vector<double> memory(16), fewer(9);
  const Sides sides = decompose(data.rows(), nullptr, Shift(), {memory.data(), 4, 4, 4});
  const Solution found = solve({memory.data(), 4, 4, 4}, sides, 1e-7, true);
  EXPECT_EQ(found.columns, (std::vector<index_t>{0, 1, 3}));
  EXPECT_TRUE(std::isnan(found.beta[2]));
  std::vector<double> x;
  for (index_t i = 0; i < 20; ++i)
    for (const index_t j : {0, 1, 3}) x.push_back(data.x[j + i * 4]);
  const Rows rows{{x.data(), 3, 20, 3}, data.rows().y, data.w.data()};
  const Sides of_fewer = decompose(rows, nullptr, Shift(), {fewer.data(), 3, 3, 3});
  const Solution expected = solve({fewer.data(), 3, 3, 3}, of_fewer, 1e-7, true);
  for (index_t j = 0; j < 3; ++j) EXPECT_NEAR(found.beta[found.columns[j]], expected.beta[j], 1e-11);
  EXPECT_NEAR(found.rss[0], expected.rss[0], 1e-11);
  for (index_t i = 0; i < 9; ++i) EXPECT_NEAR(std::abs(found.inverse[i]), std::abs(expected.inverse[i]), 1e-10);
}

/// Regressors whose squares leave the range of doubles: which columns depend on others, and the solution, are those of
/// regressors of an ordinary size.
TEST(Regression, ColumnsOfAnySize) {
  const index_t p = 4, count = 20;
  for (const bool depends : {false, true})
    for (const double size : {0x1p530, 0x1p-560}) {
      Data data(p, count, 2);
      for (index_t i = 0; depends && i < count; ++i)
        data.x[2 + i * p] = 3 * data.x[1 + i * p] - data.x[i * p];
      Data large = data;
      const double sizes[p] = {1, size, size, 1 / size};
      for (index_t i = 0; i < p * count; ++i) large.x[i] *= sizes[i % p];
      const auto solution = [&](const Data& of) {
        std::vector<double> R(p * p);
        const Sides sides = decompose(of.rows(), nullptr, Shift(), {R.data(), p, p, p});
        return solve({R.data(), p, p, p}, sides, 1e-7, true);
      };
      const Solution expected = solution(data), found = solution(large);
      ASSERT_EQ(found.columns, expected.columns);
      const index_t r = index_t(found.columns.size());
      EXPECT_EQ(r, depends ? 3 : 4);
      EXPECT_NEAR(found.rss[0], expected.rss[0], 1e-11);
      for (index_t i = 0; i < r; ++i) {
        const index_t j = found.columns[i];
        EXPECT_NEAR(found.beta[j] * sizes[j], expected.beta[j], 1e-11);
        for (index_t l = i; l < r; ++l)
          EXPECT_NEAR(std::abs(found.inverse[i + l * r] * sizes[j]), std::abs(expected.inverse[i + l * r]), 1e-10);
      }
    }
}

TEST(Regression, TheAccountBoundsWhatRemovedRowsHaveCost) {
  const index_t p = 6, window = 30, steps = 400;
  Data data(p, window + steps, 3);
  data.x[2 + 50 * p] = 1e4;
  data.y[90] = 1e6;
  std::vector<double> memory(2 * p * p);
  PlainFactor R(memory.data(), memory.data() + p * p, memory.data(), p, run);
  Regression fit;
  fit.begin(data.rows().block(0, window), nullptr, R);
  int decomposed = 0;
  for (index_t i = 0; i < steps; ++i) {
    const Rows kept = data.rows().block(i + 1, window);
    Step step;
    step.added = data.rows().block(window + i, 1);
    step.gone = data.rows().block(i, 1);
    step.kept = &kept;
    ASSERT_TRUE(fit.advance(step, R, request()));
    decomposed += fit.account.moved == 0;
    double bound = 0;
    for (index_t j = 0; j < p; ++j)
      bound = std::max(bound, std::sqrt(fit.account.squared_errors()[j]) / fit.account.sums()[j] / 2.2e-16);
    std::vector<double> shifted;
    EXPECT_LT(error_of(R.view(), fit.shift.apply(kept, shifted), nullptr), 40 + bound) << i;
  }
  EXPECT_GT(decomposed, 0);
  EXPECT_LT(decomposed, 10);
}

TEST(Regression, WithoutRowsAStepThatLosesDigitsIsNotTaken) {
  const index_t p = 3;
  Data data(p, 20, 4);
  data.w.assign(20, 1);
  for (const double size : {1.0, 1e9}) {
    data.x[1 + 5 * p] = size;
    std::vector<double> memory(2 * p * p);
    PlainFactor R(memory.data(), memory.data() + p * p, memory.data(), p, run);
    Regression fit;
    fit.begin(data.rows(), nullptr, R);
    Step step;
    step.added = data.rows().block(0, 0);
    step.gone = data.rows().block(5, 1);
    EXPECT_EQ(fit.advance(step, R, request()), size == 1);
  }
}

TEST(Regression, APathIsThatOfEveryWindow) {
  const index_t p = 5, count = 300, window = 24;
  Data data(p, count, 5);
  data.y[100] = 1e12;
  for (index_t i = 150; i < 200; ++i) data.x[4 + i * p] = data.x[3 + i * p];
  Windows windows;
  windows.rows = data.rows();
  for (index_t i = 0; i + window <= count; i += 1 + i % 3) {
    windows.first.push_back(i);
    windows.last.push_back(i + window);
  }
  const index_t r = index_t(windows.first.size());
  std::vector<double> beta(r * p), errors(r * p), sigma(r), r_squared(r), used(r), rank(r);
  roll(windows, request(), {beta.data(), errors.data(), sigma.data(), r_squared.data(), used.data(), rank.data()},
       unwatched);
  for (index_t i = 0; i < r; ++i) {
    std::vector<double> memory(p * p);
    const MatrixView<double> R{memory.data(), p, p, p};
    const Sides sides = decompose(data.rows().block(windows.first[i], window), nullptr, Shift(), R);
    const Solution expected = solve(R, sides, windows.tolerance, false);
    ASSERT_EQ(rank[i], double(expected.columns.size()));
    EXPECT_NEAR(sigma[i], std::sqrt(expected.rss[0] / (used[i] - rank[i])), 1e-9 * sigma[i]);
    if (windows.first[i] <= 100 && windows.last[i] > 100) continue;  // a window with the response 1e12
    for (index_t j = 0; j < p; ++j) {
      ASSERT_EQ(std::isnan(beta[i + j * r]), std::isnan(expected.beta[j]));
      if (std::isnan(expected.beta[j])) continue;
      EXPECT_NEAR(beta[i + j * r], expected.beta[j], 1e-9 * (1 + std::abs(expected.beta[j])));
    }
  }
}

}  // namespace
}  // namespace gpucholmod::regression
