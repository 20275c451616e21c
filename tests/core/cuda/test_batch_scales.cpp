#include "../batch_call.h"
#include "cuda/device_batch.h"

/// Scales of batches on a GPU.
namespace gpucholmod::test {
namespace {

std::unique_ptr<HeldBatch> on_gpu(const Batch& batch, Precision precision) {
  return cuda::upload_batch(batch.R.data(), batch.n, batch.b, Uplo::upper, precision, -1);
}

class CudaBatchScales : public testing::TestWithParam<Precision> {
 protected:
  const Precision precision = GetParam();
};

/// Checks that weights common to all members, which the device looks at, give the bits of the same weights for each
/// member.
TEST_P(CudaBatchScales, AreThoseOfEachMember) {
  for (const index_t n : {1, 6, 40})
    for (const index_t k : {1, 3, 17}) {
      Batch batch = weighted_and_scaled(n, k, precision);
      for (index_t m = 0; m < batch.b; ++m)
        for (index_t q = 0; q < k; ++q) batch.weights[q + m * k] = q % 3 == 1 ? -1e-3 : 0.5 + double(q);
      const Made each = modified(batch, How::made, on_gpu(batch, precision));
      EXPECT_EQ(each.pivots, Pivots(batch.b, -1)) << n << ", " << k;
      for (index_t m = 0; m < batch.b; ++m)
        EXPECT_LT(batch.units(m, member(each.R, n, m), epsilon(precision)), 40) << m << ", n = " << n << ", k = " << k;
      batch.task.common_weights = true;
      for (const How how : {How::made, How::in_place})
        EXPECT_TRUE(same(modified(batch, how, on_gpu(batch, precision)).R, each.R)) << n << ", " << k;
    }
}

/// Checks scales that make an entry too large for a float, or leave a diagonal entry no digits.
TEST(CudaBatchScalesRange, ResultsThatCannotBe) {
  Random random(6);
  const Matrix R = well_conditioned(8, random);
  Batch batch(std::vector<Problem<double>>(3, problem(Sign::update, R, random.normal(8, 1) / 1e10L)));
  const auto held = on_gpu(batch, Precision::single);
  const std::vector<double> before = numbers(*held);
  std::atomic<bool> begun{false};
  Pivots pivots;
  for (const double scale : {1e80, 1e-80})
    for (const bool common : {false, true}) {
      batch.scale = {1, scale, 1};
      batch.task.common_weights = common;
      const std::optional<Error> error =
          error_of([&] { held->modify(batch.V.data(), batch.given(), nullptr, pivots, unwatched, begun); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), scale > 1 ? ErrorCode::overflow : ErrorCode::bad_diagonal);
      EXPECT_EQ(number(*error, "member"), 2);
      EXPECT_FALSE(begun);
      EXPECT_TRUE(same(numbers(*held), before));
    }
}

INSTANTIATE_TEST_SUITE_P(Each, CudaBatchScales, testing::ValuesIn(precisions),
                         [](const auto& info) { return info.param == Precision::single ? "single" : "double"; });

}  // namespace
}  // namespace gpucholmod::test
