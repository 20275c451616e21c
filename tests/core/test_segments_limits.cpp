#include "grid_measure.h"

/// Modifications by segments and by steps, on the CPU, at their limits: downdates that fail or nearly fail, and numbers
/// far from one.
namespace gpucholmod::test {
namespace {

/// Checks that segments and steps find `pivot` with any number of workers, with and without writing, and leave their
/// input alone. Without writing, no result is written at all.
template <class T>
void expect_pivot(const Problem<double>& given, index_t pivot) {
  const Problem<double> p = stored_as<T>(given);
  SCOPED_TRACE("pivot " + std::to_string(pivot) + ", k " + std::to_string(p.V.cols()));
  EXPECT_EQ(call(p, by(ways[0])).outcome.pivot, pivot);
  for (const bool fall_back : {false, true})
    for (const int workers : {1, 3})
      for (const Into into : {Into::other_memory, Into::nowhere}) {
        SegmentsRun how;
        how.workers = workers;
        how.into = into;
        how.by_steps = fall_back;
        const SegmentsResult<T> result = run_segments<T>(p, how);
        EXPECT_EQ(result.done.pivot, pivot) << workers << " workers";
        EXPECT_TRUE(result.input_kept);
        if (into == Into::nowhere) {
          EXPECT_TRUE(result.memory.array().isNaN().all());
        }
      }
}

/// Checks V for which P = R^-T V has small rows but for row `pivot`. Leading minors of A - VV' = R'(I - PP')R are
/// positive up to order `pivot`, and the next minor is not.
TEST(SegmentsPivot, IsTheFirstLeadingMinorThatIsNotPositive) {
  const index_t n = 260;
  Random random(11);
  const Matrix R = well_conditioned(n, random);
  for (const index_t pivot : {0, 1, 63, 64, 100, 128, 200, 256, 259})
    for (const index_t k : {1, 16}) {
      Matrix P = random.normal(n, k) / (4 * std::sqrt(real(n * k)));
      P.row(pivot) *= 1.5 / P.row(pivot).norm();
      const Problem<double> p = problem(Sign::downdate, R, product(R.transpose(), P));
      ASSERT_EQ(first_indefinite(Residual(p).target()), pivot);
      expect_pivot<double>(p, pivot);
      if (pivot % 64 == 0) expect_pivot<float>(p, pivot);
    }
}

/// Checks V = R'P with P'P = (1 - gap) I: A - VV' is positive definite exactly if gap > 0. As the last k rows of P are
/// large, the first minor that fails is clearly that of order n - k + 1.
TEST(SegmentsPivot, TellsJustUnderOneFromJustOver) {
  Random random(12);
  for (const index_t n : {16, 260})
    for (const index_t k : {1, 16}) {
      const Matrix R = well_conditioned(n, random);
      Matrix seed = random.normal(n, k) / (8 * std::sqrt(real(n * k)));
      seed.bottomRows(k) += Matrix::Identity(k, k);
      expect_pivot<double>(contraction(R, seed, 1e-8), -1);
      expect_pivot<double>(contraction(R, seed, -1e-8), n - k);
      expect_pivot<float>(contraction(R, seed, 1e-3), -1);
      expect_pivot<float>(contraction(R, seed, -1e-3), n - k);
    }
}

TEST(SegmentsPivot, ExactlyZeroIsNotPositive) {
  expect_pivot<double>({Sign::downdate, Stored<double>::Constant(1, 1, 3), Stored<double>::Constant(1, 1, -3)}, 0);
}

/// Checks that 2^e R and 2^e V give 2^e R~, to the last bit, as long as squares are within range (beyond, steps compute
/// in another way). e is even, since square roots are taken. n is such that R is not continued by an identity, which
/// has a scale of its own.
template <class T>
void expect_scaled(const Problem<double>& given, int e) {
  const Problem<double> p = stored_as<T>(given);
  const double scale = std::ldexp(1.0, e);
  for (const bool fall_back : {false, true}) {
    SegmentsRun how;
    how.by_steps = fall_back;
    const Stored<T> R = run_segments<T>(p, how).R;
    const SegmentsResult<T> scaled = run_segments<T>({p.sign, p.R * scale, p.V * scale}, how);
    ASSERT_EQ(scaled.done.pivot, -1);
    EXPECT_TRUE(same_bits(scaled.R, Stored<T>(R * T(scale))))
        << "2^" << e << (fall_back ? ", always falling back" : "");
  }
}

TEST(SegmentsRange, AScaleChangesNoBit) {
  for (const Problem<double>& p : of_every_kind(128, 9, eps<double>))
    for (const int e : {200, -200}) expect_scaled<double>(p, e);
  for (const Problem<double>& p : of_every_kind(128, 9, eps<float>))
    for (const int e : {60, -60}) expect_scaled<float>(p, e);
}

/// Scales at which squares of the entries are out of range.
TEST(SegmentsRange, ResidualRatioFarFromOne) {
  for (const Sign sign : signs) {
    const Problem<double> p = random_problem(sign, 130, 5);
    for (const double scale : {1e170, 1e-170, 1e300, 1e-300}) measure<double>({sign, p.R * scale, p.V * scale});
  }
}

TEST(SegmentsRange, ResidualRatioWhereVAndRDiffer) {
  const Problem<double> p = random_problem(Sign::update, 130, 5);
  for (const double scale : {1e30, 1e-30, 1e170, 1e-170}) measure<double>({p.sign, p.R, p.V * scale});
}

/// R = diag(1, r), V' = (0, v): |R~_22 - rho| < 8 eps rho, rho = sqrt(r^2 + sigma v^2), however small r is beside 1,
/// and however close v is to it.
TEST(SegmentsRange, ASmallEntryKeepsItsOwnScale) {
  for (const Sign sign : signs)
    for (const double r : {1.0, 0.7, 1e-30, 1e-170, 1e-300})
      for (const double v : {0.5 * r, -0.9 * r, (1 - 1e-6) * r, (1 - 0x1p-50) * r}) {
        const SegmentsResult<double> result =
            run_segments(Problem<double>{sign, Eigen::Vector2d(1, r).asDiagonal(), Eigen::Vector2d(0, v)});
        ASSERT_EQ(result.done.pivot, -1);
        const real square = sign == Sign::update ? real(r) * r + real(v) * v : (real(r) - v) * (real(r) + v);
        const real rho = std::sqrt(square);
        EXPECT_LT(std::abs(result.R(1, 1) - rho), 8 * eps<double> * rho) << "r " << r << ", v " << v;
      }
}

/// A pivot without a reciprocal, and a pivot whose square is too large: Householder steps take their row blocks.
TEST(SegmentsRange, TakesPivotsOfAnySize) {
  Random random(12);
  const index_t n = 100, tiny = 5, huge = 70;
  for (const Sign sign : signs)
    for (const double beside : {0.0, 0.5}) {  // entry of V in the row of a pivot, divided by the pivot
      const Problem<double> p0 = sign == Sign::update
                                     ? problem(sign, well_conditioned(n, random), random.normal(n, 3) / 10)
                                     : undo(well_conditioned(n, random), random.normal(n, 3) / 10);
      Problem<double> p{sign, p0.R, Stored<double>::Zero(n, 5)};
      p.V.leftCols(3) = p0.V;
      for (const auto& [j, pivot, column] : {std::tuple(tiny, 1e-310, 3), {huge, 1e180, 4}}) {
        p.R.row(j).setZero();
        p.R.col(j).setZero();
        p.R(j, j) = pivot;
        p.V.row(j).setZero();
        p.V(j, column) = beside * pivot;
      }
      const SegmentsResult<double> result = run_segments(p);
      if (sign == Sign::downdate && beside > 0) {  // a pivot that is no normal number would become smaller still
        EXPECT_TRUE(result.done.pivot == tiny && result.done.stop == block_columns::too_small);
        continue;
      }
      EXPECT_TRUE(result.done.pivot == -1 && result.R.allFinite());
      const double grown = std::sqrt(1 + (sign == Sign::update ? 1 : -1) * beside * beside);
      EXPECT_NEAR(result.R(tiny, tiny) / (grown * 1e-310), 1, 1e-12);
      EXPECT_NEAR(result.R(huge, huge) / (grown * 1e180), 1, 1e-12);
    }
}

}  // namespace
}  // namespace gpucholmod::test
