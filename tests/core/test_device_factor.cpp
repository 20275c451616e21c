#include <gtest/gtest.h>

#include "call.h"
#include "cuda/device_factor.h"

namespace gpucholmod::test {
namespace {

template <class S>
void expect_refused() {
  const S one = 1;
  index_t pivot;
  for (const auto& error : {error_of([&] { cuda::upload(&one, 1, Uplo::upper, Precision::double_, 0, -1); }),
                            error_of([&] { cuda::factorise(&one, 1, Uplo::upper, Precision::double_, -1, pivot); })}) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::backend_unavailable);
    EXPECT_EQ(text(*error, "backend"), "cuda");
    EXPECT_EQ(text(*error, "reason"), "not_built");
  }
}

TEST(AbsentBackend, HoldsNoFactors) {
  expect_refused<double>();
  expect_refused<float>();
}

}  // namespace
}  // namespace gpucholmod::test
