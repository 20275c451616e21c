#include "../batch_sides_call.h"
#include "cuda/device_batch.h"

/// Right-hand sides that are modified along with a batch on a GPU.
namespace gpucholmod::test {
namespace {

Made on_gpu(Batch& batch, Carried& carried, Precision precision, How how) {
  return modified_with_sides(batch, carried, precision, [&] {
    return modified(batch, how,
                    cuda::upload_batch(batch.R.data(), batch.n, batch.b, Uplo::upper, precision, -1));
  });
}

class CudaBatchSides : public testing::TestWithParam<Precision> {
 protected:
  const Precision precision = GetParam();
};

TEST_P(CudaBatchSides, WeightsAndScalesOfEachMember) {
  for (const index_t n : {1, 5, 31, 70, 250})
    for (const index_t k : {1, 3, 8, 21}) {
      Batch batch = weighted_and_scaled(n, k, precision);
      const Made plain = modified(batch, How::made,
                                  cuda::upload_batch(batch.R.data(), n, batch.b, Uplo::upper, precision, -1));
      for (const How how : {How::in_place, How::made}) {
        Carried carried(batch, precision);
        const Made made = on_gpu(batch, carried, precision, how);
        EXPECT_TRUE(same(made.R, plain.R)) << n << ", " << k;
        for (index_t m = 0; m < batch.b; ++m)
          expect_carried(batch, carried, member(made.R, n, m), m, epsilon(precision));
      }
    }
}

TEST_P(CudaBatchSides, OfUpdatesInPlace) {
  Random random(6);
  std::vector<Problem<double>> members;
  for (int i = 0; i < 7; ++i)
    members.push_back(problem(Sign::update, well_conditioned(40, random), random.normal(40, 18)));
  Batch batch(members);
  Carried carried(batch, precision);
  const Made made = on_gpu(batch, carried, precision, How::in_place);
  for (index_t m = 0; m < batch.b; ++m)
    expect_carried(batch, carried, member(made.R, 40, m), m, epsilon(precision));
}

TEST_P(CudaBatchSides, OfLargerMembers) {
  Random random(4);
  std::vector<Problem<double>> members;
  for (const Sign sign : signs)
    members.push_back(problem(sign, well_conditioned(1030, random), random.normal(1030, 3) / 2000));
  Batch batch(members);
  Carried carried(batch, precision);
  const Made made = on_gpu(batch, carried, precision, How::made);
  for (index_t m = 0; m < batch.b; ++m)
    expect_carried(batch, carried, member(made.R, 1030, m), m, epsilon(precision));
}

TEST_P(CudaBatchSides, OfMembersThatFailStay) {
  Pivots expected;
  Batch batch(some_that_fail(12, 3, expected));
  batch.task.all_or_none = false;
  for (std::vector<double>* const all : {&batch.R, &batch.V})
    for (double& x : *all) x = float(x);
  for (const How how : {How::in_place, How::made}) {
    Carried carried(batch, precision);
    const Made made = on_gpu(batch, carried, precision, how);
    for (index_t m = 0; m < batch.b; ++m) {
      EXPECT_EQ(made.pivots[m] >= 0, expected[m] >= 0);
      if (made.pivots[m] < 0) {
        expect_carried(batch, carried, member(made.R, batch.n, m), m, epsilon(precision));
      } else {
        EXPECT_EQ(part(carried.new_z, batch.n, m), part(carried.z, batch.n, m));
        EXPECT_EQ(carried.new_rss[m * sides], 1e3);
      }
    }
  }
}

/// Checks very large and very small numbers in right-hand sides, and in factors beside them.
TEST_P(CudaBatchSides, NumbersOfAnySize) {
  Batch batch = weighted_and_scaled(9, 4, Precision::single);
  Carried plain(batch, precision);
  on_gpu(batch, plain, precision, How::made);
  const double high = precision == Precision::single ? 0x1p100 : 0x1p900;
  for (const double by : {high, 1 / high, 0x1p-40}) {
    Carried carried(batch, precision);
    for (std::vector<double>* const all : {&carried.z, &carried.Y})
      for (double& x : *all) x *= by;
    on_gpu(batch, carried, precision, How::made);
    for (std::size_t i = 0; i < plain.new_z.size(); ++i)
      ASSERT_NEAR(carried.new_z[i] / by, plain.new_z[i], 1e4 * epsilon(precision) * (1 + std::abs(plain.new_z[i])));
    if (precision == Precision::single) continue;
    Batch far = batch;
    for (std::vector<double>* const all : {&far.R, &far.V})
      for (double& x : *all) x *= by;
    Carried beside(batch, precision);
    on_gpu(far, beside, precision, How::made);
    for (std::size_t i = 0; i < plain.new_z.size(); ++i)
      ASSERT_NEAR(beside.new_z[i], plain.new_z[i], 1e4 * epsilon(precision) * (1 + std::abs(plain.new_z[i])));
  }
}

TEST(CudaBatchSidesOf, TooManyForABlock) {
  Batch batch = weighted_and_scaled(5, 1, Precision::double_);
  const index_t m = 1020;
  std::vector<double> z(5 * m * batch.b), Y(m * batch.b), new_z(z.size());
  batch.given();
  const CarriedSides along({m, z.data(), Y.data(), nullptr, new_z.data(), nullptr}, 5, batch.b, Precision::double_,
                           batch.task);
  const auto held = cuda::upload_batch(batch.R.data(), 5, batch.b, Uplo::upper, Precision::double_, -1);
  Pivots pivots;
  std::atomic<bool> begun{false};
  try {
    held->modify(batch.V.data(), batch.task, nullptr, pivots, [](double) {}, begun);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
  }
  EXPECT_FALSE(begun);
}

INSTANTIATE_TEST_SUITE_P(Each, CudaBatchSides, testing::ValuesIn(precisions));

}  // namespace
}  // namespace gpucholmod::test
