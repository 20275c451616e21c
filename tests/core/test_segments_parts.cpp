#include <Eigen/Cholesky>
#include <map>
#include <set>

#include "block_columns/finish.h"
#include "block_columns/trailing_update.h"
#include "grid_measure.h"
#include "segment_call.h"

/// The parts of modifications by segments: the order of turns, small matrices, shares and cursors.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// Describes how the segments of a pass over six row blocks end, and which turns follow from that.
struct Script {
  struct End {
    int rejected;         ///< rejected row block, or -1
    bool again = false;  ///< True if the row block would be rejected with H = I before it, too
    int renewed = 0;     ///< number of the row block before which H has been renewed, plus 1
  };
  std::vector<End> ends;
  std::string turns;
  int fallbacks, rescalings, renewals = 0;
};

TEST(Segments, FollowEachOther) {
  constexpr int blocks = 6;
  const Script scripts[] = {{{{-1}}, "s0 ", 0, 0},
                            {{{3}, {-1}}, "s0 s3 ", 0, 1},
                            {{{0}, {-1}}, "s0 h0 s1 ", 1, 0},
                            {{{3}, {3}, {-1}}, "s0 s3 h3 s4 ", 1, 1},
                            {{{1}, {2}, {2}, {4}, {4}, {-1}}, "s0 s1 s2 h2 s3 s4 h4 s5 ", 2, 3},
                            {{{0}, {1}, {2}, {3}, {4}, {5}, {-1}}, "s0 h0 s1 h1 s2 h2 s3 h3 s4 h4 s5 h5 s6 ", 6, 0},
                            {{{3, true}, {-1}}, "s0 h3 s4 ", 1, 1},
                            {{{5, true}, {-1}}, "s0 h5 s6 ", 1, 1},
                            {{{2, true}, {4, true}, {-1}}, "s0 h2 s3 h4 s5 ", 2, 2},
                            {{{-1, false, 4}}, "s0 ", 0, 0, 1},
                            {{{3, false, 5}, {-1}}, "s0 s3 ", 0, 1, 0},
                            {{{0}, {4, false, 3}, {-1, false, 6}}, "s0 h0 s1 s4 ", 1, 1, 2}};
  for (const Script& script : scripts) {
    std::vector<int> ints(PassInts::words(blocks));
    const PassInts pass{ints.data()};
    std::string turns;
    for (int turn = 0; turn < int(script.ends.size()); ++turn) {
      if (turn > 0) {
        EXPECT_FALSE(outcome(pass, turn - 1, blocks)) << script.turns << turn;
        EXPECT_FALSE(is_done(pass, turn - 1, blocks)) << script.turns << turn;
        const Progress now = pass.behind(turn - 1, blocks);
        pass.progress_of(turn) = now;
        if (now.steps) turns += "h" + std::to_string(now.first - 1) + " ";
      }
      turns += "s" + std::to_string(pass.progress_of(turn).first) + " ";
      const Script::End& end = script.ends[size_t(turn)];
      *reinterpret_cast<SegmentState*>(pass.flags_of(turn, blocks)) = {
          end.rejected >= 0, end.rejected < 0 ? 0 : 2 * (blocks - end.rejected) + end.again, end.renewed};
    }
    const int last = int(script.ends.size()) - 1;
    for (int turn = last; turn < last + 4; ++turn) {  // turns that are queued behind the last change nothing
      const auto done = outcome(pass, turn, blocks);
      ASSERT_TRUE(done) << script.turns;
      EXPECT_TRUE(is_done(pass, turn, blocks)) << script.turns;
      EXPECT_EQ(done->pivot, -1) << script.turns;
      EXPECT_EQ(done->fallbacks, script.fallbacks) << script.turns;
      EXPECT_EQ(done->rescalings, script.rescalings) << script.turns;
      EXPECT_EQ(done->renewals, script.renewals) << script.turns;
      EXPECT_EQ(done->turns, last + 1) << script.turns;
      pass.progress_of(turn + 1) = pass.behind(turn, blocks);
      std::fill_n(pass.flags_of(turn + 1, blocks), Segment<double>::flag_words(blocks), 0);
    }
    EXPECT_EQ(turns, script.turns);
    pass.pass_state() = {1, 5};  // a downdate fails in the steps with which the turn begins
    EXPECT_FALSE(is_done(pass, last, blocks));
    EXPECT_EQ(outcome(pass, last, blocks)->pivot, 5);
  }
}

