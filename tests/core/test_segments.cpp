#include <array>

#include "grid_measure.h"

/// Modifications by segments, on the CPU.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

struct Size {
  index_t n, k;
};

/// Returns some sizes, which differ from one problem to the next.
std::vector<Size> sizes_for(int problem, Precision precision) {
  const auto width = [=](int i) { return std::array<index_t, 6>{1, 8, 9, 16, 17, 32}[(problem + i) % 6]; };
  if (sanitized) return {{130, width(0)}};
  if (precision == Precision::single) return {{130, width(1)}, {200, width(4)}};
  return {{130, width(0)}, {130, width(3)}, {260, width(2)}};
}

/// Returns the problems of number `which`: the cases, then the families, these with both signs.
std::vector<Problem<double>> problems(int which, Size size, Precision precision, Random& random) {
  const Level level{epsilon(precision)};
  if (which < int(std::size(cases))) return {cases[which].make(size.n, size.k, level, random)};
  const Family& family = families[which - std::size(cases)];
  const Matrix R = family.factor(size.n, level, random);
  return {family.make(Sign::update, R, size.k, level, random), family.make(Sign::downdate, R, size.k, level, random)};
}

class SegmentsOn : public testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(SegmentsOn, ResidualRatio) {
  const auto [which, precision] = GetParam();
  Random random(5);
  for (const Size size : sizes_for(which, precision))
    for (const Problem<double>& p : problems(which, size, precision, random))
      measure(p, precision);
}

std::string name(const testing::TestParamInfo<std::tuple<int, Precision>>& info) {
  const int which = std::get<0>(info.param), family = which - int(std::size(cases));
  return std::string(family < 0 ? cases[which].name : families[family].name) +
         (std::get<1>(info.param) == Precision::single ? "_float" : "_double");
}

INSTANTIATE_TEST_SUITE_P(Segments, SegmentsOn,
                         testing::Combine(testing::Range(0, int(std::size(cases) + std::size(families))),
                                          testing::ValuesIn(precisions)),
                         name);

/// Checks agreement with the reference method, for well-conditioned R: to 1e-12 of the largest entry.
TEST(Segments, AgreesWithTheReferenceInAnySize) {
  Random random(7);
  for (const index_t n : {1, 2, 63, 64, 65, 127, 128, 129, 300}) {
    if (sanitized && n == 300) continue;
    const Matrix R = well_conditioned(n, random);
    for (const index_t k : {1, 7, 8, 9, 16, 17, 31, 32}) {
      if (n > 65 && (n + k) % 4 != 0) continue;  // to make the problems takes long
      const Matrix V = random.normal(n, k) / std::sqrt(real(n));
      for (const Sign sign : signs) {
        SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k));
        const Problem<double> p = sign == Sign::update ? problem(sign, R, V) : undo(R, V);
        const SegmentsResult<double> result = run_segments(p);
        const Stored<double> reference = call(p, by(ways[0])).R;
        ASSERT_EQ(result.done.pivot, -1);
        expect_sound(result);
        EXPECT_LT((result.R - reference).cwiseAbs().maxCoeff(), 1e-12 * reference.cwiseAbs().maxCoeff());
      }
    }
  }
}

Stored<double> small_rows(index_t n, index_t k, double norm) {
  Random random(9);
  return (random.normal(n, k) * (norm / std::sqrt(real(n * k)))).cast<double>();
}

bool same(const PassOutcome& a, const PassOutcome& b) {
  return a.pivot == b.pivot && a.fallbacks == b.fallbacks && a.rescalings == b.rescalings && a.renewals == b.renewals;
}

constexpr int narrow = REACH + 1, wide = 1000;  ///< look-ahead distances: the least, and one beyond every factor
constexpr Into other = Into::other_memory;
const SegmentsRun schedules[] = {
    {1, 1, narrow, other, 0, 1}, {2, 2, 12, other, 2, 3},
    {7, 5, 10, other, 5, 2}, {3, 2, narrow, other, 3, 5},
    {1, 5, wide, other, 2, 1},
    {2, 5, wide, Into::place, 3, 2},
    {7, 2, narrow, Into::place, 0, 5},
    {3, 2, 12, Into::place, 2, 3},
    outside({7, 1, 12, other, 3, 1}),
    outside({3, 2, narrow, other, 2, 2}),
    outside({2, 3, 10, Into::place, 5, 1}), outside({3, 2, 12, other, 4, 2}, 1), outside({2, 1, 10, Into::place, 2}, 3),
    by_three({7, 2, narrow, other, 3, 1}), by_three({4, 1, 12, other, 2}), by_three(outside({9, 2, 9, other, 3, 2}, 1)),
    by_three({3, 2, narrow, Into::place, 5, 2}), by_three(outside({7, 5, narrow, Into::place, 2, 3})),
};

