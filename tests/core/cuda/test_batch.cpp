#include "../batch_call.h"
#include "cuda/device_batch.h"
#include "factor_call.h"

/// Batches of small factors on a GPU: the checks that ../test_batch.cpp makes in ordinary memory.
namespace gpucholmod::test {
namespace {

std::unique_ptr<HeldBatch> on_gpu(const Batch& batch, Precision precision) {
  return cuda::upload_batch(batch.R.data(), batch.n, batch.b, Uplo::upper, precision, -1);
}
Made on_gpu(Batch& batch, Precision precision, How how) { return modified(batch, how, on_gpu(batch, precision)); }

class CudaBatch : public testing::TestWithParam<Precision> {
 protected:
  const Precision precision = GetParam();
};

TEST_P(CudaBatch, EveryFamilyBesideAllOthers) {
  for (const index_t n : {1, 2, 31, 32, 33, 70, 129})
    for (const index_t k : n < 100 ? std::vector<index_t>{1, 2, 4, 5, 16, 19} : std::vector<index_t>{3, 16}) {
      Batch batch(all_families(n, k, precision, 17));
      batch.task.all_or_none = false;
      const Made made = on_gpu(batch, precision, How::made);
      for (index_t m = 0; m < batch.b; ++m) {
        if (made.pivots[m] >= 0) {
          EXPECT_GE(batch.indefinite_from(m), 0) << m << ", n = " << n << ", k = " << k;
        } else {
          EXPECT_LT(batch.units(m, member(made.R, n, m), epsilon(precision)), 40)
              << m << ", n = " << n << ", k = " << k;
        }
      }
      EXPECT_TRUE(same(on_gpu(batch, precision, How::in_place).R, made.R)) << n << ", " << k;
    }
}

/// Checks members with a thread for each column, and members larger than a thread block, which are factors of their
/// own.
TEST_P(CudaBatch, LargerMembers) {
  for (const auto& [n, k] : {std::pair<index_t, index_t>{200, 17}, {513, 20}, {1030, 3}}) {
    Random random(4);
    std::vector<Problem<double>> members;
    for (const Sign sign : signs)
      members.push_back(
          problem(sign, well_conditioned(n, random), random.normal(n, k) / (20 * std::sqrt(real(n * k)))));
    Batch batch(members);
    const Made made = on_gpu(batch, precision, How::made);
    for (index_t m = 0; m < 2; ++m)
      EXPECT_LT(batch.units(m, member(made.R, n, m), epsilon(precision)), 40) << m << ", n = " << n;
    EXPECT_TRUE(same(on_gpu(batch, precision, How::in_place).R, made.R)) << n;
  }
}

TEST_P(CudaBatch, NothingDependsOnNeighbours) {
  for (const index_t n : {30, 37})
    for (const index_t k : {1, 3, 18}) {
      const std::vector<Problem<double>> members = all_families(n, k, precision, 5);
      Batch batch(members);
      batch.task.all_or_none = false;
      const Made all = on_gpu(batch, precision, How::in_place);
      std::vector<Problem<double>> many;
      for (int i = 0; i < 40; ++i) many.insert(many.end(), members.rbegin(), members.rend());
      Batch large(many);
      large.task.all_or_none = false;
      for (const How how : {How::in_place, How::made}) {
        const Made made = on_gpu(large, precision, how);
        for (index_t m = 0; m < large.b; ++m)
          EXPECT_TRUE(member(made.R, n, m) == member(all.R, n, batch.b - 1 - m % batch.b)) << m << ", k = " << k;
      }
    }
}

TEST_P(CudaBatch, WeightsAndScalesOfEachMember) {
  for (const index_t n : {1, 6, 40})
    for (const index_t k : {1, 3, 8, 17}) {
      Batch batch = weighted_and_scaled(n, k, precision);
      const Made made = on_gpu(batch, precision, How::made);
      for (index_t m = 0; m < batch.b; ++m) {
        EXPECT_EQ(made.pivots[m], -1) << m << ", n = " << n << ", k = " << k;
        EXPECT_LT(batch.units(m, member(made.R, n, m), epsilon(precision)), 40) << m << ", n = " << n << ", k = " << k;
      }
      EXPECT_TRUE(same(on_gpu(batch, precision, How::in_place).R, made.R));
    }
}

TEST_P(CudaBatch, MembersThatFailStayAndOthersDoNot) {
  for (const index_t n : {3, 30, 70})
    for (const index_t k : {1, 2, 6, 33}) {
      Pivots expected, pivots;
      Batch batch(some_that_fail(n, k, expected));
      const auto held = on_gpu(batch, precision);
      const auto before = numbers(*held);
      std::atomic<bool> begun{false};
      held->modify(batch.V.data(), batch.given(), nullptr, pivots, [](double) {}, begun);
      EXPECT_FALSE(begun);
      EXPECT_EQ(pivots, expected) << n << ", " << k;
      EXPECT_TRUE(same(numbers(*held), before));
      std::unique_ptr<HeldBatch> made;
      held->modify(batch.V.data(), batch.given(), &made, pivots, [](double) {}, begun);
      EXPECT_EQ(made, nullptr);
      EXPECT_EQ(pivots, expected);

      batch.task.all_or_none = false;
      for (const How how : {How::in_place, How::made}) {
        const Made some = on_gpu(batch, precision, how);
        EXPECT_EQ(some.pivots, expected);
        for (index_t m = 0; m < batch.b; ++m) {
          const Doubles R = member(some.R, n, m);
          if (expected[m] >= 0) {
            EXPECT_TRUE(R == member(before, n, m)) << int(how) << " " << m << " " << n << " " << k;
          } else {
            EXPECT_LT(batch.units(m, R, epsilon(precision)), 40);
          }
        }
      }
    }
}

/// Checks members with numbers near the ends of the range, beside members with ordinary numbers.
TEST_P(CudaBatch, NumbersOfAnySize) {
  const double largest = precision == Precision::single ? 1e25 : 1e220;
  const std::vector<Problem<double>> members = all_families(20, 3, precision, 3);
  Batch batch(members);
  const Made plain = on_gpu(batch, precision, How::made);
  std::vector<double> sizes(batch.b, 1);
  for (index_t m = 0; m < batch.b; m += 2) sizes[m] = m % 4 ? largest : 1 / largest;
  for (index_t m = 0; m < batch.b; ++m) {
    for (index_t i = 0; i < 400; ++i) batch.R[i + m * 400] *= sizes[m];
    for (index_t i = 0; i < 60; ++i) batch.V[i + m * 60] *= sizes[m];
  }
  for (const How how : {How::in_place, How::made}) {
    const Made made = on_gpu(batch, precision, how);
    for (index_t m = 0; m < batch.b; ++m) {
      const Doubles R = member(made.R, 20, m) / sizes[m];
      EXPECT_LT(Batch(members).units(m, R, epsilon(precision)), 40) << m;
      if (sizes[m] == 1) { EXPECT_TRUE(R == member(plain.R, 20, m)); }
    }
  }
}

TEST_P(CudaBatch, IsSolvedWithAndLookedAt) {
  for (const index_t n : {13, 32, 50})
    for (const index_t b : {1, 5, 19}) {
      Random random(2);
      std::vector<Problem<double>> members;
      for (index_t i = 0; i < b; ++i)
        members.push_back(problem(Sign::update, well_conditioned(n, random), random.normal(n, 11)));
      const Batch batch(members);
      const auto held = on_gpu(batch, precision), here = batch.hold(precision);
      EXPECT_TRUE(held->on_gpu());
      EXPECT_EQ(held->order(), n);
      EXPECT_EQ(held->count(), b);
      EXPECT_EQ(held->precision(), precision);
      const std::vector<double> all = numbers(*held), lower = numbers(*held, Uplo::lower);
      EXPECT_TRUE(same(all, numbers(*here)));
      EXPECT_TRUE(same(lower, numbers(*here, Uplo::lower)));
      std::vector<double> one(n * n), diagonals(n * b), expected(n * b);
      held->download(b - 1, Uplo::lower, one.data());
      EXPECT_TRUE(same(one, {lower.end() - n * n, lower.end()}));
      held->diagonals(diagonals.data());
      here->diagonals(expected.data());
      EXPECT_TRUE(same(diagonals, expected));
      for (const TriangularSolve which : {TriangularSolve::both, TriangularSolve::forward, TriangularSolve::back}) {
        std::vector<double> B = batch.V, X = batch.V;
        held->solve(which, B.data(), 11);
        here->solve(which, X.data(), 11);
        double largest = 0, difference = 0;
        for (std::size_t i = 0; i < B.size(); ++i) {
          largest = std::max(largest, std::abs(X[i]));
          difference = std::max(difference, std::abs(X[i] - B[i]));
        }
        EXPECT_LT(difference, 1e-11 * largest);
      }
      const auto copy = held->copy();
      std::atomic<bool> begun{false};
      Pivots pivots;
      BatchTask task;
      task.k = 11;
      copy->modify(batch.V.data(), task, nullptr, pivots, [](double) {}, begun);
      EXPECT_TRUE(begun);
      EXPECT_TRUE(same(numbers(*held), all));
      EXPECT_FALSE(same(numbers(*copy), all));
    }
}

/// Returns the solutions for B, whose columns are divided evenly among the members.
Doubles solved(const HeldBatch& batch, TriangularSolve which, const Doubles& B) {
  Doubles X = B;
  batch.solve(which, X.data(), B.cols() / batch.count());
  return X;
}

/// Checks orders near multiples of 32 rows, members for which several warps work, and the largest order.
TEST_P(CudaBatch, IsSolvedWithAtEveryOrder) {
  for (const index_t n : {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 257, 511, 1023, 1024}) {
    const index_t b = n > 500 ? 2 : 9;
    Doubles R(n, n * b);
    for (index_t i = 0; i < b; ++i) R.middleCols(i * n, n) = in(precision, example(n, unsigned(i)));
    const auto held = cuda::upload_batch(R.data(), n, b, Uplo::upper, precision, -1);
    const auto alone = cuda::upload_batch(R.data() + n * n, n, 1, Uplo::upper, precision, -1);
    for (const index_t m : {0, 1, 3, 16, 17}) {
      Random random{unsigned(n + m)};
      const Doubles B = random.normal(n, m * b).cast<double>();
      Doubles X;
      for (const TriangularSolve which : {TriangularSolve::back, TriangularSolve::forward}) {
        X = solved(*held, which, B);
        for (index_t i = 0; i < b; ++i)
          EXPECT_LT(
              substitution_residual(R.middleCols(i * n, n), which, B.middleCols(i * m, m), X.middleCols(i * m, m)), 10)
              << "n = " << n << ", m = " << m << ", member " << i;
        EXPECT_TRUE(solved(*alone, which, B.middleCols(m, m)) == X.middleCols(m, m)) << "n = " << n << ", m = " << m;
        if (m > 0) {
          EXPECT_TRUE(solved(*alone, which, B.col(2 * m - 1)) == X.col(2 * m - 1)) << "n = " << n << ", m = " << m;
        }
      }
      EXPECT_TRUE(solved(*held, TriangularSolve::both, B) == solved(*held, TriangularSolve::back, X)) << n << ", " << m;
    }
  }
}

TEST_P(CudaBatch, AfterAnErrorABatchIsAsItWas) {
  Batch batch(all_families(6, 2, precision, 9));
  const auto held = on_gpu(batch, precision);
  const std::vector<double> before = numbers(*held);
  std::atomic<bool> begun{false};
  Pivots pivots;
  const auto refused = [&](double bad) {
    batch.V[12 * 9 + 7] = bad;
    return *error_of([&] { held->modify(batch.V.data(), batch.given(), nullptr, pivots, [](double) {}, begun); });
  };
  const Error infinite = refused(INFINITY);
  EXPECT_EQ(infinite.code(), ErrorCode::not_finite);
  EXPECT_EQ(number(infinite, "member"), 10);
  EXPECT_EQ(number(infinite, "row"), 2);
  EXPECT_EQ(number(infinite, "col"), 2);
  batch.V[12 * 9 + 7] = 0;
  BatchTask task = batch.given();
  task.device_memory = 100;
  const std::optional<Error> crowded = error_of([&] {
    held->modify(
        batch.V.data(), task, nullptr, pivots, [](double) {}, begun);
  });
  ASSERT_TRUE(crowded);
  EXPECT_EQ(crowded->code(), ErrorCode::out_of_memory);
  EXPECT_FALSE(begun);
  EXPECT_TRUE(same(numbers(*held), before));
  batch.R[36 * 10 + 7 * 2] = 0;
  const std::optional<Error> zero = error_of([&] { on_gpu(batch, precision); });
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->code(), ErrorCode::bad_diagonal);
  EXPECT_EQ(number(*zero, "member"), 11);
}

/// Checks that a result too large for a float is an error that names the member, and that the batch stays as it was.
TEST(CudaBatchRange, AResultThatIsTooLarge) {
  Random random(6);
  const std::vector<Problem<double>> members(3,
                                             problem(Sign::update, well_conditioned(8, random), random.normal(8, 1)));
  Batch batch(members);
  for (double& r : batch.R) r *= 1e37;
  batch.scale = {1, 1e4, 1};
  const auto held = on_gpu(batch, Precision::single);
  const std::vector<double> before = numbers(*held);
  std::atomic<bool> begun{false};
  Pivots pivots;
  const std::optional<Error> error = error_of([&] {
    held->modify(
        batch.V.data(), batch.given(), nullptr, pivots, [](double) {}, begun);
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::overflow);
  EXPECT_EQ(number(*error, "member"), 2);
  EXPECT_TRUE(same(numbers(*held), before));
}

TEST(CudaBatchRange, OfNothing) {
  for (const auto& [n, b] : {std::pair<index_t, index_t>{0, 3}, {5, 0}, {0, 0}}) {
    const std::vector<double> R(n * n * b), V(n * 2 * b);
    const auto held = cuda::upload_batch(R.data(), n, b, Uplo::upper, Precision::double_, -1);
    std::atomic<bool> begun{false};
    Pivots pivots;
    BatchTask task;
    task.k = 2;
    held->modify(V.data(), task, nullptr, pivots, [](double) {}, begun);
    EXPECT_EQ(pivots, Pivots(b, -1));
    EXPECT_EQ(numbers(*held).size(), std::size_t(0));
  }
  Batch batch(all_families(5, 1, Precision::double_, 9));  // k = 0: the members are only scaled
  batch.task.k = 0;
  batch.scale = {4};
  const auto before = numbers(*on_gpu(batch, Precision::double_));
  for (const How how : {How::in_place, How::made}) {
    const Made made = on_gpu(batch, Precision::double_, how);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(made.R[i], 2 * before[i]);
  }
}

TEST(CudaBatchRange, OneVForAll) {
  Batch batch(all_families(12, 3, Precision::double_, 9));
  std::fill(batch.weights.begin(), batch.weights.end(), 1);
  for (index_t m = 1; m < batch.b; ++m) std::copy_n(batch.V.begin(), 36, batch.V.begin() + m * 36);
  const Made each = on_gpu(batch, Precision::double_, How::in_place);
  batch.task.common_V = batch.task.common_weights = true;
  EXPECT_TRUE(same(on_gpu(batch, Precision::double_, How::in_place).R, each.R));
}

TEST(CudaBatchRange, WhatWasTakenIsGivenBack) {
  const Batch batch(all_families(40, 2, Precision::double_, 9));
  { const auto once = on_gpu(batch, Precision::double_); }
  cuda::release();
  const double before = free_memory();
  {
    const auto held = on_gpu(batch, Precision::double_);
    EXPECT_GE(held->bytes(), 8.0 * 820 * double(batch.b));
    const auto copy = held->copy();
  }
  cuda::release();
  EXPECT_EQ(free_memory(), before);
}

INSTANTIATE_TEST_SUITE_P(Each, CudaBatch, testing::ValuesIn(precisions),
                         [](const auto& info) { return info.param == Precision::single ? "single" : "double"; });

}  // namespace
}  // namespace gpucholmod::test
