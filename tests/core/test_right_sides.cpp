#include <gtest/gtest.h>

#include "call.h"
#include "lazy_device.h"
#include "stream/pipeline.h"
#include "stream_call.h"

/// Right-hand sides that are modified along with a factor.
namespace gpucholmod::test {
namespace {

using Columns = Stored<double>;

/// R, V whose last columns are removed, z and Y.
struct Case {
  Columns R, V, z, Y;  ///< Y: m x k
  index_t removed;
  double scale;

  Case(index_t n, index_t k, index_t m, double scale, double size = 1)
      : R(quick_problem(Sign::update, n, 1).R),
        V(Random(7).normal(n, k).cast<double>() * (0.3 * size / std::sqrt(double(n * k)))),
        z(Random(8).normal(n, m).cast<double>()), Y(Random(9).normal(m, k).cast<double>()), removed(k / 3),
        scale(scale) {}

  Columns signs() const {
    Columns S = Columns::Identity(V.cols(), V.cols());
    S.bottomRightCorner(removed, removed) *= -1;
    return S;
  }
};

double size_of(const Matrix& M) { return double(norm_1(M)); }

/// Returns ||R~'z~ - scale^2 R'z - V S Y'|| / (eps times the size of the terms); R~ is `modified`.
double residual(const Case& c, const Columns& modified, const Columns& z, double eps) {
  const Matrix R = c.R.cast<real>(), S = c.signs().cast<real>(), V = c.V.cast<real>(), Y = c.Y.cast<real>(),
               z0 = c.z.cast<real>(), now = modified.cast<real>().triangularView<Eigen::Upper>();
  const real square = real(c.scale) * real(c.scale);
  const Matrix error = product(now.transpose(), z.cast<real>()) - square * product(R.transpose(), z0) -
                       product(product(V, S), Y.transpose());
  return size_of(error) / (eps * (double(square) * size_of(product(R.transpose().cwiseAbs(), z0.cwiseAbs())) +
                                  size_of(product(V.cwiseAbs(), Y.transpose().cwiseAbs()))));
}

/// Returns scale^2 (rss + ||z||^2) + the signed squares of Y - ||z~||^2 for every 50th column, z~ being exact.
std::vector<double> rss_of(const Case& c, real rss) {
  const Matrix R = c.R.cast<real>(), S = c.signs().cast<real>(), V = c.V.cast<real>(), VS = product(V, S);
  const real square = real(c.scale) * real(c.scale);
  const Matrix lower = factor(square * gram_of(R) + product(VS, V.transpose())).transpose();
  std::vector<double> all;
  for (index_t j = 0; j < c.z.cols(); j += 50) {
    const Matrix z0 = c.z.col(j).cast<real>(), y = c.Y.row(j).cast<real>();
    const Matrix b = square * product(R.transpose(), z0) + product(VS, y.transpose());
    const Matrix z = lower.triangularView<Eigen::Lower>().solve(b);
    all.push_back(
        double(square * (rss + z0.squaredNorm()) + product(product(y, S), y.transpose())(0, 0) - z.squaredNorm()));
  }
  return all;
}

Request asked(const Case& c, const Way& way, Precision precision = Precision::double_) {
  Request request = by(way, precision);
  request.n = c.R.cols();
  request.k = c.V.cols();
  request.removed = c.removed;
  request.scale = c.scale;
  request.sides = std::make_shared<OwnedRightHandSides>();
  request.sides->m = c.z.cols();
  request.sides->z.assign(c.z.data(), c.z.data() + c.z.size());
  request.sides->Y.assign(c.Y.data(), c.Y.data() + c.Y.size());
  request.sides->rss.assign(size_t(c.z.cols()), 2);
  return request;
}
Columns z_of(const Request& request) {
  return Eigen::Map<const Columns>(request.sides->z.data(), request.n, request.sides->m);
}

Result<double> modified(const Case& c, const Request& request) {
  const Columns R = request.uplo == Uplo::upper ? c.R : Columns(c.R.transpose());
  Result<double> result{{}, Columns::Constant(request.n, request.n, std::numeric_limits<double>::quiet_NaN())};
  result.outcome = modify(Place<double>::memory(R.data(), result.R.data()), c.V.data(), request, no_poll);
  if (request.uplo == Uplo::lower) result.R.transposeInPlace();
  return result;
}

std::vector<Way> carrying_ways() {
  std::vector<Way> all = {{"stream", Method::stream, LoopOrder::b}};
  for (const Way& way : ways)
    if (way.method == Method::blocked) all.push_back(way);
  return all;
}

TEST(RightSides, ByEveryMethodThatTakesThemAlong) {
  for (const index_t n : {1, 6, 65, 200})
    for (const index_t k : {1, 3, 5, 40})
      for (const index_t m : {1, 3, 150}) {
        if (sanitized && m == 150 && n != 65) continue;
        const Case c(n, k, m, k == 5 ? 1 : 0.97);
        const std::vector<double> rss = rss_of(c, 2);
        for (const Way& way : carrying_ways())
          for (const Precision precision : precisions)
            for (const Uplo uplo : uplos) {
              Request request = asked(c, way, precision);
              request.uplo = uplo;
              const Result<double> result = modified(c, request);
              const double eps = epsilon(precision);
              ASSERT_EQ(result.outcome.pivot, -1);
              ASSERT_LT(residual(c, result.R, z_of(request), eps), 40) << way.name << " " << n << " " << k << " " << m;
              for (size_t i = 0; i < rss.size(); ++i)
                ASSERT_NEAR(request.sides->rss[50 * i], rss[i], 40 * eps * (4 + double(c.Y.squaredNorm()))) << way.name;
            }
      }
}

TEST(RightSides, SumsOfSquaresThatBecomeNegative) {
  Case c(20, 1, 1, 1);
  c.removed = 1;
  c.Y.setConstant(1e3);
  const Request request = asked(c, ways.at(2));
  EXPECT_EQ(modified(c, request).outcome.pivot, -1);
  EXPECT_TRUE(std::isnan(request.sides->rss[0]));
  EXPECT_LT(residual(c, modified(c, asked(c, ways.at(2))).R, z_of(request), epsilon(Precision::double_)), 40);

  Case exact(20, 1, 1, 1);  // what is added and taken away again leaves 0, not a negative sum
  Request up = asked(exact, ways.at(2));
  up.sides->rss[0] = 0;
  exact.R = modified(exact, up).R.triangularView<Eigen::Upper>();
  exact.z = z_of(up);
  exact.removed = 1;
  Request down = asked(exact, ways.at(2));
  down.sides->rss[0] = up.sides->rss[0] * (1 - 1e-15);
  modified(exact, down);
  EXPECT_LT(down.sides->rss[0], 1e-12);
}

/// A window over observations that a line fits exactly. Rounding errors of a sum of squares that is 0 are judged by the
/// squares before a step, those of z included.
TEST(RightSides, RoundingTakesNothingFromNothing) {
  index_t zeros = 0;
  for (const Precision precision : precisions)
    for (const index_t n : {1, 2, 7}) {
      Random random(3);
      const index_t window = 12, steps = 300;
      Columns X = random.normal(window + steps, n).cast<double>();
      if (precision == Precision::single) X = X.cast<float>().cast<double>();
      X.col(0).setOnes();
      const Columns y = X * Columns::Constant(n, 1, 3);
      Case c(n, 2, 1, 1);
      c.removed = 1;
      const Matrix first = X.topRows(window).cast<real>();
      c.R = factor(product(first.transpose(), first)).cast<double>();
      c.z = c.R * Columns::Constant(n, 1, 3);
      double rss = 0;
      for (index_t step = 0; step < steps; ++step) {
        c.V << X.row(window + step).transpose(), X.row(step).transpose();
        c.Y << y(window + step), y(step);
        const Request request = asked(c, ways.at(2), precision);
        request.sides->rss[0] = rss;
        const Result<double> made = modified(c, request);
        ASSERT_EQ(made.outcome.pivot, -1);
        rss = request.sides->rss[0];
        ASSERT_GE(rss, 0) << "n " << n << ", step " << step;
        ASSERT_LT(rss, 100 * epsilon(precision) * 9 * window * n * n) << step;
        zeros += rss == 0;
        c.R = made.R.triangularView<Eigen::Upper>();
        c.z = z_of(request);
      }
    }
  EXPECT_GT(zeros, 0);
}

/// Checks that a sum that becomes negative by more than 100 eps of the squares before is not taken for rounding.
TEST(RightSides, WhatIsMissingIsNotRounding) {
  for (const double missing : {50.0, 200.0}) {
    Case c(1, 1, 1, 1);
    c.R.setConstant(1);
    c.V.setConstant(0);  // so that all of y is left over
    c.z.setConstant(2);
    c.removed = 1;
    c.Y.setConstant(std::sqrt(missing * 0x1p-52 * 8));
    const Request request = asked(c, ways.at(2));
    request.sides->rss[0] = 0;
    EXPECT_EQ(modified(c, request).outcome.pivot, -1);
    if (missing < 100) { EXPECT_EQ(request.sides->rss[0], 0); }
    else { EXPECT_TRUE(std::isnan(request.sides->rss[0])); }
  }
}

/// Checks that NaN and infinity stay what they are, but for infinity minus infinity, and that squares beyond the range
/// of doubles are infinite or 0.
TEST(RightSides, SumsOfSquaresBeyondTheRange) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto made_of = [](double rss, double y, index_t removed) {
    Case c(1, 1, 1, 1);
    c.R.setConstant(1);
    c.V.setConstant(0);
    c.z.setConstant(1);
    c.Y.setConstant(y);
    c.removed = removed;
    const Request request = asked(c, ways.at(2));
    request.sides->rss[0] = rss;
    EXPECT_EQ(modified(c, request).outcome.pivot, -1);
    return request.sides->rss[0];
  };
  EXPECT_TRUE(std::isnan(made_of(std::numeric_limits<double>::quiet_NaN(), 1, 0)));
  EXPECT_EQ(made_of(infinite, 1, 0), infinite);
  EXPECT_EQ(made_of(infinite, 1, 1), infinite);
  EXPECT_TRUE(std::isnan(made_of(infinite, 1e160, 1)));
  EXPECT_EQ(made_of(1, 1e160, 0), infinite);
  EXPECT_TRUE(std::isnan(made_of(1, 1e160, 1)));
  EXPECT_EQ(made_of(0, 1e-170, 0), 0);
}

TEST(RightSides, MethodsThatTakeNone) {
  const Case c(20, 1, 1, 1);
  for (const Method method : {Method::refactor, Method::reference, Method::panel}) {
    Request request = asked(c, {"", method, LoopOrder::b});
    const auto error = error_of([&] { modified(c, request); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_argument);
  }
}

/// Right-hand sides by the GPU's kernels on a simulated grid: from one panel or several, with rejected row blocks,
/// segments that end early, and Householder steps alone.
TEST(RightSides, ByTheKernelsOfTheGpu) {
  index_t fallbacks = 0, rescalings = 0;
  for (const Kernel kernel : {Kernel::persistent, Kernel::stepwise})
    for (const index_t n : {70, 300})
      for (const index_t k : {2, 20, 40})
        for (const double size : {1.0, 30.0, 400.0})
          for (const index_t m : {1, 130}) {
            if (m == 130 && (n == 300 || k != 20)) continue;
            Case c(n, k, m, 1, size);
            c.removed = size == 1 ? c.removed : 0;
            if (size == 400) c.V.topRows(n / 2) /= size;
            const auto result = std::make_shared<std::pair<Columns, OwnedRightHandSides>>();
            within_a_minute([&, result] {
              const stream::Plan plan(n, k, c.removed, 8, least_budget(n, k, 8) * 1.4, false);
              const MemorySource<double> from(c.R.data(), n);
              result->first = Columns::Zero(n, n);
              MemorySink<double> to(result->first.data(), n);
              LazyDevice<double> device(plan, c.V.data(), {kernel, 0, 2});
              const auto run =
                  stream::Pipeline<double, double>(plan, from, to, {}, device, 2, no_poll, nullptr)
                      .run();
              ASSERT_EQ(run.end, stream::End::complete);
              Request request = asked(c, ways.at(2));
              device.carry(request.sides->view(request, request.sides->Y.data(), request.n));
              request.sides->settle(request, false);
              result->second = *request.sides;
              Work work;
              device.report(work);
              fallbacks += work.fallbacks;
              rescalings += work.rescalings;
            });
            const Columns z = Eigen::Map<const Columns>(result->second.z.data(), n, m);
            const double eps = epsilon(Precision::double_);
            ASSERT_LT(residual(c, result->first, z, eps), 40) << n << " " << k << " " << size << " " << m;
            ASSERT_NEAR(result->second.rss[0], rss_of(c, 2)[0], 100 * eps * (4 + double(c.Y.squaredNorm())))
                << n << " " << k << " " << size << " " << int(kernel);
          }
  EXPECT_GT(fallbacks, 0);
  EXPECT_GT(rescalings, 0);
}

}  // namespace
}  // namespace gpucholmod::test
