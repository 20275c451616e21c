#include <gtest/gtest.h>

#include "../call.h"
#include "cuda/backend.h"
#include "cuda/pool.h"

/// Behaviour that only a GPU can show, without R: memory that runs out, and calls abandoned midway. The program fails
/// if there is no GPU. The tests are small enough to run under compute-sanitizer.
namespace gpucholmod::test {
namespace {

const cuda::Status now = cuda::status(false);

double free_memory() { return cuda::status(true).devices.at(now.device).memory_free; }

Request on_gpu(Precision precision = Precision::double_, paper::Shape shape = {}) {
  Request request;
  request.backend = Backend::cuda;
  request.method = Method::panel;
  request.precision = precision;
  request.shape = shape;
  return request;
}

Problem<double> example(index_t n, index_t k, Sign sign) {
  Random random(11);
  const Matrix R = well_conditioned(n, random), V = random.normal(n, k) / std::sqrt(real(n));
  return sign == Sign::update ? problem(sign, R, V) : undo(R, V);
}

TEST(Status, FindsTheGpu) {
  ASSERT_TRUE(now.usable) << now.message;
  EXPECT_GT(free_memory(), 0);
}

TEST(Memory, RunningOutSaysHowMuchWasNeeded) {
  const cuda::CurrentDevice current(now.device);
  const cuda::Stream stream;
  cuda::Pool pool(now.device, stream);
  const double before = free_memory();
  const auto error = error_of([&] { cuda::PoolBuffer<double>(pool, index_t(1) << 40); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  EXPECT_EQ(number(*error, "needed"), 8 * std::pow(2.0, 40));
  EXPECT_EQ(number(*error, "available"), before);
  cuda::PoolBuffer<double>(pool, 1000);  // the error does not stick
}

/// Checks the ratio of test_methods.cpp for every compiled batch of V, several widths and heights, both signs and
/// precisions.
TEST(Panel, ResidualRatioOfEveryKernel) {
  for (const Sign sign : signs) {
    const Problem<double> p = example(150, 37, sign);
    const Residual residual(p);
    for (const Precision precision : precisions)
      for (const int elements : {1, 4, 8, 16, 32})
        for (const paper::Shape& shape : {paper::Shape{1, 32, elements, 64}, paper::Shape{2, 96, elements, 17}}) {
          const Result<double> first = call(p, on_gpu(precision, shape)), again = call(p, on_gpu(precision, shape));
          ASSERT_EQ(first.outcome.pivot, -1);
          EXPECT_LT(residual.ratio(first.R, epsilon(precision)), 30);
          EXPECT_TRUE(same_bits(first.R, again.R));
        }
  }
}

TEST(Panel, AFailingDowndateOrAThrowLeavesNothingBehind) {
  const Problem<double> p = example(500, 5, Sign::update);
  call(p, on_gpu());
  const double before = free_memory();
  Problem<double> failing{Sign::downdate, p.R, Stored<double>::Zero(500, 5)};
  failing.V(400, 2) = 1e3;
  EXPECT_EQ(call(failing, on_gpu()).outcome.pivot, 400);
  for (int stop_at = 1; stop_at <= 8; ++stop_at) {
    int polls = 0;
    EXPECT_THROW(call(p, on_gpu(), [&](double) { if (++polls == stop_at) throw stop_at; }), int);
  }
  EXPECT_LT(Residual(p).ratio(call(p, on_gpu()).R, epsilon(Precision::double_)), 30);
  EXPECT_EQ(free_memory(), before);
}

TEST(Panel, DeviceMemoryIsOfOrderN) {
  const auto peak = [](index_t n) {
    return call(example(n, 4, Sign::update), on_gpu(Precision::double_, {2, 64, 4, 32})).outcome.device_bytes;
  };
  const double small = peak(300), large = peak(1200);
  EXPECT_LT(large, 4 * small);
  EXPECT_LT(large, 8.0 * 1200 * 1200 / 50);
}

}  // namespace
}  // namespace gpucholmod::test