/// Checks X = U^-1, U'U = A, and that A is not read beside its KP rows.
template <int KP>
void expect_inverse_of_factor() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Random random(3);
  const Stored<double> U = well_conditioned(KP, random).cast<double>();
  Stored<double> A = Stored<double>::Constant(KP + 8, KP, nan), X = A,
                 work = Stored<double>::Constant(LDC, 3 * IB, nan);
  A.topRows(KP) = U.transpose() * U;
  ASSERT_TRUE(invert_factor<KP>(HostWarp{}, A.data(), X.data(), work.data()));
  const Stored<double> inverse =
      Eigen::LLT<Stored<double>>(A.topRows(KP)).matrixU().solve(Stored<double>::Identity(KP, KP));
  EXPECT_LT((X.topRows(KP) - inverse).cwiseAbs().maxCoeff(), 1e-13 * inverse.cwiseAbs().maxCoeff());
  EXPECT_TRUE(X.topRows(KP).isUpperTriangular(0));
  for (const int pivot : {0, 5, 15, KP - 16, KP - 9, KP - 1})
    for (const double value : {A(pivot, pivot) - 1.001 * U(pivot, pivot) * U(pivot, pivot), nan}) {
      Stored<double> bad = A;
      bad(pivot, pivot) = value;
      EXPECT_FALSE(invert_factor<KP>(HostWarp{}, bad.data(), X.data(), work.data())) << pivot << ", " << value;
    }
}

TEST(SegmentsParts, InvertTheFactorOfH) {
  expect_inverse_of_factor<16>();
  expect_inverse_of_factor<32>();
}

TEST(SegmentsParts, SharesHoldAllGroups) {
  for (const int workers : {1, 2, 3, 7, 50}) {
    int all = 0;
    for (int worker = 0; worker < workers; ++worker) all += Share{worker, workers, 40}.count();
    EXPECT_EQ(all, 40);
  }
}

/// Checks that V outside of shared memory has room for all strips that one launch updates, and none if they are few.
TEST(SegmentsParts, AreSizedForWhatOneLaunchUpdates) {
  const auto strips_outside = [](const SegmentSize& size) {
    return double(size.looks() - size.V_outside()) / (STRIP * size.columns);
  };
  for (const int columns : {8, 16, 32}) {
    EXPECT_EQ(strips_outside({columns, 40, 40}), 40);
    EXPECT_EQ(strips_outside({columns, 40, 5, 1}), 5);
    EXPECT_EQ(strips_outside({columns, 40, 2}), 0);
    EXPECT_EQ(strips_outside({columns, 40, 2, 0, 38}), 38);
    EXPECT_EQ(strips_outside({columns, 40, 5, 0, 3}), 5);
  }
}

/// Checks that cursors visit all groups in reach of every row block from `begin` on, each once. On several ranks, only
/// row blocks of the rank whose strip begins at `begin` count; range.others row blocks of other ranks separate its
/// strips.
template <Order order = Order::forward>
void expect_all_visited(int begin, const Range& range) {
  std::set<std::pair<int, int>> visited, expected;
  for (int b = begin; b < range.end; ++b) {
    if ((b - begin) % (range.others + BLOCKS) >= BLOCKS) continue;
    for (int g = 0; g < range.groups; ++g)
      if (g / GROUPS >= b + range.nearest && g / GROUPS < b + range.nearest + range.reach) expected.emplace(b, g);
  }
  for (int worker = 0; worker < range.workers; ++worker)
    for (int warp = 0; warp < range.warps; ++warp) {
      std::pair<int, int> last{begin - 1, -1};
      bool other = true;
      for (Cursor<order> at(range, worker, begin, warp); at.b < range.end; other = at.next(range)) {
        const std::pair<int, int> now{at.b, at.group};
        EXPECT_EQ(at.group, worker + at.l * range.workers);
        EXPECT_LT(last, now);
        EXPECT_TRUE(other || now.second == last.second);
        EXPECT_TRUE(order == Order::forward || other);
        if (now.second == last.second) {
          EXPECT_EQ(now.first, last.first + 1 + (now.first % BLOCKS == 0 ? range.others : 0));
        }
        EXPECT_TRUE(visited.insert(now).second);
        last = now;
      }
    }
  EXPECT_EQ(visited, expected) << begin << " to " << range.end << ", " << range.workers << " workers, " << range.warps
                               << " warps";
}

