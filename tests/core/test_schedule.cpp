#include "paper/schedule.h"

#include <gtest/gtest.h>

namespace gpucholmod::paper {
namespace {

paper::Shape shape_of(int rows, int threads, int blocks) {
  paper::Shape shape;
  shape.panel_rows = rows;
  shape.threads_per_block = threads;
  shape.blocks_per_kernel = blocks;
  return shape;
}

/// Calls f(n, shape) for orders around multiples of the panel's height and width.
template <class F>
void each_schedule(F&& f) {
  for (const int rows : {1, 5, 16, 64, 100})
    for (const int threads : {32, 96, 256})
      for (const int blocks : {1, 3, 132})
        for (const index_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 99, 100, 101, 131, 200, 257}) {
          SCOPED_TRACE("n " + std::to_string(n) + ", panel_rows " + std::to_string(rows) + ", width " +
                       std::to_string(threads * blocks));
          f(n, shape_of(rows, threads, blocks));
          if (testing::Test::HasFailure()) return;
        }
}

TEST(Schedule, CoversTheUpperTriangleOnceAndNothingElse) {
  each_schedule([](index_t n, const paper::Shape& shape) {
    std::vector<int> times(n * n);
    for (const Step& s : schedule(n, shape)) {
      ASSERT_GE(s.rows, 1);
      ASSERT_GE(s.cols, 1);
      ASSERT_LE(s.row + s.rows, n);
      ASSERT_LE(s.col + s.cols, n);
      for (index_t j = s.col; j < s.col + s.cols; ++j)
        for (index_t i = s.row; i < s.row + s.rows; ++i)
          if (s.kind == Step::Kind::panel || i <= j) ++times[i + j * n];
    }
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) ASSERT_EQ(times[i + j * n], i <= j) << i << ", " << j;
  });
}

/// Checks that V in column j has passed row blocks 0, 1, ... b - 1, in this order, before row block b takes it.
TEST(Schedule, NoStepComesBeforeWhatItNeeds) {
  each_schedule([](index_t n, const paper::Shape& shape) {
    std::vector<index_t> passed(n);  // row blocks that a column's part of V has gone through
    index_t rotations_of = -1;       // the row block whose rotations are known
    for (const Step& s : schedule(n, shape)) {
      const index_t b = s.row / shape.panel_rows;
      ASSERT_EQ(s.row % shape.panel_rows, 0);
      if (s.kind == Step::Kind::diagonal) {
        ASSERT_EQ(b, rotations_of + 1);
        rotations_of = b;
      }
      ASSERT_EQ(b, rotations_of);
      for (index_t j = s.col; j < s.col + s.cols; ++j) ASSERT_EQ(passed[j]++, b) << "column " << j;
    }
  });
}

TEST(Schedule, DiagonalBlocksAreSquareAndOnTheDiagonal) {
  each_schedule([](index_t n, const paper::Shape& shape) {
    for (const Step& s : schedule(n, shape)) {
      ASSERT_EQ(s.rows, std::min<index_t>(shape.panel_rows, n - s.row));
      if (s.kind != Step::Kind::diagonal) continue;
      ASSERT_EQ(s.col, s.row);
      ASSERT_EQ(s.cols, s.rows);
      ASSERT_FALSE(s.look_ahead);
    }
  });
}

TEST(Schedule, PanelsAreNoWiderThanALaunch) {
  each_schedule([](index_t n, const paper::Shape& shape) {
    for (const Step& s : schedule(n, shape))
      ASSERT_TRUE(s.kind == Step::Kind::diagonal || s.cols <= shape.width()) << s.cols;
  });
}

TEST(Schedule, LooksAheadExactlyAboveTheNextDiagonalBlockAndFirst) {
  each_schedule([](index_t n, const paper::Shape& shape) {
    bool before = true;
    for (const Step& s : schedule(n, shape)) {
      if (s.kind == Step::Kind::diagonal) {
        before = true;
        continue;
      }
      const index_t next = s.row + s.rows + shape.panel_rows;
      ASSERT_TRUE(s.col + s.cols <= next || s.col >= next) << "a panel straddles column " << next;
      ASSERT_EQ(s.look_ahead, s.col < next);
      ASSERT_TRUE(before || !s.look_ahead) << "a look-ahead panel after an ordinary one";
      before = s.look_ahead;
    }
  });
}

TEST(Schedule, IsShortWhereOneBlockIsEnough) {
  EXPECT_TRUE(schedule(0, paper::Shape()).empty());
  const std::vector<Step> steps = schedule(64, shape_of(64, 64, 132));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, Step::Kind::diagonal);
}

}  // namespace
}  // namespace gpucholmod::paper