/// Checks that the order in which teams proceed changes no bit of the result, and no count of what was done. Returns
/// the outcome of the pass.
template <class T>
PassOutcome expect_same_in_any_schedule(const Problem<double>& p) {
  const SegmentsResult<T> expected = run_segments<T>(p);
  expect_sound(expected);
  for (const SegmentsRun& how : schedules) {
    SCOPED_TRACE("workers " + std::to_string(how.workers) + ", finishers " + std::to_string(how.finishers) +
                 ", window " + std::to_string(how.window) + ", delay " + std::to_string(how.delay) +
                 (how.outside > 0 ? ", V outside" : "") + (how.by_three ? ", by three" : ""));
    const SegmentsResult<T> result = run_segments<T>(p, how);
    EXPECT_TRUE(same_bits(result.memory, expected.memory));
    EXPECT_TRUE(same(result.done, expected.done));
    EXPECT_EQ(result.input_kept, how.into != Into::place);
  }
  return expected.done;
}

TEST(Segments, DoesNotDependOnTheScheduleOfManyRowBlocks) {
  const index_t n = 960;
  const PassOutcome plain = expect_same_in_any_schedule<double>(many_blocks(Sign::update, small_rows(n, 16, 4)));
  EXPECT_TRUE(same(plain, {}));
  EXPECT_GT(expect_same_in_any_schedule<double>(many_blocks(Sign::update, small_rows(n, 5, 20))).renewals, 0);
  EXPECT_GT(expect_same_in_any_schedule<float>(many_blocks(Sign::update, small_rows(n, 7, 20))).renewals, 0);
  if (sanitized) return;
  Stored<double> P = small_rows(n, 17, 0.02);
  P.row(600) *= 0.9995 / P.row(600).norm();
  const PassOutcome hard = expect_same_in_any_schedule<double>(many_blocks(Sign::downdate, P));
  EXPECT_EQ(hard.fallbacks, 1);
  EXPECT_GT(hard.rescalings, 0);
  EXPECT_EQ(hard.renewals, 0);
}

TEST(Segments, DoesNotDependOnTheScheduleOfRefusals) {
  PassOutcome done;
  for (const Problem<double>& p : of_every_kind(sanitized ? 200 : 300, 16)) {
    const PassOutcome of = expect_same_in_any_schedule<double>(p);
    done.fallbacks += of.fallbacks;
    done.rescalings += of.rescalings;
  }
  EXPECT_GT(done.fallbacks, 0);
  EXPECT_GT(done.rescalings, 0);
}

/// Returns `how` with `count` ranks, each with memory of its own.
SegmentsRun ranks(int count, int lead, SegmentsRun how) {
  how.ranks = count;
  how.lead = lead;
  return how;
}
const SegmentsRun on_ranks[] = {
    ranks(2, 0, {8, 2, narrow, other, 3}), ranks(3, 2, outside({8, 3, 12, other, 5})),
    ranks(3, 1, {8, 1, narrow, Into::place, 2}), ranks(2, 1, by_three({8, 3, 12, other})),
    ranks(2, 1, by_three(outside({8, 3, 12, Into::place, 3}))), ranks(2, 0, by_three(outside({8, 3, 12, other}, 1)))};

template <class T>
PassOutcome expect_same_on_ranks(const Problem<double>& p) {
  const SegmentsResult<T> expected = run_segments<T>(p);
  for (const SegmentsRun& how : on_ranks) {
    SCOPED_TRACE("ranks " + std::to_string(how.ranks) + ", finishers " + std::to_string(how.finishers));
    const SegmentsResult<T> result = run_segments<T>(p, how);
    EXPECT_TRUE(expected.done.pivot >= 0 || same_bits(result.R, expected.R));
    EXPECT_TRUE(same(result.done, expected.done));
    EXPECT_EQ(result.input_kept, how.into != Into::place);
  }
  return expected.done;
}

