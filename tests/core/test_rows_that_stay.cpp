#include <gtest/gtest.h>

#include <utility>

#include "sweep_call.h"

/// Modifications by columns of V that begin with zeros.
namespace gpucholmod::test {
namespace {

/// Checks that rows above the first number of V that is not 0 stay, and that the rest is that of the trailing matrix.
template <class T>
void keeps_rows_above_v() {
  each_level([](Instructions instructions) {
    for (const Sign sign : signs)
      for (const index_t n : {8, 50, 131})
        for (const index_t k : {1, 3, 16})
          for (const index_t zeros : {3, 8, 49, 128, 131}) {
            SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + ", zeros " + std::to_string(zeros));
            Problem<double> p = random_problem(sign, n, k);
            p.V *= 1e-2;
            p.V.topRows(std::min(zeros, n)).setZero();
            const index_t first = std::min(zeros, n) / 8 * 8, rest = n - first;
            Sweep how;
            how.instructions = instructions;
            Stored<T> expected = p.R.cast<T>();
            if (rest > 0) {
              const Problem<double> trailing{p.sign, p.R.bottomRightCorner(rest, rest), p.V.bottomRows(rest)};
              expected.bottomRightCorner(rest, rest) = sweep<T>(trailing, how).R;
            }
            for (int i = 0; i < 6; ++i) {
              how.threads = std::array{1, 3}[i % 2];
              how.uplo = i % 3 == 2 ? Uplo::lower : Uplo::upper;
              how.panel = how.uplo == Uplo::upper ? std::array{0, 32}[i / 3] : 0;
              how.in_place = i % 4 > 1;
              Swept<T> got = sweep<T>(p, how);
              ASSERT_EQ(got.pivot, -1);
              if (how.uplo == Uplo::lower) got.R.transposeInPlace();
              ASSERT_TRUE(same_bits(got.R, expected)) << "call " << i;
              how.discard = true;
              ASSERT_EQ(sweep<T>(p, how).pivot, -1);
              how.discard = false;
            }
          }
  });
}
TEST(BlockedSweep, KeepsRowsAboveTheFirstNumberOfV) {
  keeps_rows_above_v<double>();
  keeps_rows_above_v<float>();
}

/// Checks that right-hand sides of rows that stay do so, too. A diagonal entry of these rows that is no positive normal
/// number fails, and a number that is not finite is among the squares.
TEST(BlockedSweep, LooksAtRowsThatStay) {
  const index_t n = 60, k = 2, zeros = 40;
  Problem<double> p = random_problem(Sign::update, n, k);
  p.V.topRows(zeros).setZero();
  const Stored<double> V = p.V;
  Stored<double> R = p.R, out(n, n);
  const auto run = [&](const RightHandSideView* right) {
    cpu::BlockedSweep<double> sweep({V.data(), n, k, n}, 0, 1, Uplo::upper, Instructions::plain, 1);
    const index_t pivot = sweep.run({R.data(), n, n, n}, {out.data(), n, n, n}, true, right, unwatched);
    return std::pair(pivot, sweep.squares());
  };
  const Stored<double> z = Stored<double>::Random(n, 3), Y = Stored<double>::Random(3, k);
  Stored<double> made = Stored<double>::Constant(n, 3, blank), left(3, k);
  const RightHandSideView right{
      {z.data(), n, 3, n}, {Y.data(), 3, k, 3}, {made.data(), n, 3, n}, {left.data(), 3, k, 3}};
  EXPECT_EQ(run(&right).first, -1);
  EXPECT_TRUE(same_bits(Stored<double>(made.topRows(zeros)), Stored<double>(z.topRows(zeros))));
  const Stored<double> b = R.transpose() * z + V * Y.transpose(), of_made = out.transpose() * made;
  EXPECT_LT((of_made - b).norm(), 1e-14 * b.norm());
  EXPECT_NEAR(left.squaredNorm() + made.squaredNorm(), z.squaredNorm() + Y.squaredNorm(), 1e-12 * z.squaredNorm());

  R(3, 50) = std::nan("");
  EXPECT_FALSE(std::isfinite(run(nullptr).second));
  R = p.R;
  R(7, 7) = -R(7, 7);
  EXPECT_EQ(run(nullptr).first, 7);
  R(7, 7) = std::numeric_limits<double>::min();
  EXPECT_EQ(run(nullptr), std::pair(index_t(-1), std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace gpucholmod::test
