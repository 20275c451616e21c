#include <gtest/gtest.h>

#include "call.h"
#include "modify/weights.h"

/// Columns of V of both signs, weights, and a scale of A, by every method of the CPU.
namespace gpucholmod::test {
namespace {

/// A problem, in long double: R, V, weights w and a scale, for the factor of scale^2 A + V diag(w) V'.
struct Weighted {
  Matrix R, V;
  std::vector<double> w;
  double scale = 1;
};

/// Returns ||R~'R~ - (scale^2 A + V W V')||_1 / (eps (||scale^2 A||_1 + ||V |W| V'||_1)), R~ being X.
double residual(const Weighted& p, const Matrix& X, double eps) {
  Matrix W = p.V, sizes = p.V;
  for (index_t q = 0; q < p.V.cols(); ++q) {
    W.col(q) *= real(p.w[size_t(q)]);
    sizes.col(q) *= std::abs(real(p.w[size_t(q)]));
  }
  const Matrix A = gram_of(p.R) * real(p.scale) * real(p.scale), target = A + product(W, p.V.transpose());
  return double(norm_1(product(X.transpose(), X) - target) /
                (eps * (norm_1(A) + norm_1(product(sizes, p.V.transpose())))));
}

Request asked(const Way& way, const Weighted& p, Precision precision = Precision::double_) {
  Request request = by(way, precision);
  request.n = p.R.cols();
  request.k = p.V.cols();
  request.weights = p.w;
  request.scale = p.scale;
  return request;
}

template <class S = double>
Result<S> modified(const Weighted& p, const Request& request) {
  const Stored<S> R = p.R.cast<S>(), V = p.V.cast<S>();
  Result<S> result{{}, Stored<S>::Constant(request.n, request.n, std::numeric_limits<S>::quiet_NaN())};
  result.outcome = modify(Place<S>::memory(R.data(), result.R.data()), V.data(), request, [](double) {});
  return result;
}

std::vector<Way> all_ways() {
  std::vector<Way> all = ways;
  all.push_back({"stream", Method::stream, LoopOrder::b});
  all.push_back({"refactor", Method::refactor, LoopOrder::b});
  return all;
}

Weighted example(index_t n, std::vector<double> w, double scale = 1, unsigned seed = 5) {
  Random random(seed);
  const Matrix R = well_conditioned(n, random).cast<double>().cast<real>();
  return {R, (random.normal(n, index_t(w.size())) / std::sqrt(real(n))).cast<double>().cast<real>(), std::move(w),
          scale};
}

/// Returns `count` weights of both signs, of sizes from 10^-range to 10^range, and some zeros.
std::vector<double> mixed(index_t count, double range) {
  std::vector<double> w;
  for (index_t q = 0; q < count; ++q)
    w.push_back(
        q % 5 == 4 ? 0 : (q % 2 ? -0.05 : 1) * std::pow(10, range * (2 * double(q * 7 % count) / double(count) - 1)));
  return w;
}

TEST(Weights, ResidualRatio) {
  for (const index_t n : {1, 7, 65, 200})
    for (const index_t k : {1, 2, 5, 9, 40}) {
      Weighted p = example(n, mixed(k, 0.3));
      for (const Precision precision : {Precision::double_, Precision::single}) {
        if (precision == Precision::single) p.R = p.R.cast<float>().cast<real>(), p.V = p.V.cast<float>().cast<real>();
        for (const double scale : {1.0, 0.995, 3.0}) {
          p.scale = scale;
          for (const Way& way : all_ways()) {
            if (way.method == Method::refactor && precision == Precision::single) continue;
            const auto result = modified(p, asked(way, p, precision));
            ASSERT_EQ(result.outcome.pivot, -1) << way.name << " " << n << " " << k;
            EXPECT_LT(residual(p, result.R.cast<real>(), epsilon(precision)), 40)
                << way.name << " " << n << " " << k << " " << scale;
          }
        }
      }
    }
}

/// Checks that columns that are added and removed by turns give R back, however large, and that no pivot fails.
TEST(Weights, SameRowsInAndOut) {
  for (const Way& way : all_ways())
    for (const double size : {0.1, 1.0, 1e3}) {
      Weighted p = example(150, std::vector<double>(12, 1));
      for (index_t q = 0; q < 6; ++q) {
        p.V.col(2 * q) *= size;
        p.V.col(2 * q + 1) = p.V.col(2 * q);
        p.w[size_t(2 * q + q % 2)] = -1;
      }
      const auto result = modified(p, asked(way, p));
      ASSERT_EQ(result.outcome.pivot, -1) << way.name;
      EXPECT_LT(residual(p, result.R.cast<real>(), epsilon(Precision::double_)), 40) << way.name << " " << size;
    }
}

/// Checks that only the final matrix decides: column by column, the modification would fail.
TEST(Weights, OnlyTheFinalMatrixCounts) {
  for (const Way& way : all_ways()) {
    Weighted p = example(100, {-1, 1, -1, 1});
    p.V.col(0) = p.R.row(40).transpose() * 1.5L;  // A minus the square of this column is indefinite
    p.V.col(1) = p.R.row(40).transpose() * 2;
    p.V.col(2) = p.R.row(70).transpose() * 3;
    p.V.col(3) = p.R.row(70).transpose() * 2.9L;
    const auto result = modified(p, asked(way, p));
    ASSERT_EQ(result.outcome.pivot, -1) << way.name;
    EXPECT_LT(residual(p, result.R.cast<real>(), epsilon(Precision::double_)), 40) << way.name;
    p.w[1] = 0.1;
    EXPECT_EQ(modified(p, asked(way, p)).outcome.pivot, 40) << way.name;
  }
}

TEST(Weights, AreThoseOfColumnsOfOneSign) {
  for (const Way& way : all_ways())
    for (const Sign sign : signs) {
      const real weight = sign == Sign::update ? 4 : -0.25L;
      Weighted p = example(130, std::vector<double>(6, double(weight)));
      const auto weighted = modified(p, asked(way, p));
      const Matrix V = p.V * std::sqrt(std::abs(weight));  // exact
      EXPECT_TRUE(same_bits(weighted.R, call(problem(sign, p.R, V), by(way)).R)) << way.name;
    }
}

TEST(Weights, PowersOfFourScaleExactly) {
  for (const Way& way : all_ways())
    for (const double by : {0.25, 1024.0}) {
      const Weighted p = example(130, mixed(7, 0));
      Weighted q = p;
      q.scale = by;
      q.V *= real(by);
      EXPECT_TRUE(same_bits(modified(q, asked(way, q)).R, Stored<double>(modified(p, asked(way, p)).R * by)))
          << way.name << by;
    }
}

TEST(Weights, AllZeroLeaveTheScale) {
  for (const Way& way : all_ways()) {
    const Weighted p = example(40, {0, 0}, 2);
    EXPECT_TRUE(same_bits(modified(p, asked(way, p)).R, Stored<double>((p.R * 2).cast<double>()))) << way.name;
  }
}

TEST(Weights, TheOrderOfColumnsDoesNotMatter) {
  for (const Way& way : all_ways()) {
    const Weighted p = example(120, mixed(8, 1));
    Weighted q = p;
    for (index_t i = 0; i < 8; ++i) q.V.col(7 - i) = p.V.col(i), q.w[size_t(7 - i)] = p.w[size_t(i)];
    const Stored<double> a = modified(p, asked(way, p)).R, b = modified(q, asked(way, q)).R;
    EXPECT_LT((a - b).norm(), 1e-14 * a.norm()) << way.name;
  }
}

TEST(Weights, OfAnySizeInOneV) {
  for (const Way& way : all_ways()) {
    const Weighted p = example(150, mixed(11, 12));
    Weighted up = p;
    for (double& w : up.w) w = std::abs(w);
    const auto result = modified(up, asked(way, up));
    EXPECT_LT(residual(up, result.R.cast<real>(), epsilon(Precision::double_)), 40) << way.name;
  }
}

TEST(Weights, TooLargeIsAnError) {
  Weighted p = example(10, {1e300});
  p.V(3, 0) = 1e200;
  const auto error = error_of([&] { modified(p, asked(ways[0], p)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::overflow);
  EXPECT_EQ(number(*error, "row"), 4);
}

}  // namespace
}  // namespace gpucholmod::test