TEST(Segments, DoesNotDependOnTheNumberOfRanks) {
  PassOutcome done;
  const auto count = [&](const PassOutcome& of) {
    done.fallbacks += of.fallbacks;
    done.rescalings += of.rescalings;
  };
  for (const Problem<double>& p : of_every_kind(sanitized ? 200 : 300, 16)) count(expect_same_on_ranks<double>(p));
  Random random(10);
  for (const index_t n : {1, 129})
    count(expect_same_on_ranks<double>(problem(Sign::update, well_conditioned(n, random), random.normal(n, 3))));
  EXPECT_GT(done.fallbacks, 0);
  EXPECT_GT(done.rescalings, 0);
  EXPECT_GT(expect_same_on_ranks<float>(many_blocks(Sign::update, small_rows(960, 7, 20))).renewals, 0);
  if (sanitized) return;
  expect_same_on_ranks<double>(many_blocks(Sign::update, small_rows(960, 32, 0.5)));
  Stored<double> P = small_rows(960, 17, 0.02);
  P.row(600) *= 0.9995 / P.row(600).norm();
  EXPECT_EQ(expect_same_on_ranks<double>(many_blocks(Sign::downdate, P)).fallbacks, 1);
}

/// Checks that a factor modified by panels gets the same bits, also if more row blocks are above a panel than the chain
/// reaches.
TEST(Segments, ByPanelsIsTheSame) {
  PassOutcome done;
  std::vector<Problem<double>> problems = of_every_kind(sanitized ? 200 : 300, 16);
  for (const Sign sign : signs) problems.push_back(many_blocks(sign, small_rows(960, 16, 0.5)));
  Stored<double> hard = small_rows(960, 9, 1);
  hard.row(100) *= 300;
  hard.row(700) *= 300;
  problems.push_back(many_blocks(Sign::update, hard));
  problems.push_back(growing_metric(960, 9, 1000));
  for (const Problem<double>& p : problems) {
    SegmentsRun how;
    how.into = Into::place;
    const SegmentsResult<double> whole = run_segments(p, how);
    done.fallbacks += whole.done.fallbacks;
    done.rescalings += whole.done.rescalings;
    done.renewals += whole.done.renewals;
    for (const int width : {1, 2, 100}) {
      how.panels = width;
      how.delay = unsigned(width);
      const SegmentsResult<double> panels = run_segments(p, how);
      EXPECT_TRUE(same(panels.done, whole.done)) << width;
      EXPECT_TRUE(whole.done.pivot >= 0 || same_bits(panels.R, whole.R)) << width;
    }
  }
  EXPECT_GT(done.fallbacks, 0);
  EXPECT_GT(done.rescalings, 0);
  EXPECT_GT(done.renewals, 0);
}

/// Checks that rows above the first nonzero row of V keep their bits, and all rows if V is zero; by steps, too.
TEST(Segments, LeavesAloneWhatVDoesNotTouch) {
  const index_t n = 200;
  for (const Sign sign : signs)
    for (const bool by_steps : {false, true})
      for (const index_t first : {index_t(70), index_t(130), n}) {
        Problem<double> p = random_problem(sign, n, 5);
        p.V.topRows(first).setZero();
        p.V *= 0.01;
        SegmentsRun how;
        how.by_steps = by_steps;
        const SegmentsResult<double> result = run_segments(p, how);
        EXPECT_EQ(result.done.pivot, -1);
        const Stored<double> R = p.R.triangularView<Eigen::Upper>();
        EXPECT_TRUE(same_bits(Stored<double>(result.R.topRows(first)), Stored<double>(R.topRows(first))))
            << first << by_steps;
        EXPECT_EQ(same_bits(result.R, R), first == n);
      }
}

/// Checks that what is written is multiplied by the scale, but not behind the end of R; by steps, too.
TEST(Segments, ScalesWhatItWrites) {
  const index_t n = 200;
  for (const Problem<double>& p : of_every_kind(n, 9))
    for (const bool by_steps : {false, true}) {
      SegmentsRun how;
      how.by_steps = by_steps;
      const SegmentsResult<double> plain = run_segments(p, how);
      how.scaling = {4, n};
      const SegmentsResult<double> scaled = run_segments(p, how);
      EXPECT_TRUE(same(plain.done, scaled.done));
      if (plain.done.pivot >= 0) continue;
      EXPECT_TRUE(same_bits(scaled.R, Stored<double>(4 * plain.R)));
      const index_t behind = plain.memory.cols() - n;
      const auto identity = [&](const Stored<double>& memory) {
        return Stored<double>(memory.block(n, n, behind, behind));
      };
      EXPECT_TRUE(same_bits(identity(scaled.memory), identity(plain.memory)));
    }
}

TEST(Segments, FallsBackAndRescalesOnlyWhereItMust) {
  for (const Size size : {Size{130, 1}, {130, 16}, {300, 32}})
    EXPECT_TRUE(same(run_segments(random_problem(Sign::update, size.n, size.k)).done, {}));
}

