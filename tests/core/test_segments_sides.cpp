#include "grid_measure.h"

/// Right-hand sides that are modified along with a factor in one launch, and parts of a factor that are stored apart
/// from it, by the GPU's kernels on a simulated grid.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

constexpr index_t sides = 70;

template <class T>
struct Carried {
  Stored<T> R, z;
  Stored<double> rest;
  PassOutcome done;
};

/// Modifies R and right-hand sides: both in one launch if `along`, otherwise right-hand sides behind R.
template <class T>
std::shared_ptr<Carried<T>> carried(const Problem<double>& p, bool along, const SegmentsRun& how) {
  const auto memory = std::make_shared<Carried<T>>();
  within_a_minute([=] {
    Grid<T> grid(p);
    Random random(3);
    const index_t n = p.R.cols(), k = p.V.cols(), ld = grid.R.rows();
    const Stored<double> b = random.normal(n, sides).cast<double>(), Y = random.normal(sides, k).cast<double>();
    Stored<T>& z = memory->z = Stored<T>::Zero(ld, STRIP);
    z.topLeftCorner(n, sides) = b.template cast<T>();
    memory->rest = Stored<double>::Zero(sides, k);
    T* const out = how.into == Into::place ? grid.R.data() : grid.out.data();
    const index_t removed = how.removed >= 0 ? how.removed : p.sign == Sign::downdate ? k : 0;
    const auto pass = host_pass<T>(p.V.data(), n, {0, k, removed}, n, grid.strips,
                                   how.by_steps ? Simulated::clusters : how.card);
    if (along) {
      memory->done = pass->run_with_sides(grid.R.data(), out, ld, z.data(), {Y.data(), sides, k, sides},
                                          memory->rest.data(), how);
    } else {
      memory->done = pass->run_panel(0, grid.strips, grid.R.data(), out, ld, how);
      if (memory->done.pivot < 0) pass->carry(z.data(), ld, Y.data(), memory->rest.data(), sides, sides, how);
    }
    memory->R = how.into == Into::place ? grid.R : grid.out;
  });
  return memory;
}

/// Checks that both ways give the same bits of R, z and what is left of Y, and the same turns. Returns the outcome.
template <class T = double>
PassOutcome expect_same(const Problem<double>& p, SegmentsRun how = {}) {
  SegmentsRun behind = how;
  behind.ranks = 1;
  const auto expected = carried<T>(p, false, behind), found = carried<T>(p, true, how);
  EXPECT_EQ(found->done.pivot, expected->done.pivot);
  EXPECT_EQ(found->done.fallbacks, expected->done.fallbacks);
  EXPECT_EQ(found->done.rescalings, expected->done.rescalings);
  EXPECT_EQ(found->done.renewals, expected->done.renewals);
  if (expected->done.pivot >= 0) return expected->done;
  EXPECT_TRUE(how.ranks > 1 || same_bits(found->R, expected->R));
  EXPECT_TRUE(same_bits(found->z, expected->z));
  EXPECT_TRUE(same_bits(found->rest, expected->rest));
  EXPECT_GT(found->rest.norm(), 0);
  return expected->done;
}

TEST(SegmentsSides, ComeAlongAsTheyFollow) {
  PassOutcome done;
  std::vector<Problem<double>> problems = of_every_kind(sanitized ? 200 : 300, 16);
  for (const index_t n : {1, 64, 128, 129}) problems.push_back(random_problem(Sign::update, n, 3));
  problems.push_back(random_problem(Sign::downdate, 260, 32));
  problems.push_back(growing_metric(300, 16, 100));
  problems.push_back(growing_metric(640, 5, 1000));
  unsigned i = 0;
  for (const Problem<double>& p : problems)
    for (const Into into : {Into::other_memory, Into::place}) {
      SCOPED_TRACE("problem " + std::to_string(i / 2));
      SegmentsRun how;
      how.into = into;
      how.delay = i++ % 3;
      how.window = 9 + int(i % 2) * 15;
      const PassOutcome one = expect_same(p, how);
      done.fallbacks += one.fallbacks;
      done.rescalings += one.rescalings;
      done.renewals += one.renewals;
      how.by_steps = true;
      expect_same(p, how);
    }
  EXPECT_GT(done.fallbacks, 0);
  EXPECT_GT(done.rescalings, 0);
  EXPECT_GT(done.renewals, 0);
}

