#pragma once

#include "modify_contract.h"

/// The contract of modifications, for factors whose diagonal is not positive.
namespace gpucholmod::test {

/// Returns R with every third row, and the last row, multiplied by -1.
inline Doubles with_negative_rows(Doubles R) {
  for (index_t i = 0; i < R.rows(); ++i)
    if (i % 3 == 0 || i == R.rows() - 1) R.row(i) *= -1;
  return R;
}

/// Returns right-hand sides of R, which has turned rows, that correspond to `sides` of the factor with a positive
/// diagonal.
inline OwnedRightHandSides of_turned(const Doubles& R, OwnedRightHandSides sides) {
  for (index_t i = 0; i < R.rows() * sides.m; ++i)
    if (R(i % R.rows(), i % R.rows()) < 0) sides.z[i] *= -1;
  return sides;
}

/// Checks that a factor with turned rows gives the same bits as the factor with a positive diagonal. A factor that is
/// kept has a positive diagonal from the beginning.
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

/// Returns factors with zeros on the diagonal: one that is zero, and one with rows whose diagonal entry is 0 and rows
/// all of whose entries are 0.
inline std::vector<Doubles> with_zeros(const Doubles& R) {
  std::vector<Doubles> all(2, R);
  all[0].setZero();
  for (index_t i = 0; i < R.rows(); ++i) {
    if (i % 3 == 0) all[1](i, i) = 0;
    if (i % 6 == 0) all[1].row(i).setZero();
    if (i % 4 == 1) all[1].row(i) *= -1;
  }
  return all;
}

/// Returns an update for these factors: `asked` without negative weights, V being zero from row `last` on.
inline Modification update_above(Modification asked, index_t last) {
  for (double& w : asked.weights) w = std::abs(w);
  asked.V.bottomRows(asked.V.rows() - last).setZero();
  return asked;
}

/// Expects, in long double, small residuals as expect_modified() and expect_sides() do, of a result that need not be
/// definite.
inline void expect_semidefinite(const Doubles& before, const Modification& asked, const Doubles& after,
                                const OwnedRightHandSides& sides, double eps) {
  const index_t n = before.cols(), k = asked.k(), m = asked.sides.m;
  ASSERT_TRUE(after.allFinite());
  for (index_t j = 0; j < n; ++j) EXPECT_GE(after(j, j), 0);
  const real square = real(asked.scale) * asked.scale;
  const Matrix W = Eigen::Map<const Doubles>(asked.weights.data(), k, 1).cast<real>().asDiagonal();
  const Matrix V = asked.V.cast<real>(), A = gram(before), now = after.cast<real>();
  const Matrix more = product(product(V, W), V.transpose());
  const real size = square * norm_1(A) + norm_1(more);
  EXPECT_LE(double(norm_1(gram(after) - (square * A + more))), 30 * double(real(n + k) * eps * size));
  if (m == 0) return;
  const Matrix R = before.cast<real>(), z = z_of(asked.sides), z_now = z_of(sides);
  const Matrix Y = Eigen::Map<const Doubles>(asked.sides.Y.data(), m, k).cast<real>();
  const Matrix b = square * product(R.transpose(), z) + product(product(V, W), Y.transpose());
  const real of_b = square * norm_1(product(R.transpose().cwiseAbs(), z.cwiseAbs())) +
                    norm_1(product(product(V, W).cwiseAbs(), Y.transpose().cwiseAbs()));
  EXPECT_LE(double(norm_1(product(now.transpose(), z_now) - b)), 40 * eps * double(of_b));
  for (index_t j = 0; j < m; ++j) {
    real there = square * (asked.sides.rss[j] + z.col(j).squaredNorm());
    for (index_t q = 0; q < k; ++q) there += W(q, q) * Y(j, q) * Y(j, q);
    EXPECT_NEAR(sides.rss[j] + double(z_now.col(j).squaredNorm()), double(there), 40 * eps * double(there));
  }
}

TEST_P(ModifyContract, ZerosOnTheDiagonalAreUpdated) {
  if (!kind().takes_zeros) return;
  each_precision([&](Precision precision) {
    for (const double scale : {1.0, 0.5})
      each_problem({1, 9, 65, 130}, {0, 1, 3, 16}, {Change::update, Change::weighted}, precision, scale,
                   [&](const auto& p, const auto& given) {
        const index_t n = p.R.cols();
        for (const Doubles& R : with_zeros(p.R)) {
          const Modification asked = update_above(given, n - n / 4);
          const Call made{R, asked, stored(R, precision), {}};
          const Doubles before = made.storage->get();
          Modification of_given = asked;
          const Answer answer = made.storage->modify(of_given, no_poll);
          ASSERT_TRUE(answer.is_success());
          expect_semidefinite(before, of_given, made.storage->get(), answer.sides, epsilon(precision));
          if (R.isZero(0)) { EXPECT_TRUE(made.storage->get().bottomRows(n / 4).isZero(0)); }
        }
      });
  });
}

/// Checks that updates of a zero factor make a factor that is as good as any other.
TEST_P(ModifyContract, AFactorBeginsWithNothing) {
  if (!kind().takes_zeros) return;
  each_precision([&](Precision precision) {
    each_problem({9, 65}, {3}, {Change::mixed}, precision, 1, [&](const auto& p, const auto& asked) {
      const index_t n = p.R.cols();
      const auto storage = stored(Doubles::Zero(n, n), precision);
      Modification half;
      half.scale = 0.5;
      for (const index_t first : {index_t(0), n / 2}) {
        half.V = p.R.transpose().middleCols(first, first == 0 ? n / 2 : n - n / 2);
        half.weights.assign(half.k(), 1);
        ASSERT_TRUE(storage->modify(half, no_poll).is_success());
        half.scale = 1;
      }
      const Doubles R = storage->get();
      EXPECT_LT((R - p.R).norm(), 1000 * epsilon(precision) * p.R.norm());
      const Answer answer = storage->modify(asked, no_poll);
      ASSERT_TRUE(answer.is_success());
      expect_modified(R, asked, storage->get(), answer.sides, epsilon(precision));
    });
  });
}

/// Checks that taking columns away from a factor with a zero on the diagonal is an error that names the zero.
TEST_P(ModifyContract, ZerosOnTheDiagonalAreNotDowndated) {
  if (!kind().takes_zeros) return;
  each_precision([&](Precision precision) {
    each_problem({1, 9, 130}, {3}, {Change::downdate, Change::mixed}, precision, 1,
                 [&](const auto& p, const auto& asked) {
      Doubles R = p.R;
      const index_t j = p.R.cols() / 2;
      R(j, j) = 0;
      R.row(R.rows() - 1) *= j == R.rows() - 1 ? 1 : -1;
      const auto expect_zero = [&](const std::optional<Failure>& failure) {
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->code, ErrorCode::bad_diagonal);
        EXPECT_EQ(std::max(failure->row, failure->col), j + 1);
      };
      const auto storage = stored(R, precision);
      const Doubles before = storage->get();
      const Answer answer = storage->modify(asked, no_poll);
      expect_zero(answer.failure);
      EXPECT_FALSE(storage->begun());
      EXPECT_TRUE(same_bits(storage->get(), before));
      EXPECT_TRUE(same_bits(answer.sides, asked.sides));
    });
  });
}

}  // namespace gpucholmod::test
