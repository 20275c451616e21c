#include "batch_call.h"

/// Batches of small factors in ordinary memory.
namespace gpucholmod::test {
namespace {

class Instructed : public testing::TestWithParam<std::tuple<Instructions, Precision>> {
 protected:
  void SetUp() override {
    if (!cpu::available(std::get<0>(GetParam()))) GTEST_SKIP() << "this machine does not have them";
  }
};

/// Checks that a member's error does not depend on its neighbours and has the bound of every other method: 40 units,
/// with n + k left out of the ratio.
TEST_P(Instructed, EveryFamilyBesideAllOthers) {
  const auto [instructions, precision] = GetParam();
  for (const index_t n : {1, 2, 3, 4, 5, 8, 11, 30, 33, 100})
    for (const index_t k : {1, 2, 3, 4, 5, 7, 8, 9}) {
      Batch batch(all_families(n, k, precision, 17));
      batch.task.instructions = instructions;
      batch.task.all_or_none = false;
      const Made made = modified(batch, precision, How::made);
      for (index_t m = 0; m < batch.b; ++m) {
        if (made.pivots[m] >= 0) {
          EXPECT_GE(batch.indefinite_from(m), 0) << m << ", n = " << n << ", k = " << k;
        } else {
          EXPECT_LT(batch.units(m, member(made.R, n, m), epsilon(precision)), 40)
              << m << ", n = " << n << ", k = " << k;
        }
      }
      for (const How how : {How::in_place, How::scattered})
        EXPECT_TRUE(same(modified(batch, precision, how).R, made.R)) << n << ", " << k;
    }
}

/// Checks that a member has the same bits alone, modified by several threads, and behind other members.
TEST_P(Instructed, NothingDependsOnNeighboursOrThreads) {
  const auto [instructions, precision] = GetParam();
  const index_t n = 37;
  for (const index_t k : {1, 2, 3, 6}) {
    const std::vector<Problem<double>> members = all_families(n, k, precision, 5);
    Batch batch(members);
    batch.task.instructions = instructions;
    const Made all = modified(batch, precision, How::in_place);
    for (index_t m = 0; m < batch.b; ++m) {
      Batch one({members[m]});
      one.task.instructions = instructions;
      EXPECT_TRUE(
          same(modified(one, precision, How::in_place).R, {all.R.begin() + m * n * n, all.R.begin() + (m + 1) * n * n}))
          << m;
    }
    std::vector<Problem<double>> many;
    for (int i = 0; i < 40; ++i) many.insert(many.end(), members.rbegin(), members.rend());
    Batch large(many);
    large.task.instructions = instructions;
    large.task.threads = 3;
    for (const How how : {How::in_place, How::made, How::scattered}) {
      const Made made = modified(large, precision, how);
      for (index_t m = 0; m < large.b; ++m)
        EXPECT_TRUE(member(made.R, n, m) == member(all.R, n, batch.b - 1 - m % batch.b)) << m;
    }
  }
}

TEST_P(Instructed, WeightsAndScalesOfEachMember) {
  const auto [instructions, precision] = GetParam();
  for (const index_t n : {1, 6, 40})
    for (const index_t k : {1, 2, 3, 5, 8}) {
      Batch batch = weighted_and_scaled(n, k, precision);
      batch.task.instructions = instructions;
      const Made made = modified(batch, precision, How::made);
      for (index_t m = 0; m < batch.b; ++m) {
        EXPECT_EQ(made.pivots[m], -1) << m << ", n = " << n << ", k = " << k;
        EXPECT_LT(batch.units(m, member(made.R, n, m), epsilon(precision)), 40) << m << ", n = " << n << ", k = " << k;
      }
      EXPECT_TRUE(same(modified(batch, precision, How::in_place).R, made.R));
      EXPECT_TRUE(same(modified(batch, precision, How::scattered).R, made.R));
    }
}

TEST_P(Instructed, MembersThatFailStayAndOthersDoNot) {
  const auto [instructions, precision] = GetParam();
  for (const index_t n : {3, 30})
    for (const index_t k : {1, 2, 6}) {
      Pivots expected;
      Batch batch(some_that_fail(n, k, expected));
      batch.task.instructions = instructions;
      ASSERT_GT(std::count_if(expected.begin(), expected.end(), [](index_t p) { return p >= 0; }), 3);
      const auto before = numbers(*batch.hold(precision));
      std::atomic<bool> begun{false};
      Pivots pivots;
      const auto held = batch.hold(precision);
      held->modify(batch.V.data(), batch.given(), nullptr, pivots, [](double) {}, begun);
      EXPECT_FALSE(begun);
      EXPECT_EQ(pivots, expected);
      EXPECT_TRUE(same(numbers(*held), before));
      std::unique_ptr<HeldBatch> made;
      held->modify(batch.V.data(), batch.given(), &made, pivots, [](double) {}, begun);
      EXPECT_EQ(made, nullptr);
      EXPECT_EQ(pivots, expected);

      batch.task.all_or_none = false;
      for (const How how : {How::in_place, How::made, How::scattered}) {
        const Made some = modified(batch, precision, how);
        EXPECT_EQ(some.pivots, expected);
        for (index_t m = 0; m < batch.b; ++m) {
          const Doubles R = member(some.R, n, m);
          if (expected[m] >= 0) {
            EXPECT_TRUE(R == (how == How::scattered ? batch.factor(m) : member(before, n, m)))
                << int(how) << " " << m << " " << n << " " << k;
          } else {
            EXPECT_LT(batch.units(m, R, epsilon(precision)), 40);
          }
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Batch, Instructed,
                         testing::Combine(testing::ValuesIn(all_instructions), testing::ValuesIn(precisions)),
                         [](const auto& info) {
                           return text(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == Precision::single ? "_single" : "_double");
                         });

/// Members with numbers near the ends of the range, beside members with ordinary numbers.
TEST(Batch, NumbersOfAnySize) {
  for (const Precision precision : precisions) {
    const double largest = precision == Precision::single ? 1e25 : 1e220;
    const std::vector<Problem<double>> members = all_families(20, 3, precision, 3);
    Batch batch(members);
    const Made plain = modified(batch, precision, How::made);
    std::vector<double> sizes(batch.b, 1);
    for (index_t m = 0; m < batch.b; m += 2) sizes[m] = m % 4 ? largest : 1 / largest;
    for (index_t m = 0; m < batch.b; ++m) {
      for (index_t i = 0; i < 400; ++i) batch.R[i + m * 400] *= sizes[m];
      for (index_t i = 0; i < 60; ++i) batch.V[i + m * 60] *= sizes[m];
    }
    for (const How how : {How::in_place, How::made, How::scattered}) {
      const Made made = modified(batch, precision, how);
      for (index_t m = 0; m < batch.b; ++m) {
        EXPECT_EQ(made.pivots[m], -1);
        const Doubles R = member(made.R, 20, m) / sizes[m];
        EXPECT_LT(Batch(members).units(m, R, epsilon(precision)), 40) << m;
        if (sizes[m] == 1) { EXPECT_TRUE(R == member(plain.R, 20, m)); }
      }
    }
  }
}

/// Growth during a pass beyond the range of the vectors: the rest of the member is computed by itself.
TEST(Batch, WhatGrowsTooMuchIsFinishedAlone) {
  for (const Precision precision : precisions)
    for (const index_t k : {1, 2, 4, 6}) {
      const double tiny = precision == Precision::single ? 1e-9 : 1e-100;
      Random random(6);
      std::vector<Problem<double>> members;
      for (index_t i = 0; i < 11; ++i) {
        Matrix R = well_conditioned(25, random);
        if (i % 3 == 1) R(i + 3, i + 3) = tiny;
        if (i % 3 == 1) R.row(i + 3).tail(25 - i - 4) *= real(tiny);
        members.push_back(problem(Sign::update, R, random.normal(25, k)));
      }
      Batch batch(members);
      batch.scale = {0.81};
      const Made in_place = modified(batch, precision, How::in_place), made = modified(batch, precision, How::made);
      for (index_t m = 0; m < batch.b; ++m) {
        EXPECT_LT(batch.units(m, member(in_place.R, 25, m), epsilon(precision)), 40) << m;
        EXPECT_LT(batch.units(m, member(made.R, 25, m), epsilon(precision)), 40) << m;
      }
    }
}

TEST(Batch, IsSolvedWithAndLookedAt) {
  for (const Precision precision : precisions)
    for (const index_t b : {1, 5, 19}) {
      Random random(2);
      std::vector<Problem<double>> members;
      for (index_t i = 0; i < b; ++i)
        members.push_back(problem(Sign::update, well_conditioned(13, random), random.normal(13, 2)));
      const Batch batch(members);
      const auto held = batch.hold(precision);
      EXPECT_EQ(held->order(), 13);
      EXPECT_EQ(held->count(), b);
      EXPECT_EQ(held->precision(), precision);
      const std::vector<double> all = numbers(*held), lower = numbers(*held, Uplo::lower);
      std::vector<double> one(169), diagonals(13 * b), B(batch.V);
      held->diagonals(diagonals.data());
      held->solve(TriangularSolve::both, B.data(), 2);
      for (index_t m = 0; m < b; ++m) {
        const Doubles R = member(all, 13, m);
        if (precision == Precision::double_) { EXPECT_TRUE(R == batch.factor(m)); }
        EXPECT_TRUE(R.transpose() == member(lower, 13, m));
        held->download(m, Uplo::lower, one.data());
        EXPECT_TRUE(same(one, {lower.begin() + m * 169, lower.begin() + (m + 1) * 169}));
        EXPECT_TRUE(R.diagonal() == Eigen::Map<Eigen::VectorXd>(diagonals.data() + m * 13, 13));
        const Eigen::Map<const Doubles> X(B.data() + m * 26, 13, 2), V(batch.V.data() + m * 26, 13, 2);
        EXPECT_LT((R.transpose() * (R * X) - V).cwiseAbs().maxCoeff(), 1e-12);
        Doubles halves = V;
        const auto single = cpu::hold_batch(R.data(), 13, 1, Uplo::upper, precision, cpu::ordinary_memory);
        single->solve(TriangularSolve::forward, halves.data(), 2);
        EXPECT_LT((R.transpose() * halves - V).cwiseAbs().maxCoeff(), 1e-13);
        single->solve(TriangularSolve::back, halves.data(), 2);
        EXPECT_TRUE(halves == X);
      }
      const auto copy = held->copy();
      std::atomic<bool> begun{false};
      Pivots pivots;
      BatchTask task;
      task.k = 2;
      copy->modify(batch.V.data(), task, nullptr, pivots, [](double) {}, begun);
      EXPECT_TRUE(same(numbers(*held), all));
      EXPECT_FALSE(same(numbers(*copy), all));
    }
}

TEST(Batch, ALowerFactorIsItsTranspose) {
  const std::vector<Problem<double>> members = all_families(9, 1, Precision::double_, 4);
  Batch batch(members);
  std::vector<double> lower(batch.R.size());
  for (index_t m = 0; m < batch.b; ++m)
    Eigen::Map<Doubles>(lower.data() + m * 81, 9, 9) = member(batch.R, 9, m).transpose();
  const auto held = cpu::hold_batch(lower.data(), 9, batch.b, Uplo::lower, Precision::double_, cpu::ordinary_memory);
  EXPECT_TRUE(same(numbers(*held), numbers(*batch.hold(Precision::double_))));
}

TEST(Batch, BadNumbersAreNamed) {
  Batch batch(all_families(6, 2, Precision::double_, 9));
  const auto refused = [&](auto&& change) {
    Batch other = batch;
    change(other);
    const std::optional<Error> held = error_of([&] { other.hold(Precision::single); });
    if (!held) return *error_of([&] { modified(other, Precision::single, How::in_place); });
    const std::optional<Error> scattered = error_of([&] { modified(other, Precision::single, How::scattered); });
    EXPECT_EQ(scattered->what(), std::string(held->what()));
    return *held;
  };
  const Error nan = refused([](Batch& x) { x.R[36 * 3 + 6 * 4 + 2] = NAN; });
  EXPECT_EQ(nan.code(), ErrorCode::not_finite);
  EXPECT_EQ(number(nan, "member"), 4);
  EXPECT_EQ(number(nan, "row"), 3);
  EXPECT_EQ(number(nan, "col"), 5);
  const Error zero = refused([](Batch& x) { x.R[36 * 10 + 7 * 2] = 0; });
  EXPECT_EQ(zero.code(), ErrorCode::bad_diagonal);
  EXPECT_EQ(number(zero, "member"), 11);
  EXPECT_EQ(number(zero, "index"), 3);
  const Error large = refused([](Batch& x) { x.R[36 * 2 + 6] = 1e60; });
  EXPECT_EQ(large.code(), ErrorCode::overflow);
  EXPECT_EQ(number(large, "member"), 3);
  const Error infinite = refused([](Batch& x) { x.V[12 * 9 + 7] = INFINITY; });
  EXPECT_EQ(infinite.code(), ErrorCode::not_finite);
  EXPECT_EQ(number(infinite, "member"), 10);
  EXPECT_EQ(number(infinite, "row"), 2);
  EXPECT_EQ(number(infinite, "col"), 2);
  const Error weighted = refused([](Batch& x) {
    x.V[12 * 5 + 3] = 1e30;
    x.weights[10] = 1e30;
  });
  EXPECT_EQ(weighted.code(), ErrorCode::overflow);
  EXPECT_EQ(number(weighted, "member"), 6);
}

/// Checks that an error is thrown before the batch has changed.
TEST(Batch, AfterAnErrorABatchIsAsItWas) {
  Batch batch(all_families(6, 2, Precision::double_, 9));
  const auto held = batch.hold(Precision::double_);
  const std::vector<double> before = numbers(*held);
  batch.V.back() = NAN;
  std::atomic<bool> begun{false};
  Pivots pivots;
  EXPECT_TRUE(error_of([&] { held->modify(batch.V.data(), batch.given(), nullptr, pivots, [](double) {}, begun); }));
  EXPECT_FALSE(begun);
  EXPECT_TRUE(same(numbers(*held), before));
}

TEST(Batch, OfNothing) {
  for (const auto& [n, b] : {std::pair<index_t, index_t>{0, 3}, {5, 0}, {0, 0}}) {
    const std::vector<double> R(n * n * b), V(n * 2 * b);
    const auto held = cpu::hold_batch(R.data(), n, b, Uplo::upper, Precision::double_, cpu::ordinary_memory);
    std::atomic<bool> begun{false};
    Pivots pivots;
    BatchTask task;
    task.k = 2;
    held->modify(V.data(), task, nullptr, pivots, [](double) {}, begun);
    EXPECT_EQ(pivots, Pivots(b, -1));
    EXPECT_EQ(numbers(*held).size(), std::size_t(0));
  }
  Batch batch(all_families(5, 1, Precision::double_, 9));  // k = 0: the batch is only scaled
  batch.task.k = 0;
  batch.scale = {4};
  const auto before = numbers(*batch.hold(Precision::double_));
  for (const How how : {How::in_place, How::made, How::scattered}) {
    const Made made = modified(batch, Precision::double_, how);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(made.R[i], 2 * before[i]);
  }
}

TEST(Batch, OneVForAll) {
  Batch batch(all_families(12, 3, Precision::double_, 9));
  std::fill(batch.weights.begin(), batch.weights.end(), 1);
  for (index_t m = 1; m < batch.b; ++m) std::copy_n(batch.V.begin(), 36, batch.V.begin() + m * 36);
  const Made each = modified(batch, Precision::double_, How::in_place);
  batch.task.common_V = batch.task.common_weights = true;
  EXPECT_TRUE(same(modified(batch, Precision::double_, How::in_place).R, each.R));
}

}  // namespace
}  // namespace gpucholmod::test
