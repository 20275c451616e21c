#include <gtest/gtest.h>

#include "../call.h"
#include "../families.h"
#include "cuda/backend.h"
#include "cuda/device_factor.h"
#include "cuda/factor_pass.h"
#include "cuda/layout.h"

/// The stream method on a GPU: behaviour that the simulated device of test_stream.cpp cannot show. The tests are small
/// enough for compute-sanitizer.
namespace gpucholmod::test {
namespace {

using Doubles = Stored<double>;

double free_memory() { return cuda::status(true).devices.at(cuda::status(false).device).memory_free; }

Problem<double> example(index_t n, index_t k, Sign sign) {
  Random random(12);
  const Matrix R = well_conditioned(n, random), V = random.normal(n, k) / std::sqrt(real(n));
  return sign == Sign::update ? problem(sign, R, V) : undo(R, V);
}

Request on_gpu(Precision precision = Precision::double_,
               double device_memory = std::numeric_limits<double>::infinity()) {
  Request request;
  request.backend = Backend::cuda;
  request.method = Method::stream;
  request.precision = precision;
  request.device_memory = device_memory;
  request.threads = 3;
  return request;
}

double least_memory(const Problem<double>& p, Precision precision) {
  return number(error_of([&] { call(p, on_gpu(precision, 1)); }).value(), "needed");
}

/// Returns the modified factor of a factor that stays on the GPU.
Doubles resident(const Problem<double>& p, Precision precision, Method method = Method::automatic) {
  const index_t n = p.R.cols();
  Request request;
  request.n = n;
  request.k = p.V.cols();
  request.removed = p.sign == Sign::downdate ? request.k : 0;
  request.precision = precision;
  request.method = method;
  const auto F = cuda::upload(p.R.data(), n, Uplo::upper, precision, 0, -1);
  std::unique_ptr<HeldFactor> made;
  std::atomic<bool> begun{false};
  modify(Place<double>::held(*F, &made, begun), p.V.data(), request, [](double) {});
  Doubles R(n, n);
  made->download(Uplo::upper, R.data());
  return R;
}

TEST(Stream, SameBitsForEveryBudget) {
  for (const Sign sign : signs)
    for (const index_t k : {1, 16, 70}) {
      const Problem<double> p = example(700, k, sign);
      for (const Precision precision : precisions) {
        const Doubles expected = call(p, on_gpu(precision, 1e12)).R;
        const double least = least_memory(p, precision);
        for (const double budget : {least, 2 * least}) {
          const Result<double> result = call(p, on_gpu(precision, budget));
          ASSERT_EQ(result.outcome.pivot, -1);
          EXPECT_LE(result.outcome.device_bytes, budget);
          EXPECT_TRUE(budget != least || result.outcome.panels > 3);
          EXPECT_TRUE(same_bits(result.R, expected)) << k << " " << budget;
        }
      }
    }
}

/// Checks passes that take several turns on a panel, so that work queued behind them has to wait.
TEST(Stream, SameBitsWhereTheGuardRefuses) {
  index_t fallbacks = 0, rescalings = 0;
  for (const index_t k : {9, 70})
    for (const double scale : {20, 400}) {
      Problem<double> p = example(500, k, Sign::update);
      p.V *= scale;
      const Doubles expected = call(p, on_gpu(Precision::double_, 1e12)).R;
      const Result<double> result = call(p, on_gpu(Precision::double_, least_memory(p, Precision::double_)));
      EXPECT_TRUE(same_bits(result.R, expected)) << k << " " << scale;
      EXPECT_LT(Residual(p).ratio(expected, epsilon(Precision::double_)), 30) << k << " " << scale;
      fallbacks += result.outcome.fallbacks;
      rescalings += result.outcome.rescalings;
    }
  EXPECT_GT(fallbacks, 0);
  EXPECT_GT(rescalings, 0);
}

/// Checks updates whose metric is renewed, so that no segment ends. Each panel has to find the place of the renewal
/// again.
TEST(Stream, SameBitsWhereTheMetricIsRenewed) {
  for (const index_t k : {3, 16}) {
    const Problem<double> p = growing_metric(960, k, 60);
    const Doubles expected = call(p, on_gpu(Precision::double_, 1e12)).R;
    const Result<double> result = call(p, on_gpu(Precision::double_, least_memory(p, Precision::double_)));
    EXPECT_GT(result.outcome.panels, 3);
    EXPECT_EQ(result.outcome.fallbacks + result.outcome.rescalings, 0);
    EXPECT_TRUE(same_bits(result.R, expected)) << k;
    EXPECT_LT(Residual(p).ratio(expected, epsilon(Precision::double_)), 30) << k;
  }
}

TEST(Stream, AsGoodAsWhenItStaysThere) {
  for (const Sign sign : signs)
    for (const index_t k : {1, 16, 70}) {
      const Problem<double> made = example(700, k, sign);
      for (const Precision precision : precisions) {
        Problem<double> p = made;
        if (precision == Precision::single) p.R = p.R.cast<float>().cast<double>();
        const Residual residual(p);
        EXPECT_LT(residual.ratio(call(p, on_gpu(precision, 1e12)).R, epsilon(precision)), 30) << k;
        EXPECT_LT(residual.ratio(resident(p, precision), epsilon(precision)), 30) << k;
      }
    }
}

TEST(Stream, LowerFactorsAndFloats) {
  const Problem<double> p = example(300, 16, Sign::update);
  Problem<double> lower = p;
  lower.R = p.R.transpose();
  Request request = on_gpu();
  request.uplo = Uplo::lower;
  const Doubles up = call(p, on_gpu()).R;
  EXPECT_TRUE(same_bits(call(lower, request).R, Doubles(up.transpose())));
  const Problem<float> f{p.sign, p.R.cast<float>(), p.V.cast<float>()};
  EXPECT_LT((call(f, on_gpu()).R.cast<double>() - up).norm() / up.norm(), 1e-6);
  EXPECT_LT((call(f, on_gpu(Precision::single)).R.cast<double>() - up).norm() / up.norm(), 1e-5);
}

/// Checks that the first failing pivot counts, not the first pass that fails.
TEST(Stream, TheFirstFailingPivotIsFoundWhicheverPassFailsThere) {
  const Problem<double> p = example(500, 70, Sign::update);
  for (const index_t later : {201, 499}) {
    Problem<double> failing{Sign::downdate, p.R, Doubles::Zero(500, 70)};
    failing.V(later, 3) = failing.V(200, 66) = 1e3;
    for (const double budget : {least_memory(p, Precision::double_), 1e12})
      EXPECT_EQ(call(failing, on_gpu(Precision::double_, budget)).outcome.pivot, 200);
  }
}

TEST(Stream, AFailingDowndateOrAThrowLeavesNothingBehind) {
  const Problem<double> p = example(700, 5, Sign::update);
  const double least = least_memory(p, Precision::double_);
  call(p, on_gpu());
  cuda::release();
  const double before = free_memory();
  for (const index_t pivot : {0, 400, 699}) {
    Problem<double> failing{Sign::downdate, p.R, Doubles::Zero(700, 5)};
    failing.V(pivot, 2) = 1e3;
    for (const double budget : {least, 1e12})
      EXPECT_EQ(call(failing, on_gpu(Precision::double_, budget)).outcome.pivot, pivot);
  }
  int polls = 0;
  call(p, on_gpu(Precision::double_, least), [&](double) { ++polls; });
  for (int stop_at = 1; stop_at <= std::min(polls, 8); ++stop_at) {
    int now = 0;
    EXPECT_THROW(call(p, on_gpu(Precision::double_, least), [&](double) { if (++now == stop_at) throw stop_at; }), int);
  }
  EXPECT_LT(Residual(p).ratio(call(p, on_gpu()).R, epsilon(Precision::double_)), 30);
  EXPECT_GT(cuda::release(), 0);
  EXPECT_EQ(cuda::release(), 0);
  EXPECT_EQ(free_memory(), before);
}

TEST(Stream, TimelineHasEveryStageInOrder) {
  const Problem<double> p = example(700, 5, Sign::update);
  Request request = on_gpu(Precision::double_, least_memory(p, Precision::double_));
  request.timeline = true;
  const Outcome outcome = call(p, request).outcome;
  ASSERT_GT(outcome.panels, 3);
  for (int panel = 0; panel < outcome.panels; ++panel) {
    double sent = 0, modified = 0, fetched = 0;
    for (const Timeline::Entry& entry : outcome.timeline) {
      if (entry.panel != panel) continue;
      EXPECT_LE(entry.begin, entry.end);
      if (entry.stage == Stage::send) sent = std::max(sent, entry.end);
      if (entry.stage == Stage::modify) modified = entry.end;
      if (entry.stage == Stage::fetch) fetched = std::max(fetched, entry.end);
    }
    EXPECT_LT(0, sent);
    EXPECT_LE(sent, modified);
    EXPECT_LE(modified, fetched);
  }
}

/// Checks a panel behind the first, by segments and by Householder steps. On a GPU with kernels for segments, the
/// stream method itself chooses steps for no panel.
TEST(Stream, PanelsAreThoseOfTheWholeFactor) {
  const Problem<double> p = example(500, 9, Sign::update);
  const cuda::CurrentDevice current(cuda::status(false).device);
  const cuda::Layout layout(500);
  const int strips = layout.strips(), first_panel = 1;
  Doubles padded = Doubles::Zero(layout.ld, layout.padded);
  padded.topRows(layout.padded).setIdentity();
  padded.topLeftCorner(500, 500) = p.R;
  cuda::Stream stream;
  cuda::Pool pool(cuda::status(false).device, stream);
  for (const auto& [launch, method] :
       {std::pair(Launch::persistent, Method::persistent), {Launch::stepwise, Method::stepwise}}) {
    cuda::FactorPass<double> pass(pool, launch, {16, strips, strips - first_panel}, {0, 9, 0});
    const cuda::PoolBuffer<double> dR(pool, layout.words());
    cuda::check(
        cudaMemcpyAsync(dR.data(), padded.data(), sizeof(double) * padded.size(), cudaMemcpyHostToDevice, stream),
        "send");
    pass.prepare(p.V.data(), 500, 500, stream);
    std::vector<int> outcome(pass.outcome_bytes() / sizeof(int));
    for (const auto& [first, end] : {std::pair(0, first_panel), {first_panel, strips}}) {
      double* R = dR.data() + first * block_columns::STRIP * layout.ld;
      pass.begin_panel(first, end, R, R, layout.ld, stream);
      pass.start_turn(0, stream);
      pass.fetch_outcome(outcome.data(), stream);
      stream.synchronize();
      const auto done = pass.outcome(outcome.data(), 0);
      ASSERT_TRUE(done && done->pivot < 0);
    }
    Doubles modified(layout.ld, layout.padded);
    cuda::check(cudaMemcpy(modified.data(), dR.data(), sizeof(double) * modified.size(), cudaMemcpyDeviceToHost),
                "fetch");
    const Doubles R = modified.topLeftCorner(500, 500).triangularView<Eigen::Upper>();
    EXPECT_TRUE(same_bits(R, resident(p, Precision::double_, method)));
  }
}

}  // namespace
}  // namespace gpucholmod::test
