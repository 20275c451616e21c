#include "batch_call.h"

/// V with many more columns than the factor has rows: rounding errors do not grow with their number.
namespace gpucholmod::test {
namespace {

/// Returns ||R~'R~ - (R'R + sigma VV')||_1 / (eps (||R'R||_1 + ||VV'||_1)).
double units(const Problem<double>& p, const Doubles& R, Precision precision) {
  return Residual(p).ratio(R, epsilon(precision)) * double(p.R.cols() + p.V.cols());
}

/// Returns a problem with V of one sign: sums over its columns grow with every term, and so do their rounding errors.
Problem<double> wide(Sign sign, index_t n, index_t k, Precision precision) {
  Random random(unsigned(n + 7 * k));
  const Matrix R = well_conditioned(n, random), V = random.uniform(n, k);
  Problem<double> p = sign == Sign::update ? problem(sign, R, V) : undo(R, V);
  if (precision == Precision::double_) return p;
  p.R = p.R.cast<float>().cast<double>();
  p.V = p.V.cast<float>().cast<double>();
  return p;
}

class Wide : public testing::TestWithParam<Instructions> {
 protected:
  void SetUp() override {
    if (!cpu::available(GetParam())) GTEST_SKIP() << "this machine does not have them";
  }
};

TEST_P(Wide, OneFactor) {
  for (const Precision precision : precisions)
    for (const Sign sign : signs)
      for (const index_t k : {255, 256, 257, 520, 2000, 8000})
        for (const index_t n : {33, 5}) {
          const Problem<double> p = wide(sign, n, k, precision);
          const Way way{"blocked", Method::blocked, LoopOrder::b, GetParam()};
          const Result<double> made = call(p, by(way, precision));
          ASSERT_EQ(made.outcome.pivot, -1);
          EXPECT_LT(units(p, made.R, precision), 8)
              << "k " << k << ", n " << n << ", " << int(sign) << ", " << int(precision);
        }
}

/// Members side by side in groups, and scattered members; they fill one group and begin another.
TEST_P(Wide, MembersOfABatch) {
  for (const Precision precision : precisions)
    for (const index_t k : {64, 65, 1000, 4000}) {
      std::vector<Problem<double>> members;
      for (index_t m = 0; m < 19; ++m) members.push_back(wide(signs[m % 2], 5 + k % 2, k, precision));
      Batch batch(members);
      batch.task.instructions = GetParam();
      const Made made = modified(batch, precision, How::made);
      for (index_t m = 0; m < batch.b; ++m) {
        EXPECT_EQ(made.pivots[m], -1);
        EXPECT_LT(units(members[m], member(made.R, batch.n, m), precision), 12)
            << "k " << k << ", member " << m << ", " << int(precision);
      }
      for (const How how : {How::in_place, How::scattered})
        EXPECT_TRUE(same(modified(batch, precision, how).R, made.R)) << k;
    }
}

/// Checks that members that fail stay as they are, and that all others change, with a wide V, too.
TEST_P(Wide, MembersThatFail) {
  const index_t k = 100;
  std::vector<Problem<double>> members;
  for (index_t m = 0; m < 11; ++m) members.push_back(wide(Sign::downdate, 4, k, Precision::double_));
  for (const index_t m : {2, 8}) members[m].V *= 2;
  Batch batch(members);
  batch.task.all_or_none = false;
  batch.task.instructions = GetParam();
  const std::vector<double> before = numbers(*batch.hold(Precision::double_));
  for (const How how : {How::in_place, How::made, How::scattered}) {
    const Made made = modified(batch, Precision::double_, how);
    for (index_t m = 0; m < batch.b; ++m) {
      EXPECT_EQ(made.pivots[m] >= 0, m == 2 || m == 8) << m;
      EXPECT_EQ(member(made.R, 4, m) == member(before, 4, m), m == 2 || m == 8) << m;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Instructions, Wide, testing::ValuesIn(all_instructions),
                         [](const auto& info) { return text(info.param); });

}  // namespace
}  // namespace gpucholmod::test
