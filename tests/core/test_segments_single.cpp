#include <array>

#include "grid_measure.h"

/// Segments of a factor of floats on a card that computes with floats too: the problems and the bounds are those of
/// doubles, eps being that of single precision. Reference: inst/design/guard.md.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

SegmentsRun in_single(SegmentsRun how = {}) {
  how.card = Simulated::graphics;
  return how;
}

class SingleOn : public testing::TestWithParam<int> {};

TEST_P(SingleOn, ResidualRatio) {
  const int which = GetParam();
  const Level level{eps<float>};
  const index_t n = sanitized ? 130 : 200, k = std::array<index_t, 6>{1, 8, 9, 16, 17, 32}[which % 6];
  Random random(5);
  if (which < int(std::size(cases))) return measure<float>(cases[which].make(n, k, level, random), in_single());
  const Family& family = families[which - std::size(cases)];
  const Matrix R = family.factor(n, level, random);
  for (const Sign sign : signs) measure<float>(family.make(sign, R, k, level, random), in_single());
}

INSTANTIATE_TEST_SUITE_P(SegmentsInSingle, SingleOn, testing::Range(0, int(std::size(cases) + std::size(families))),
                         [](const testing::TestParamInfo<int>& info) {
                           const int family = info.param - int(std::size(cases));
                           return std::string(family < 0 ? cases[info.param].name : families[family].name);
                         });

/// Diagonal blocks of a condition far above 1 / sqrt(u), about 4,000, none of which the guard rejects, as P is small.
/// The residual is as small as with other blocks.
TEST(SegmentsInSingle, NeedNoWellConditionedBlocks) {
  Random random(9);
  const index_t n = 128, k = 9;
  for (const real condition : {1e5L, 1e8L})
    for (const bool graded : {false, true}) {
      const Matrix R = graded ? Matrix(powers(0, -std::log10(condition), n).asDiagonal() * well_conditioned(n, random))
                              : random_with_condition(condition, n, random);
      const Matrix P = random.normal(n, k) * (0.5L / std::sqrt(real(n)));
      for (const Sign sign : signs) {
        const Problem<double> p = stored_as<float>(problem(sign, R, product(R.transpose(), P)));
        const SegmentsResult<float> result = run_segments<float>(p, in_single());
        EXPECT_EQ(result.done.pivot, -1);
        EXPECT_EQ(result.done.fallbacks, 0);
        EXPECT_LT(Residual(p).ratio(Stored<double>(result.R.cast<double>()), eps<float>) * (n + k), 40)
            << double(condition) << graded;
      }
    }
}

/// Checks that neither the schedule nor panels change a bit.
TEST(SegmentsInSingle, DoNotDependOnTheSchedule) {
  PassOutcome done;
  for (const index_t k : {7, 25})
    for (const Problem<double>& given : of_every_kind(200, k, eps<float>)) {
      const Problem<double> p = stored_as<float>(given);
      const SegmentsResult<float> expected = run_segments<float>(p, in_single());
      expect_sound(expected);
      done.fallbacks += expected.done.fallbacks;
      done.rescalings += expected.done.rescalings;
      for (const SegmentsRun& how : {SegmentsRun{1, 1, REACH + 1, Into::other_memory, 2, 1},
                                     {2, 5, 24, Into::place, 3, 3},
                                     outside({2, 3, 12, Into::other_memory, 2, 1}),
                                     outside({3, 2, 12, Into::place, 0, 2, 1})}) {
        const SegmentsResult<float> result = run_segments<float>(p, in_single(how));
        EXPECT_EQ(result.done.pivot, expected.done.pivot);
        EXPECT_TRUE(expected.done.pivot >= 0 || same_bits(result.R, expected.R)) << how.panels;
      }
    }
  EXPECT_GT(done.fallbacks, 0);
  EXPECT_GT(done.rescalings, 0);
}

/// Checks more row blocks than the chain reaches, and than teams that solve: R~ is near that of a card that computes in
/// double precision.
TEST(SegmentsInSingle, HaveManyRowBlocks) {
  const index_t n = 900, k = 8;
  Random random(4);
  for (const Sign sign : signs) {
    Problem<double> p{sign, Stored<double>::Identity(n, n), Stored<double>(n, k)};
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < j; ++i) p.R(i, j) = double(random.uniform() - 0.5L) / std::sqrt(n);
    for (index_t i = 0; i < n * k; ++i) p.V.data()[i] = 0.5 * double(random.uniform() - 0.5L) / std::sqrt(n);
    p = stored_as<float>(p);
    const SegmentsResult<float> result = run_segments<float>(p, in_single()), expected = run_segments<float>(p);
    ASSERT_EQ(result.done.pivot, -1);
    expect_sound(result);
    EXPECT_LT((result.R - expected.R).cwiseAbs().maxCoeff(), 20 * eps<float> * expected.R.cwiseAbs().maxCoeff());
  }
}

TEST(SegmentsInSingle, FailAtTheSamePivot) {
  const index_t n = 260;
  for (const index_t pivot : {0, 100, 200}) {
    Problem<double> p{Sign::downdate, Stored<double>::Identity(n, n), Stored<double>::Constant(n, 2, 1e-3)};
    p.V(pivot, 1) = 2;
    for (const Into into : {Into::other_memory, Into::nowhere}) {
      SegmentsRun how;
      how.into = into;
      const SegmentsResult<float> result = run_segments<float>(p, in_single(how));
      EXPECT_EQ(result.done.pivot, pivot);
      EXPECT_TRUE(result.input_kept);
    }
  }
}

/// Checks that 2^e R and 2^e V give 2^e R~, to the last bit.
TEST(SegmentsInSingle, AScaleChangesNoBit) {
  for (const Problem<double>& given : of_every_kind(128, 9, eps<float>)) {
    const Problem<double> p = stored_as<float>(given);
    const Stored<float> R = run_segments<float>(p, in_single()).R;
    for (const int e : {50, -50}) {
      const double scale = std::ldexp(1.0, e);
      const SegmentsResult<float> scaled = run_segments<float>({p.sign, p.R * scale, p.V * scale}, in_single());
      ASSERT_EQ(scaled.done.pivot, -1);
      EXPECT_TRUE(same_bits(scaled.R, Stored<float>(R * float(scale)))) << "2^" << e;
    }
  }
}

TEST(SegmentsInSingle, EndWithNumbersThatAreNone) {
  const Problem<double> sound = random_problem(Sign::update, 200, 9);
  for (const index_t row : {0, 70, 199})
    for (const bool in_R : {false, true}) {
      Problem<double> p = sound;
      (in_R ? p.R(row, 199) : p.V(row, 3)) = std::numeric_limits<double>::quiet_NaN();
      const SegmentsResult<float> result = run_segments<float>(p, in_single());
      EXPECT_TRUE(result.done.pivot >= 0 || !result.R.allFinite()) << "row " << row << ", in R " << in_R;
    }
}

}  // namespace
}  // namespace gpucholmod::test
