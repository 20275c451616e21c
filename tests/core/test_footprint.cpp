#include "paper/shape.h"

#include <gtest/gtest.h>

#include "call.h"

namespace gpucholmod::test {
namespace {

using paper::Footprint;

TEST(Footprint, RefusesWhatIsOverTheLimit) {
  const Footprint<double> footprint(100, 3, paper::Shape());
  footprint.require_within(footprint.bytes());
  const auto error = error_of([&] { footprint.require_within(footprint.bytes() - 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  EXPECT_EQ(number(*error, "needed"), footprint.bytes());
  EXPECT_EQ(number(*error, "available"), footprint.bytes() - 1);
}

Problem<double> small_problem() {
  Random random(4);
  return problem(Sign::update, well_conditioned(100, random), random.normal(100, 3));
}

TEST(Footprint, EnforcesTheLimitOfACall) {
  const Problem<double> p = small_problem();
  Request request = by(ways[3]);
  request.device_memory = call(p, request).outcome.device_bytes;
  EXPECT_EQ(call(p, request).outcome.pivot, -1) << "exactly enough is enough";

  const double enough = request.device_memory;
  request.device_memory = enough - 1;
  const auto error = error_of([&] { call(p, request); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  EXPECT_EQ(number(*error, "needed"), enough);
  EXPECT_EQ(number(*error, "available"), enough - 1);
}

TEST(Footprint, IsOfNoConcernToMethodsWithoutADevice) {
  for (int w = 0; w < 3; ++w) {
    Request request = by(ways[w]);
    request.device_memory = 0;
    EXPECT_EQ(call(small_problem(), request).outcome.pivot, -1) << ways[w].name;
  }
}

template <class T>
double peak(index_t n, index_t k, const paper::Shape& shape) {
  return Footprint<T>(n, k, shape).bytes();
}

/// Checks that device memory is O(n), although the factor itself would take 8 n^2 bytes.
TEST(Footprint, PeakGrowsLinearlyInTheOrder) {
  const paper::Shape shape;
  for (const index_t k : {1, 16, 64})
    for (const index_t n : {4096, 16384, 65536}) {
      EXPECT_LE(peak<double>(4 * n, k, shape), 4.2 * peak<double>(n, k, shape)) << "n " << n << ", k " << k;
      EXPECT_LE(peak<double>(n, k, shape), 0.1 * 8 * n * n) << "n " << n << ", k " << k;
      EXPECT_LT(peak<float>(n, k, shape), 0.6 * peak<double>(n, k, shape));
    }
}

}  // namespace
}  // namespace gpucholmod::test
