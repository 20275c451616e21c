#include "../batch_reshape_call.h"
#include "cuda/device_batch.h"

/// Batches on a GPU whose members gain and lose rows and columns.
namespace gpucholmod::test {
namespace {

std::unique_ptr<HeldBatch> keep(const double* R, index_t n, index_t b, Precision precision, const BatchRoom& room) {
  return cuda::upload_batch(R, n, b, Uplo::upper, precision, -1, {n > 1024 ? room.capacity : 0, room.orders});
}

class CudaBatchReshape : public testing::TestWithParam<Precision> {};

TEST_P(CudaBatchReshape, GrowsAndShrinks) {
  grow_and_shrink(keep, GetParam(), {1, 2, 4, 7, 30, 62, 64, 65, 127, 200}, 10);
}

TEST_P(CudaBatchReshape, MovesRows) { move_rows(keep, GetParam(), {1, 2, 3, 7, 30, 31, 32, 33, 64, 65, 127, 200}, 10); }

TEST_P(CudaBatchReshape, MembersThatFailStay) {
  for (const index_t n : {3, 12, 40, 130}) some_fail(keep, GetParam(), n, 10);
}

TEST_P(CudaBatchReshape, NumbersOfAnySize) { reshape_numbers_of_any_size(keep, GetParam()); }

TEST_P(CudaBatchReshape, AllMembersFail) { all_fail(keep, GetParam()); }

TEST_P(CudaBatchReshape, RefusesWhatVanishes) {
  refuse_what_vanishes(keep, GetParam());
  refuse_what_vanishes_when_moved(keep, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Gpu, CudaBatchReshape, testing::Values(Precision::double_, Precision::single),
                         [](const auto& info) { return info.param == Precision::single ? "Single" : "Double"; });

TEST(CudaBatchReshaped, DoesNotDependOnNeighbours) {
  for (const index_t n : {4, 33, 150}) grow_alone_and_beside(keep, n);
}

TEST(CudaBatchReshaped, OfNoMembers) { reshape_none(keep); }

TEST(CudaBatchReshaped, RefusesBadNumbers) { refuse_bad_numbers(keep); }

/// Checks that members cannot grow beyond a thread block with a thread for each column, and that members that are
/// factors of their own can.
TEST(CudaBatchReshaped, LargeMembers) {
  for (const index_t n : {1021, 1030}) {
    Random random(1);
    GrowingBatch batch(keep, Precision::double_, n, n == 1021 ? 1 : 2, n, random);
    batch.insert(3, {n / 2}, {}, true, true, random);
    EXPECT_LT(batch.units(), 10);
    batch.shift({{5}, {n}}, true);
    batch.shift({{n}, {n / 3}}, false);
    if (n > 1024) batch.shift({{5, 5}, {5, n}}, true);
    EXPECT_LT(batch.units(), 10);
    batch.remove({2, {0, n - 1}}, false);
    EXPECT_LT(batch.units(), 10);
    if (n == 1021) {
      const std::vector<double> X((n + 6) * 5, 0.0), before = numbers(*batch.held);
      BatchInsertion what;
      what.p = 5;
      what.X = X.data();
      std::unique_ptr<HeldBatch> made;
      Pivots pivots;
      std::atomic<bool> begun{false};
      const auto error = error_of([&] { batch.held->insert(what, nullptr, pivots, begun); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::not_supported);
      EXPECT_TRUE(same(numbers(*batch.held), before));
    } else {
      batch.insert(1, {}, {true, false}, true, false, random);
      EXPECT_EQ(batch.held->orders(), (std::vector<index_t>{n + 1, n + 2}));
      batch.update(2, 0.5, random);
      EXPECT_LT(batch.units(), 10);
    }
  }
}

}  // namespace
}  // namespace gpucholmod::test
