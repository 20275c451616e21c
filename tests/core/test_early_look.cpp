#include <gtest/gtest.h>

#include "block_columns/early_look.h"
#include "grid_measure.h"

/// The early look at a segment: its first rows tell whether the segment ends with its first row block.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// Two row blocks, with a V whose P has one number that is not 0. The number is in the first rows, and P'P has the
/// eigenvalue `growth`.
template <int K>
struct TwoBlocks {
  Stored<double> R, V;
  Segment<double> s{};

  TwoBlocks(double sigma, double growth) {
    Random random(11);
    const index_t n = 2 * NB;
    R = well_conditioned(n, random).template cast<double>();
    Stored<double> P = Stored<double>::Zero(n, K);
    P(5, K - 1) = std::sqrt(growth);
    V = R.triangularView<Eigen::Upper>().transpose() * P;
    s.blocks = s.end = 2;
    s.sigma = s.sigma2 = sigma;
    s.bound = sigma > 0 ? largest_update : least_downdate;
    s.R = R.data();
    s.V = V.data();
    s.ld = s.ldv = n;
  }
  bool is_rejected() const {
    std::vector<double> work(early_look_words<K>, std::numeric_limits<double>::quiet_NaN());
    return is_rejected_early<K>(HostLanes<double>{}, s, work.data());
  }
};

template <int K>
void expect_bounds() {
  SCOPED_TRACE(K);
  EXPECT_FALSE(TwoBlocks<K>(1, 2 * largest_update - 1).is_rejected());
  EXPECT_TRUE(TwoBlocks<K>(1, 2 * largest_update + 1).is_rejected());
  EXPECT_FALSE(TwoBlocks<K>(-1, 1 - 0.6 * least_downdate).is_rejected());
  EXPECT_TRUE(TwoBlocks<K>(-1, 1 - 0.4 * least_downdate).is_rejected());
  EXPECT_FALSE(TwoBlocks<K>(1, 0).is_rejected());
}

TEST(EarlyLook, RejectsFarBeyondTheBound) {
  expect_bounds<8>();
  expect_bounds<16>();
  expect_bounds<32>();
}

TEST(EarlyLook, LeavesOtherSegmentsToTheGuard) {
  TwoBlocks<32> p(1, 100);
  EXPECT_TRUE(p.is_rejected());
  p.s.sigma2 = -1;
  EXPECT_FALSE(p.is_rejected());
  p.s.sigma2 = 1;
  for (const int first : {-1, 1}) {
    p.s.first = first;
    EXPECT_FALSE(p.is_rejected()) << first;
  }
}

TEST(EarlyLook, LeavesNumbersThatAreNoneToTheGuard) {
  for (const bool in_R : {false, true}) {
    TwoBlocks<16> p(1, 100);
    (in_R ? p.R(3, 3) : p.V(3, 3)) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_FALSE(p.is_rejected()) << in_R;
  }
}

/// Checks that links that the first turn has left out are found in the next, which has row blocks enough to need them.
TEST(EarlyLook, LinksAreFoundInTheNextTurn) {
  const index_t n = 960;
  Random random(12);
  Stored<double> P = (random.normal(n, 16) * (0.5 / std::sqrt(real(16 * n)))).cast<double>();
  P.row(3) *= 10 / P.row(3).norm();
  const Problem<double> p = many_blocks(Sign::update, P);
  const SegmentsResult<double> expected = run_segments(p);
  expect_sound(expected);
  EXPECT_EQ(expected.done.fallbacks, 1);
  for (const SegmentsRun& how :
       {SegmentsRun{3, 2, REACH + 1, Into::other_memory, 2, 3}, {7, 1, 12, Into::place, 3, 2}}) {
    const SegmentsResult<double> result = run_segments(p, how);
    EXPECT_TRUE(same_bits(result.R, expected.R)) << how.workers << " workers";
    EXPECT_EQ(result.done.fallbacks, 1);
  }
}

}  // namespace
}  // namespace gpucholmod::test