/// Checks how often a cursor keeps its group: worker 39 of 40 has the last groups of block columns 9 and 19, of 20.
TEST(SegmentsParts, ACursorSaysThatItsGroupStays) {
  const auto stays = [](int warps, int reach) {
    const Range range{40, warps, 20 * GROUPS, 20, 0, reach};
    int count = 0;
    for (Cursor<Order::forward> at(range, 39, 0, 0); at.b < range.end;) count += !at.next(range);
    return count;
  };
  EXPECT_EQ(stays(2, 20), 9) << "block column 9 alone";
  EXPECT_EQ(stays(1, 20), 9) << "both, then block column 19 alone, from row block 10 on";
  EXPECT_EQ(stays(1, 5), 4 + 4) << "each alone, in five row blocks";
  EXPECT_EQ(stays(1, 12), 7 + 9) << "block column 9 alone before row block 8, block column 19 from row block 10 on";
}

TEST(SegmentsParts, CursorsVisitEveryGroupOnce) {
  for (const int blocks : {2, 10, 16})
    for (const int workers : {1, 2, 3, 7, 80})
      for (const int warps : {1, 2, 8, 11}) {
        const auto of = [&](int end, int nearest, int reach) {
          return Range{workers, warps, blocks * GROUPS, end, nearest, reach};
        };
        for (const int begin : {0, 1}) expect_all_visited(begin, of(blocks, 0, blocks));
        expect_all_visited(-3, of(blocks, 0, blocks + 3));
        expect_all_visited(0, of(blocks - 1 - REACH, 1 + REACH, 4));
        expect_all_visited(0, of(blocks - 1 - REACH, 1 + REACH, 1));
        expect_all_visited(1, of(2, 0, 1 + REACH));
        expect_all_visited(0, of(blocks, 0, 2));
        expect_all_visited(0, of(blocks, 5, blocks));
        for (const int ranks : {1, 2, 3})
          for (int rank = 0; rank < ranks; ++rank) {
            Range own = of(blocks - 1 - REACH, 1 + REACH, blocks - REACH);
            own.others = (ranks - 1) * BLOCKS;
            expect_all_visited<Order::back>(rank * BLOCKS, own);
          }
      }
}

/// Checks that a group takes the place of a group with which its warp is done.
TEST(SegmentsParts, GroupsInHandHavePlacesOfTheirOwn) {
  const auto expect_places_of_their_own = [](int workers, int columns, int warps) {
    const Range range{workers, warps, 40 * GROUPS, 40, 0, columns};
    for (int worker = 0; worker < std::min(workers, range.groups); ++worker) {
      const int places = groups_in_hand({worker, workers, range.groups}, columns, warps);
      for (int warp = 0; warp < warps; ++warp) {
        std::map<int, int> at_place;
        for (Cursor<Order::forward> at(range, worker, 0, warp); at.b < range.end; at.next(range)) {
          const auto [place, is_new] = at_place.emplace(at.l % places, at.l);
          EXPECT_TRUE(is_new || place->second == at.l || (place->second * workers + worker) / GROUPS < at.b)
              << workers << " " << columns << " " << warps;
          place->second = at.l;
        }
      }
    }
  };
  for (const int workers : {1, 2, 8, 16, 80})
    for (const int columns : {1, 4, 17})
      for (const int warps : {UPDATE_WARPS, UPDATE_WARPS / 2}) expect_places_of_their_own(workers, columns, warps);
}

}  // namespace
}  // namespace gpucholmod::test
