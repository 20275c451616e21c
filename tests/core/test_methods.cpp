#include <gtest/gtest.h>

#include "call.h"
#include "cpu/rotation.h"
#include "families.h"

/// Accuracy of every method: for each result
///
///   ratio = ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1)) < 30
///
/// in long double, eps the machine epsilon of the precision computed in. The worst ratios are in the XML report.
namespace gpucholmod::test {
namespace {

const index_t sizes[] = {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 131, 200};

std::vector<index_t> ranks(index_t n) {
  std::vector<index_t> k{1, 2, 3, 4, 5, 15, 16, 17, 33};
  if (n >= 31 && n <= 65) k.push_back(n + 3);
  return k;
}

const char* text(Precision precision) { return precision == Precision::single ? "single" : "double"; }
const char* text(Sign sign) { return sign == Sign::update ? "update" : "downdate"; }

/// Keeps the worst ratio of each way.
class Accuracy : public testing::Test {
 protected:
  void measure(const Problem<double>& p, Precision precision) {
    const Residual residual(p);
    for (int w = 0; w < 4; ++w) {
      const Result<double> result = call(p, by(ways[w], precision));
      const std::string where = std::string(ways[w].name) + ", n = " + std::to_string(p.R.cols()) +
                                ", k = " + std::to_string(p.V.cols());
      ASSERT_EQ(result.outcome.pivot, -1) << where;
      const double ratio = residual.ratio(result.R, epsilon(precision));
      EXPECT_LT(ratio, 30) << where;
      EXPECT_LT(ratio * (p.R.cols() + p.V.cols()), 40) << where << ": n + k hides a loss of accuracy";
      worst_[w] = std::max(worst_[w], ratio);
    }
  }
  void TearDown() override {
    for (int w = 0; w < 4; ++w) RecordProperty(ways[w].name, std::to_string(worst_[w]));
  }

