#include "block_columns/finish.h"
#include "block_columns/inverses.h"
#include "block_columns/solve.h"
#include "grid_measure.h"
#include "segment_call.h"

/// Segments on simulated cards without clusters, with other teams and fewer places: the results have the same bits.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

constexpr Simulated others[] = {Simulated::data_centre, Simulated::graphics};

const char* name(Simulated card) { return card == Simulated::data_centre ? "Card80" : "Card86"; }

/// Checks that all cards give the same bits and counts. Returns the outcome of the pass.
PassOutcome expect_same_on_all_cards(const Problem<double>& p, SegmentsRun how) {
  how.card = Simulated::clusters;
  const SegmentsResult<double> expected = run_segments(p, how);
  for (const Simulated card : others) {
    SCOPED_TRACE(name(card));
    how.card = card;
    const SegmentsResult<double> result = run_segments(p, how);
    EXPECT_TRUE(same_bits(result.memory, expected.memory));
    EXPECT_EQ(result.done.pivot, expected.done.pivot);
    EXPECT_EQ(result.done.fallbacks, expected.done.fallbacks);
    EXPECT_EQ(result.done.rescalings, expected.done.rescalings);
    EXPECT_EQ(result.input_kept, how.into != Into::place);
  }
  return expected.done;
}

TEST(Cards, ReachTheSameBits) {
  const SegmentsRun runs[] = {{},
                              outside({7, 1, 12, Into::other_memory, 3, 1}),
                              {2, 5, 24, Into::place, 2, 3},
                              by_three({7, 5, 12, Into::other_memory, 2, 3})};
  PassOutcome done;
  for (const Problem<double>& p : of_every_kind(sanitized ? 200 : 300, 16))
    for (const SegmentsRun& how : runs) {
      const PassOutcome of = expect_same_on_all_cards(p, how);
      done.fallbacks += of.fallbacks;
      done.rescalings += of.rescalings;
    }
  EXPECT_GT(done.fallbacks, 0);
  EXPECT_GT(done.rescalings, 0);
}

/// Checks more row blocks than the chain reaches, and than teams that solve; by panels too.
TEST(Cards, ReachTheSameBitsWithManyRowBlocks) {
  const index_t n = sanitized ? 600 : 700;
  for (const Sign sign : signs)
    for (const index_t k : {3, 16}) {
      SegmentsRun how;
      how.delay = unsigned(k);
      how.by_three = k == 16;
      const Problem<double> p = random_problem(sign, n, k);
      EXPECT_EQ(expect_same_on_all_cards(p, how).pivot, -1);
      how.panels = 3;
      how.into = Into::place;
      how.outside = INT_MAX;
      EXPECT_EQ(expect_same_on_all_cards(p, how).pivot, -1);
    }
}

/// Checks that a downdate that fails in the middle ends on every card.
TEST(Cards, FailWhereOthersFail) {
  const index_t n = 700;
  for (const index_t pivot : {0, 100, 640}) {
    Problem<double> p{Sign::downdate, Stored<double>::Identity(n, n), Stored<double>::Constant(n, 2, 1e-3)};
    p.V(pivot, 1) = 2;
    EXPECT_EQ(expect_same_on_all_cards(p, {}).pivot, pivot);
  }
}

/// Returns whether a thread block of each role fits into shared memory, but for V and the memory of the staging rings.
template <class Card, int K>
constexpr bool finds_room() {
  constexpr int P_in_a_cluster = Card::clusters ? REACH * NB * LP : 0;
  constexpr int largest = std::max({P_in_a_cluster + SolveMemory<Card>::words, FinishMemory<K, Card>::words,
                                    InverseMemory<Card::inverted_at_once>::words});
  return (40 + largest) * int(sizeof(double)) <= Card::shared;
}
static_assert(finds_room<Card90, 8>() && finds_room<Card90, 16>() && finds_room<Card90, 32>());
static_assert(finds_room<Card80, 8>() && finds_room<Card80, 16>() && finds_room<Card80, 32>());
static_assert(finds_room<Card86, 8>() && finds_room<Card86, 16>());

}  // namespace
}  // namespace gpucholmod::test
