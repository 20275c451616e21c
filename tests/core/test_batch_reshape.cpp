#include "batch_reshape_call.h"

/// Batches in ordinary memory whose members get and lose rows and columns.
namespace gpucholmod::test {
namespace {

std::unique_ptr<HeldBatch> keep(const double* R, index_t n, index_t b, Precision precision, const BatchRoom& room) {
  return cpu::hold_batch(R, n, b, Uplo::upper, precision, cpu::ordinary_memory, room);
}

class BatchReshape : public testing::TestWithParam<Precision> {};

TEST_P(BatchReshape, GrowsAndShrinks) { grow_and_shrink(keep, GetParam(), {1, 2, 4, 7, 30, 65}, 10); }

TEST_P(BatchReshape, MovesRows) { move_rows(keep, GetParam(), {1, 2, 3, 7, 30, 65}, 10); }

TEST_P(BatchReshape, MembersThatFailStay) {
  for (const index_t n : {3, 12, 40}) some_fail(keep, GetParam(), n, 10);
}

TEST_P(BatchReshape, NumbersOfAnySize) { reshape_numbers_of_any_size(keep, GetParam()); }

TEST_P(BatchReshape, AllMembersFail) { all_fail(keep, GetParam()); }

TEST_P(BatchReshape, RefusesWhatVanishes) {
  refuse_what_vanishes(keep, GetParam());
  refuse_what_vanishes_when_moved(keep, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Host, BatchReshape, testing::Values(Precision::double_, Precision::single),
                         [](const auto& info) { return info.param == Precision::single ? "Single" : "Double"; });

TEST(BatchReshaped, DoesNotDependOnNeighbours) {
  for (const index_t n : {4, 33}) grow_alone_and_beside(keep, n);
}

TEST(BatchReshaped, OfNoMembers) { reshape_none(keep); }

TEST(BatchReshaped, RefusesBadNumbers) { refuse_bad_numbers(keep); }

/// Checks that insertions use the given room. Beyond it, the capacity becomes 1.5 times the new order.
TEST(BatchReshaped, UsesItsRoom) {
  Random random(2);
  GrowingBatch batch(keep, Precision::double_, 5, 9, 8, random);
  EXPECT_EQ(batch.held->capacity(), 8);
  batch.insert(3, {}, {}, true, true, random);
  EXPECT_EQ(batch.held->capacity(), 8);
  EXPECT_EQ(batch.held->order(), 8);
  batch.insert(2, {0}, {}, true, true, random);
  EXPECT_EQ(batch.held->capacity(), 15);
  EXPECT_EQ(batch.held->copy()->capacity(), 15);
}

}  // namespace
}  // namespace gpucholmod::test