/// Checks that a segment goes on with another metric if the metric of an update grows slowly, and ends if the other
/// metric has grown as well.
TEST(Segments, RenewTheMetricOfAnUpdateOnce) {
  const auto becomes = [](real growth, index_t k) {
    SCOPED_TRACE("k " + std::to_string(k) + ", growth " + std::to_string(double(growth)));
    const SegmentsResult<double> result = run_segments(growing_metric(960, k, growth));
    expect_sound(result);
    return result.done;
  };
  PassOutcome once;
  once.renewals = 1;
  for (const index_t k : {3, 16}) {
    EXPECT_TRUE(same(becomes(3, k), {}));
    EXPECT_TRUE(same(becomes(60, k), once));
    const PassOutcome ended = becomes(400, k);
    EXPECT_EQ(ended.rescalings, 1);
    EXPECT_GE(ended.renewals, 1);
  }
  EXPECT_EQ(becomes(60, 17).renewals, 0);  // a pass of 32 columns
}

TEST(Segments, WritesNothingWhereNothingIsAskedFor) {
  for (const index_t k : {8, 17})
    for (const Problem<double>& p : of_every_kind(200, k)) {
      SegmentsRun how;
      how.into = Into::nowhere;
      const SegmentsResult<double> result = run_segments(p, how);
      EXPECT_TRUE(same(result.done, run_segments(p).done));
      EXPECT_TRUE(result.input_kept);
      EXPECT_TRUE(result.memory.array().isNaN().all());
    }
}

/// Checks that every schedule finds `pivot`, and does not write to its input unless that is the place of the result.
void expect_pivot(const Problem<double>& p, index_t pivot, const std::vector<SegmentsRun>& runs) {
  SCOPED_TRACE("n " + std::to_string(p.R.cols()) + ", k " + std::to_string(p.V.cols()) + ", pivot " +
               std::to_string(pivot));
  EXPECT_EQ(call(p, by(ways[0])).outcome.pivot, pivot);
  for (const SegmentsRun& how : runs) {
    const SegmentsResult<double> result = run_segments(p, how);
    EXPECT_EQ(result.done.pivot, pivot) << how.workers << " workers";
    EXPECT_TRUE(how.into == Into::place || result.input_kept);
    if (how.into == Into::nowhere) {
      EXPECT_TRUE(result.memory.array().isNaN().all());
    }
  }
}

/// Checks V for which P = R^-T V has small rows but for row `pivot`. Leading minors of A - VV' = R'(I - PP')R are
/// positive up to order `pivot`, and the next minor is not.
TEST(Segments, FailsWithTheFirstLeadingMinorThatIsNotPositive) {
  const auto failing = [](index_t n, index_t k, index_t pivot) {
    Stored<double> P = small_rows(n, k, 0.25);
    P.row(pivot) *= 1.5 / P.row(pivot).norm();
    return many_blocks(Sign::downdate, P);
  };
  std::vector<SegmentsRun> all(std::begin(schedules), std::end(schedules));
  all.push_back({2, 2, narrow, Into::nowhere, 2});
  for (const index_t pivot : {0, 1, 7, 8, 63, 64, 100, 128, 200, 256, 259})
    for (const index_t k : {1, 16})
      expect_pivot(failing(260, k, pivot), pivot, pivot % 64 == 0 ? all : std::vector{all.front()});
  for (index_t b = 0; b < 15; b += sanitized ? 4 : 1) {  // every row block
    const index_t pivot = b * NB + (b * 29) % NB;
    expect_pivot(failing(960, b % 2 ? 8 : 9, pivot), pivot,
                 {all[size_t(b) % all.size()], on_ranks[size_t(b) % std::size(on_ranks)]});
  }
}

TEST(Segments, EndsWithNumbersThatAreNone) {
  for (const Sign sign : signs) {
    const Problem<double> sound = random_problem(sign, 200, 9);
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
      for (const index_t row : {0, 70, 199})
        for (const bool in_R : {false, true})
          for (const SegmentsRun& how : {schedules[1], schedules[6]}) {
            Problem<double> p = sound;
            (in_R ? p.R(row, 199) : p.V(row, 3)) = bad;
            const SegmentsResult<double> result = run_segments(p, how);
            EXPECT_TRUE(result.done.pivot >= 0 || !result.R.allFinite())
                << "row " << row << ", " << bad << ", in R " << in_R;
          }
  }
}

}  // namespace
}  // namespace gpucholmod::test
