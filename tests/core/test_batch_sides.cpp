#include "batch_sides_call.h"
#include "modify/batch.h"

/// Right-hand sides that are modified along with a batch. The contract (modify_contract.h) checks one member; here, all
/// members are checked.
namespace gpucholmod::test {
namespace {

Made modified_with_sides(Batch& batch, Carried& carried, Precision precision, How how) {
  return modified_with_sides(batch, carried, precision, [&] { return modified(batch, precision, how); });
}

class BatchSides : public testing::TestWithParam<std::tuple<Instructions, Precision>> {
 protected:
  void SetUp() override {
    if (!cpu::available(std::get<0>(GetParam()))) GTEST_SKIP() << "this machine does not have them";
  }
  Precision precision() const { return std::get<1>(GetParam()); }
  void expect_all(Batch& batch) const {
    batch.task.instructions = std::get<0>(GetParam());
    for (const How how : {How::in_place, How::made, How::scattered}) {
      Carried carried(batch, precision());
      const Made made = modified_with_sides(batch, carried, precision(), how);
      for (index_t m = 0; m < batch.b; ++m) {
        ASSERT_EQ(made.pivots[m], -1);
        expect_carried(batch, carried, member(made.R, batch.n, m), m, epsilon(precision()));
      }
    }
  }
};

TEST_P(BatchSides, WeightsAndScalesOfEachMember) {
  for (const index_t n : {1, 2, 5, 30})
    for (const index_t k : {1, 2, 3, 8, 21, 70}) {
      Batch batch = weighted_and_scaled(n, k, precision());
      expect_all(batch);
    }
}

/// Members that leave a pass half-way and are finished alone, beside members that do not.
TEST_P(BatchSides, OfMembersThatAreFinishedAlone) {
  const index_t n = 14;
  Random random(5);
  std::vector<Problem<double>> members;
  const double large = precision() == Precision::single ? 1e9 : 1e40;
  for (int i = 0; i < 11; ++i) {
    Matrix R = well_conditioned(n, random), V = random.normal(n, 3);
    if (i % 3 == 1) R.row(i % n) /= large, R.row(5) /= large;
    members.push_back(problem(Sign::update, R, V));
  }
  Batch batch(members);
  expect_all(batch);
}

TEST_P(BatchSides, HaveTheSameBitsWhateverTheNeighbours) {
  Batch batch = weighted_and_scaled(17, 9, precision());
  batch.task.instructions = std::get<0>(GetParam());
  Carried carried(batch, precision());
  modified_with_sides(batch, carried, precision(), How::made);
  for (const index_t m : {0, 4, 18}) {
    Batch alone = batch;
    alone.b = 1;
    const auto cut = [&](std::vector<double>& all, index_t each) {
      all = std::vector<double>(all.begin() + m * each, all.begin() + (m + 1) * each);
    };
    cut(alone.R, 17 * 17), cut(alone.V, 17 * 9), cut(alone.weights, 9), cut(alone.scale, 1);
    Carried own = carried;
    cut(own.z, 17 * sides), cut(own.Y, 9 * sides), cut(own.rss, sides);
    modified_with_sides(alone, own, precision(), How::made);
    EXPECT_TRUE(std::equal(own.new_z.begin(), own.new_z.begin() + 17 * sides, carried.new_z.begin() + m * 17 * sides));
    EXPECT_TRUE(std::equal(own.new_rss.begin(), own.new_rss.begin() + sides, carried.new_rss.begin() + m * sides));
  }
}

TEST_P(BatchSides, OfMembersThatFailStay) {
  Pivots expected;
  Batch batch(some_that_fail(12, 3, expected));
  batch.task.all_or_none = false;
  batch.task.instructions = std::get<0>(GetParam());
  if (precision() == Precision::single)
    for (std::vector<double>* const all : {&batch.R, &batch.V})
      for (double& x : *all) x = float(x);
  for (const How how : {How::in_place, How::made, How::scattered}) {
    Carried carried(batch, precision());
    const Made made = modified_with_sides(batch, carried, precision(), how);
    index_t failed = 0;
    for (index_t m = 0; m < batch.b; ++m) {
      EXPECT_EQ(made.pivots[m] >= 0, expected[m] >= 0);
      if (made.pivots[m] < 0) {
        expect_carried(batch, carried, member(made.R, batch.n, m), m, epsilon(precision()));
        continue;
      }
      ++failed;
      EXPECT_EQ(part(carried.new_z, batch.n, m), part(carried.z, batch.n, m));
      EXPECT_EQ(carried.new_rss[m * sides], 1e3);
    }
    EXPECT_EQ(failed, 5);
  }
}

/// Numbers whose sums are beyond the range in which groups are computed.
TEST_P(BatchSides, OfAnySize) {
  Batch batch = weighted_and_scaled(9, 4, Precision::single);
  batch.task.instructions = std::get<0>(GetParam());
  Carried plain(batch, precision());
  modified_with_sides(batch, plain, precision(), How::made);
  for (const double by : {precision() == Precision::single ? 0x1p100 : 0x1p900, 0x1p-60}) {
    Carried carried(batch, precision());
    for (std::vector<double>* const all : {&carried.z, &carried.Y})
      for (double& x : *all) x *= by;
    modified_with_sides(batch, carried, precision(), How::made);
    for (std::size_t i = 0; i < plain.new_z.size(); ++i)
      ASSERT_NEAR(carried.new_z[i] / by, plain.new_z[i], 1e4 * epsilon(precision()) * (1 + std::abs(plain.new_z[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, BatchSides,
                         testing::Combine(testing::Values(Instructions::plain, Instructions::avx2,
                                                          Instructions::avx512),
                                          testing::ValuesIn(precisions)));

TEST(BatchSidesOf, RowsThatAreTurned) {
  Batch batch = weighted_and_scaled(6, 2, Precision::double_);
  Carried carried(batch, Precision::double_);
  modified_with_sides(batch, carried, Precision::double_, How::scattered);
  std::vector<double> R = batch.R, z = carried.z;
  for (index_t m = 0; m < batch.b; ++m)
    for (index_t i = m % 2; i < 6; i += 2) {
      for (index_t j = i; j < 6; ++j) R[i + j * 6 + m * 36] *= -1;
      for (index_t s = 0; s < sides; ++s) z[i + (s + m * sides) * 6] *= -1;
    }
  std::vector<double> made(R.size()), new_z(z.size()), rest(carried.Y.size());
  std::vector<BatchMember> members;
  for (index_t m = 0; m < batch.b; ++m)
    members.push_back({6, 2, R.data() + m * 36, batch.V.data() + m * 12, made.data() + m * 36,
                       batch.weights.data() + m * 2, batch.scale[m],
                       {z.data() + m * 6 * sides, carried.Y.data() + m * 2 * sides, new_z.data() + m * 6 * sides,
                        rest.data() + m * 2 * sides}});
  BatchTask options;
  options.sides.m = sides;
  std::vector<index_t> pivots;
  modify_batch(members, Uplo::upper, Precision::double_, options, Backend::cpu, pivots, [](double) {});
  EXPECT_TRUE(same(new_z, carried.new_z));
}

TEST(BatchSidesOf, BadNumbersAreNamed) {
  Batch batch = weighted_and_scaled(6, 2, Precision::single);
  for (const bool of_z : {true, false})
    for (const double bad : {double(NAN), 1e100}) {
      Carried carried(batch, Precision::single);
      (of_z ? carried.z : carried.Y)[(of_z ? 6 : 2) * sides * 4 + (of_z ? 6 : 2)] = bad;
      try {
        modified_with_sides(batch, carried, Precision::single, How::made);
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), bad == 1e100 ? ErrorCode::overflow : ErrorCode::not_finite);
        EXPECT_EQ(number(error, "member"), 5);
        EXPECT_EQ(number(error, "row"), 1);
        EXPECT_EQ(number(error, "col"), 2);
      }
    }
}

}  // namespace
}  // namespace gpucholmod::test