 private:
  double worst_[4] = {};
};

class Families : public Accuracy, public testing::WithParamInterface<std::tuple<Family, Sign, Precision>> {};

TEST_P(Families, ResidualRatio) {
  const auto& [family, sign, precision] = GetParam();
  const Level level{epsilon(precision)};
  Random random(1);
  for (const index_t n : sizes) {
    const Matrix R = family.factor(n, level, random);
    for (const index_t k : ranks(n)) measure(family.make(sign, R, k, level, random), precision);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Families,
                         testing::Combine(testing::ValuesIn(families), testing::ValuesIn(signs),
                                          testing::ValuesIn(precisions)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + text(std::get<1>(info.param)) +
                                  "_" + text(std::get<2>(info.param));
                         });

class Cases : public Accuracy, public testing::WithParamInterface<std::tuple<Case, Precision>> {};

TEST_P(Cases, ResidualRatio) {
  const auto& [which, precision] = GetParam();
  Random random(2);
  for (const index_t n : {130, 200})
    for (const index_t k : {1, 16}) measure(which.make(n, k, Level{epsilon(precision)}, random), precision);
}

INSTANTIATE_TEST_SUITE_P(Of, Cases, testing::Combine(testing::ValuesIn(cases), testing::ValuesIn(precisions)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + text(std::get<1>(info.param));
                         });

/// Scales at which squares of the entries, or the entries themselves as floats, are out of range.
TEST(Range, ResidualRatioFarFromOne) {
  Random random(7);
  const Matrix R = well_conditioned(70, random), V = random.normal(70, 5);
  for (const Problem<double>& p : {problem(Sign::update, R, V), undo(R, V)})
    for (const double scale : {1e15, 1e-15, 1e60, 1e-60, 1e170, 1e-170, 1e300, 1e-300})
      for (const Precision precision : precisions)
        for (const Way& way : ways) {
          const Problem<double> scaled{p.sign, p.R * scale, p.V * scale};
          const Result<double> result = call(scaled, by(way, precision));
          ASSERT_EQ(result.outcome.pivot, -1) << way.name << " at " << scale;
          EXPECT_LT(Residual(scaled).ratio(result.R, epsilon(precision)), 30) << way.name << " at " << scale;
        }
}

TEST(Range, ResidualRatioWhereVAndRDiffer) {
  Random random(8);
  const Matrix R = well_conditioned(70, random), V = random.normal(70, 5);
  for (const double scale : {1e30, 1e-30, 1e170, 1e-170})
    for (const Precision precision : precisions)
      for (const Way& way : ways) {
        if (precision == Precision::single && scale > 1e100) continue;  // R vanishes beside V: bad_diagonal
        const Problem<double> p = problem(Sign::update, R, V * real(scale));
        EXPECT_LT(Residual(p).ratio(call(p, by(way, precision)).R, epsilon(precision)), 30) << way.name << " " << scale;
      }
}

/// R = diag(1, r), V' = (0, v): |R~_22 - rho| < 4 eps rho, rho = sqrt(r^2 + sigma v^2), however small r is beside 1,
/// and however close v is to it.
TEST(Range, ASmallEntryKeepsItsOwnScale) {
  for (const Sign sign : signs)
    for (const double r : {1.0, 0.7, 1e-30, 1e-170, 1e-300})
      for (const double v : {0.5 * r, -0.9 * r, (1 - 1e-6) * r, (1 - 0x1p-50) * r})
        for (const Way& way : ways) {
          const Problem<double> p{sign, Eigen::Vector2d(1, r).asDiagonal(), Eigen::Vector2d(0, v)};
          const Result<double> result = call(p, by(way));
          ASSERT_EQ(result.outcome.pivot, -1) << way.name;
          const real square = sign == Sign::update ? real(r) * r + real(v) * v : (real(r) - v) * (real(r) + v);
          const real rho = std::sqrt(square);
          EXPECT_LT(std::abs(result.R(1, 1) - rho), 4 * 0x1p-52L * rho) << way.name << ", r " << r << ", v " << v;
        }
}

/// Checks V for which P = R^-T V has small rows but for row `pivot`. Leading minors of A - VV' = R'(I - PP')R are
/// positive up to order `pivot`, and the next minor is not.
TEST(Pivot, IsTheFirstLeadingMinorThatIsNotPositive) {
  Random random(9);
  const index_t n = 131;
  const Matrix R = well_conditioned(n, random);
  for (const index_t pivot : {0, 1, 7, 8, 31, 32, 63, 64, 100, 130})
    for (const index_t k : {1, 3, 16}) {
      Matrix P = random.normal(n, k) / (4 * std::sqrt(real(n * k)));
      P.row(pivot) *= 1.5 / P.row(pivot).norm();
      const Problem<double> p = problem(Sign::downdate, R, product(R.transpose(), P));
      ASSERT_EQ(first_indefinite(Residual(p).target()), pivot);
      for (const Precision precision : precisions)
        for (const Way& way : ways)
          EXPECT_EQ(call(p, by(way, precision)).outcome.pivot, pivot) << way.name << ", k " << k;
    }
}

/// Checks V = R'P with P'P = (1 - gap) I: A - VV' is positive definite exactly if gap > 0. As the last k rows of P are
/// large, the first minor that fails is clearly that of order n - k + 1.
TEST(Pivot, TellsJustUnderOneFromJustOver) {
  Random random(10);
  for (const index_t n : {16, 33, 64, 131, 200})
    for (const index_t k : {1, 16}) {
      const Matrix R = well_conditioned(n, random);
      Matrix seed = random.normal(n, k) / (8 * std::sqrt(real(n * k)));
      seed.bottomRows(k) += Matrix::Identity(k, k);
      for (const Precision precision : precisions) {
        const double gap = Level{epsilon(precision)}.wide(1e-8);
        const Problem<double> under = contraction(R, seed, gap), over = contraction(R, seed, -gap);
        ASSERT_EQ(first_indefinite(Residual(under).target()), -1);
        ASSERT_EQ(first_indefinite(Residual(over).target()), n - k);
        for (const Way& way : ways) {
          const Result<double> result = call(under, by(way, precision));
          EXPECT_EQ(result.outcome.pivot, -1) << way.name << ", n " << n << ", k " << k;
          EXPECT_LT(Residual(under).ratio(result.R, epsilon(precision)), 30) << way.name << ", n " << n << ", k " << k;
          EXPECT_EQ(call(over, by(way, precision)).outcome.pivot, n - k) << way.name << ", n " << n << ", k " << k;
        }
      }
    }
}

TEST(Pivot, ExactlyZeroIsNotPositive) {
  const Problem<double> p{Sign::downdate, Stored<double>::Constant(1, 1, 3), Stored<double>::Constant(1, 1, -3)};
  for (const Way& way : ways) EXPECT_EQ(call(p, by(way)).outcome.pivot, 0) << way.name;
}

TEST(Rotation, ChangesNothingWhereThereIsNone) {
  for (const double v : {3.0, -3.0, 4.0, std::numeric_limits<double>::quiet_NaN()}) {
    double r = 3;
    Rotation<double> g = Rotation<double>::identity();
    EXPECT_FALSE((compute<Sign::downdate>(r, v, g)));
    EXPECT_EQ(r, 3);
    EXPECT_EQ(g.c, 1);
    EXPECT_EQ(g.s, 0);
  }
}

}  // namespace
}  // namespace gpucholmod::test
