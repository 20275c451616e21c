#include <gtest/gtest.h>

#include "factor_call.h"

/// Modifications of a factor in the memory of a GPU by columns of V that begin with zeros.
namespace gpucholmod::test {
namespace {

constexpr index_t strip = 128;

/// Returns V (n x k) with zeros in its first rows.
Doubles beginning_with_zeros(index_t n, index_t k, index_t zeros) {
  Random random(5);
  Doubles V = random.normal(n, k).cast<double>() * 0.01;
  V.topRows(zeros).setZero();
  return V;
}

/// Calls f(R, V, precision, first) for each case; rows above `first` are left out of the pass.
template <class F>
void for_cases(F&& f) {
  for (const Precision precision : precisions)
    for (const index_t n : {128, 300, 600})
      for (const index_t k : {1, 5, 40})
        for (const index_t zeros : {index_t(1), strip, index_t(290), n}) {
          if (zeros > n) continue;
          SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + ", zeros " + std::to_string(zeros));
          const index_t first = std::min(zeros, n - 1) / strip * strip;
          f(in(precision, example(n)), beginning_with_zeros(n, k, zeros), precision, first > n / 4 ? first : 0);
        }
}

/// Checks that rows above the pass stay, that the rest has the bits of the trailing matrix by itself, and that only its
/// row blocks are done; in place, too, on one device and on several.
TEST(FactorRowsThatStay, StayAsTheyAre) {
  for (const int ranks : {1, 2})
    for (const Sign sign : signs)
      for_cases([&](const Doubles& R, const Doubles& V, Precision precision, index_t first) {
        const index_t n = R.cols(), rest = n - first, k = V.cols();
        const Factor F = upload(R, precision, Uplo::upper, times(ranks)),
                     trailing = upload(Doubles(R.bottomRightCorner(rest, rest)), precision);
        Work work, whole;
        const Factor G = modified(*F, V, task(*F, k, sign), work),
                     expected = modified(*trailing, V.bottomRows(rest), task(*trailing, k, sign), whole);
        ASSERT_TRUE(G && expected);
        const Doubles made = download(*G);
        EXPECT_TRUE(same_bits(Doubles(made.topRows(first)), Doubles(R.topRows(first))));
        EXPECT_TRUE(same_bits(Doubles(made.bottomRightCorner(rest, rest)), download(*expected)));
        EXPECT_LT(Residual(Problem<double>{sign, R, V}).ratio(made, epsilon(precision)), 30);
        EXPECT_EQ(work.blocks, whole.blocks);
        EXPECT_TRUE(same_bits(download(*F), R));
        EXPECT_EQ(modify(*F, V, task(*F, k, sign)).pivot, -1);
        EXPECT_TRUE(same_bits(download(*F), made));
        EXPECT_EQ(modify(*G, V, task(*G, k, sign == Sign::update ? Sign::downdate : Sign::update)).pivot, -1);
        EXPECT_LT((download(*G) - R).norm(), 100 * epsilon(precision) * R.norm());
      });
}

TEST(FactorRowsThatStay, RightHandSidesComeAlong) {
  constexpr index_t m = 3;
  for (const bool in_place : {true, false})
    for_cases([&](const Doubles& R, const Doubles& V, Precision precision, index_t first) {
      const index_t n = R.cols(), k = V.cols();
      Random random(8);
      const Doubles z = in(precision, random.normal(n, m).cast<double>()),
                    Y = in(precision, random.normal(m, k).cast<double>());
      Doubles out = Doubles::Constant(n, m, nan), rest(m, k);
      const Factor F = upload(R, precision);
      Task update = task(*F, k, Sign::update);
      update.right = {{z.data(), n, m, n}, {Y.data(), m, k, m}, {out.data(), n, m, n}, {rest.data(), m, k, m}};
      Work work;
      const Factor G = in_place ? nullptr : modified(*F, V, update, work);
      if (in_place) work = modify(*F, V, update);
      ASSERT_EQ(work.pivot, -1);
      EXPECT_TRUE(same_bits(Doubles(out.topRows(first)), Doubles(z.topRows(first))));
      const Doubles made = download(in_place ? *F : *G), b = R.transpose() * z + V * Y.transpose();
      EXPECT_LT((made.transpose() * out - b).norm(), 100 * epsilon(precision) * b.norm());
      EXPECT_NEAR(rest.squaredNorm() + out.squaredNorm(), z.squaredNorm() + Y.squaredNorm(),
                  1000 * epsilon(precision) * (z.squaredNorm() + Y.squaredNorm()));
    });
}

/// Checks that a failing pivot is counted in the whole matrix, and that nothing has changed.
TEST(FactorRowsThatStay, WhatFailsIsCountedFromTheFirstRow) {
  const index_t n = 400;
  for (const Precision precision : precisions)
    for (const index_t k : {1, 40})
      for (const index_t failing : {130, 270, 399}) {
        Doubles V = beginning_with_zeros(n, k, 130);
        V.row(failing).setConstant(3);
        const Doubles R = in(precision, example(n));
        const Factor F = upload(R, precision);
        const Task downdate = task(*F, k, Sign::downdate);
        Work work;
        EXPECT_FALSE(modified(*F, V, downdate, work));
        EXPECT_EQ(work.pivot, failing);
        bool changed = true;
        EXPECT_EQ(modify(*F, V, downdate, &changed).pivot, failing);
        EXPECT_FALSE(changed);
        EXPECT_TRUE(same_bits(download(*F), R));
      }
}

}  // namespace
}  // namespace gpucholmod::test
