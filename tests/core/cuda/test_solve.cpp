#include <gtest/gtest.h>

#include "factor_call.h"

/// Solving with a factor in the memory of a GPU, for few right-hand sides: by the chain of a modification or, if the
/// chain refuses, by cuBLAS.
namespace gpucholmod::test {
namespace {

constexpr TriangularSolve kinds[] = {TriangularSolve::forward, TriangularSolve::back, TriangularSolve::both};

Doubles right_hand_sides(index_t n, index_t m) {
  Random random(5);
  return random.normal(n, m).cast<double>();
}

Doubles solved(const HeldFactor& F, TriangularSolve which, const Doubles& B) {
  Doubles X = B;
  F.solve(which, X.data(), B.cols());
  return X;
}

/// Checks residuals, also with a factor in single precision, as all arithmetic is double.
TEST(Solve, LeavesAResidualOfRounding) {
  for (const index_t n : {1, 64, 129, 700, 1100, 2300})
    for (const Precision precision : precisions) {
      const Doubles R = in(precision, example(n));
      const Factor F = upload(R, precision);
      for (const index_t m : {1, 8, 17, 64})
        for (const TriangularSolve which : {TriangularSolve::forward, TriangularSolve::back}) {
          const Doubles B = right_hand_sides(n, m);
          EXPECT_LT(substitution_residual(R, which, B, solved(*F, which, B)), 10) << "n " << n << ", m " << m;
        }
    }
}

/// Checks that the bits of a column do not depend on the columns beside it, nor on the number of thread blocks.
TEST(Solve, IsTheSameForOneColumnAsForMany) {
  for (const index_t n : {300, 2300}) {
    const Factor F = upload(example(n));
    const Doubles B = right_hand_sides(n, 64);
    for (const TriangularSolve which : kinds) {
      const Doubles X = solved(*F, which, B);
      EXPECT_TRUE(same_bits(solved(*F, which, B), X));
      for (const index_t q : {0, 7, 63}) EXPECT_TRUE(same_bits(solved(*F, which, B.col(q)), Doubles(X.col(q))));
      EXPECT_TRUE(same_bits(solved(*F, which, B.leftCols(20)), Doubles(X.leftCols(20))));
    }
    const Doubles one_after_the_other = solved(*F, TriangularSolve::back, solved(*F, TriangularSolve::forward, B));
    EXPECT_TRUE(same_bits(solved(*F, TriangularSolve::both, B), one_after_the_other));
  }
}

/// Checks diagonal blocks of condition 1e3 to 1e20, whose inverses are used as they are, refined, or refused.
TEST(Solve, LeavesAResidualOfRoundingWhereBlocksAreIllConditioned) {
  const index_t n = 700;
  for (const double decades : {3, 6, 12, 20}) {
    Doubles R = example(n);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j)
        if (i / 64 % 3 == 1) R(i, j) *= std::pow(10.0, -decades * double(i % 64) / 64);
    const Factor F = upload(R);
    for (const TriangularSolve which : {TriangularSolve::forward, TriangularSolve::back}) {
      const Doubles B = right_hand_sides(n, 3);
      EXPECT_LT(substitution_residual(R, which, B, solved(*F, which, B)), 40) << decades << " decades";
    }
  }
}

/// Checks more right-hand sides than the chain takes, and an inverse. Both are computed by cuBLAS in single precision,
/// whose numbers end at 3e38.
TEST(Solve, FindsWhatSinglePrecisionHasNoRoomFor) {
  const index_t n = 300, m = 200;
  for (const double size : {1e-22, 1e-30, 1e22}) {
    const Doubles R = in(Precision::single, size * example(n)), B = 1e20 * right_hand_sides(n, m);
    const Factor F = upload(R, Precision::single);
    for (const TriangularSolve which : {TriangularSolve::forward, TriangularSolve::back}) {
      const Doubles X = solved(*F, which, B), x = solved(*F, which, B.col(0));
      EXPECT_LT(substitution_residual(R, which, B, X), 40 * 0x1p29) << size;
      EXPECT_LT((X.col(0) - x).norm(), 1e-4 * x.norm()) << size;
    }
    const Doubles both = solved(*F, TriangularSolve::both, B),
                  one_by_one = solved(*F, TriangularSolve::back, solved(*F, TriangularSolve::forward, B));
    EXPECT_LT((both - one_by_one).norm(), 1e-4 * both.norm()) << size;
    Doubles inverse(n, n);
    F->inverse(inverse.data());
    const Matrix U = R.cast<real>(), identity = U.transpose().lazyProduct(U.lazyProduct(inverse.cast<real>()).eval());
    EXPECT_LT(double((identity - Matrix::Identity(n, n)).cwiseAbs().maxCoeff()), 1e-3) << size;
  }
}

TEST(Solve, KeepsColumnsThatAreNotFiniteToThemselves) {
  const index_t n = 700;
  const Factor F = upload(example(n));
  Doubles B = right_hand_sides(n, 3);
  const Doubles clean = solved(*F, TriangularSolve::both, B);
  B(650, 1) = nan;
  const Doubles X = solved(*F, TriangularSolve::both, B);
  for (const index_t q : {0, 2}) EXPECT_LT((X.col(q) - clean.col(q)).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_TRUE(std::isnan(X(650, 1)));
  const Doubles forward = solved(*F, TriangularSolve::forward, B);
  EXPECT_TRUE(std::isfinite(forward(649, 1)) && std::isnan(forward(650, 1)));
}

TEST(Solve, IsMeasured) {
  const auto F = upload(example(1100));
  const Doubles B = right_hand_sides(1100, 64);
  for (const bool by_cublas : {false, true}) {
    const double seconds = F->solve_seconds(B.data(), 64, by_cublas, 3);
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 1);
  }
  EXPECT_EQ(upload(Doubles(0, 0))->solve_seconds(nullptr, 3, false, 1), 0);
}

}  // namespace
}  // namespace gpucholmod::test