TEST(SegmentsSides, OfManyRowBlocks) {
  for (const Sign sign : signs)
    for (const Into into : {Into::other_memory, Into::place}) {
      SegmentsRun how;
      how.into = into;
      how.window = 10;
      expect_same(random_problem(sign, 960, 9), how);
    }
  Problem<double> hard = random_problem(Sign::update, 960, 9);
  hard.V.row(100) *= 3000;
  hard.V.row(950) *= 3000;
  EXPECT_GT(expect_same(hard).fallbacks, 0);
}

TEST(SegmentsSides, WithColumnsOfBothSigns) {
  Random random(8);
  for (const index_t n : {70, 200}) {
    const Matrix R = well_conditioned(n, random), V = random.normal(n, 12) / std::sqrt(real(n)) / 4;
    SegmentsRun how;
    how.removed = 5;
    how.scaling = {0.5, n};
    expect_same(problem(Sign::update, R, V), how);
  }
}

TEST(SegmentsSides, OnSeveralRanks) {
  for (const Problem<double>& p : of_every_kind(sanitized ? 200 : 300, 16))
    for (const Into into : {Into::other_memory, Into::place})
      for (const int ranks : {2, 3}) {
        SegmentsRun how;
        how.into = into;
        how.ranks = ranks;
        how.lead = ranks - 2;
        how.workers = WORKERS_OF_STRIP;
        how.outside = ranks == 2 ? INT_MAX : 0;
        expect_same(p, how);
      }
}

TEST(SegmentsSides, InSingle) {
  for (const Simulated card : {Simulated::clusters, Simulated::graphics})
    for (const Problem<double>& p : of_every_kind(200, 9, eps<float>)) {
      SegmentsRun how;
      how.card = card;
      expect_same<float>(stored_as<float>(p), how);
    }
}

/// Checks that parts of a factor that are stored apart change no bit, also if nothing is written.
TEST(SegmentsApart, MakeNoDifference) {
  std::vector<Problem<double>> problems = of_every_kind(sanitized ? 200 : 300, 16);
  for (const index_t n : {1, 64, 128, 129}) problems.push_back(random_problem(Sign::update, n, 3));
  problems.push_back(random_problem(Sign::downdate, 260, 32));
  problems.push_back(random_problem(Sign::downdate, sanitized ? 300 : 960, 9));
  int rejected = 0;
  unsigned i = 0;
  for (const Problem<double>& p : problems)
    for (const Into into : {Into::other_memory, Into::place, Into::nowhere}) {
      SCOPED_TRACE("problem " + std::to_string(i / 3));
      SegmentsRun how;
      how.into = into;
      how.delay = i++ % 3;
      how.window = 9 + int(i % 2) * 15;
      how.by_steps = i % 5 == 0;
      SegmentsRun apart = how;
      apart.apart = true;
      const SegmentsResult<double> expected = run_segments<double>(p, how), found = run_segments<double>(p, apart);
      EXPECT_EQ(found.done.pivot, expected.done.pivot);
      EXPECT_EQ(found.done.fallbacks, expected.done.fallbacks);
      EXPECT_TRUE(found.input_kept || into == Into::place);
      EXPECT_TRUE(expected.done.pivot >= 0 || into == Into::nowhere || same_bits(found.R, expected.R));
      rejected += found.done.fallbacks + found.done.rescalings;
    }
  EXPECT_GT(rejected, 0);
}

}  // namespace
}  // namespace gpucholmod::test
