#pragma once

#include "modify_contract.h"

/// The contract of modifications of factors whose diagonal is not positive.
namespace gpucholmod::test {

/// R with every third row, and the last, multiplied by -1.
inline Doubles with_negative_rows(Doubles R) {
  for (index_t i = 0; i < R.rows(); ++i)
    if (i % 3 == 0 || i == R.rows() - 1) R.row(i) *= -1;
  return R;
}

/// Right-hand sides of R, which has turned rows, that are `sides` of the factor with a positive diagonal.
inline OwnedRightHandSides of_turned(const Doubles& R, OwnedRightHandSides sides) {
  for (index_t i = 0; i < R.rows() * sides.m; ++i)
    if (R(i % R.rows(), i % R.rows()) < 0) sides.z[i] *= -1;
  return sides;
}

/// A factor with negative rows is modified to the same bits as the one with a positive diagonal. One that is kept has a
/// positive diagonal from the beginning.
TEST_P(ModifyContract, RowsWithANegativeDiagonalAreTurned) {
  each_precision([&](Precision precision) {
    each_problem({1, 9, 65, 130}, {0, 1, 3, 16}, all_changes, precision, 1, [&](const auto& p, const auto& asked) {
      const auto storage = stored(with_negative_rows(p.R), precision);
      Modification of_given = asked;
      of_given.sides = of_turned(storage->get(), asked.sides);
      const Answer answer = storage->modify(of_given, no_poll);
      const Call plain = call(p.R, asked, precision);
      ASSERT_TRUE(answer.is_success());
      EXPECT_EQ(storage->begun(), plain.storage->begun());
      EXPECT_TRUE(same_bits(storage->get(), plain.storage->get()));
      EXPECT_TRUE(same_bits(answer.sides, plain.answer.sides));
    });
  });
}

TEST_P(ModifyContract, AFactorWithANegativeDiagonalThatCannotBeModifiedStaysAsItWas) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  each_precision([&](Precision precision) {
    each_problem({1, 9, 130}, {3, 16}, {Change::downdate, Change::mixed}, precision, 1,
                 [&](const auto& p, const auto& possible) {
      const index_t n = p.R.cols();
      for (const double size : {64 * p.R.norm(), nan}) {
        const auto storage = stored(with_negative_rows(p.R), precision);
        const Doubles given = storage->get();
        Modification asked = possible;
        asked.V.col(asked.k() - 1).setZero();
        asked.V(n / 2, asked.k() - 1) = size;
        asked.sides = of_turned(given, asked.sides);
        const Answer answer = storage->modify(asked, no_poll);
        if (size > 0) { EXPECT_EQ(answer.pivot, n / 2); }
        else { EXPECT_TRUE(answer.failure && answer.failure->code == ErrorCode::not_finite); }
        EXPECT_FALSE(storage->begun());
        EXPECT_TRUE(same_bits(storage->get(), given));
        EXPECT_TRUE(same_bits(answer.sides, asked.sides));
      }
    });
  });
}

}  // namespace gpucholmod::test
