#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "../c_call.h"
#include "factor_call.h"

/// Factors of the C interface on several GPUs.
namespace gpucholmod::test {
namespace {

/// Checks that a factor of the C interface on several GPUs has the bits of a factor on one GPU, and gives the same
/// solutions up to rounding errors.
TEST(Devices, HoldAFactorOfTheCInterface) {
  const index_t n = 1300, k = 40;
  const Doubles R = example(n), V = Doubles::Random(n, k) / std::sqrt(double(n));
  const std::vector<int> ids = times(2);
  gpucholmod_options one = GPUCHOLMOD_OPTIONS_INIT, several = one;
  one.device = GPUCHOLMOD_ANY_GPU;
  several.devices = ids.data();
  several.device_count = 2;
  gpucholmod_factor* handles[2] = {};
  Doubles got[2], solved[2];
  for (const int i : {0, 1}) {
    gpucholmod_status status;
    ASSERT_EQ(gpucholmod_factor_create(matrix(R.data(), n, n, n), 0, i == 0 ? &one : &several, &handles[i], &status),
              GPUCHOLMOD_OK)
        << status.message;
    EXPECT_EQ(gpucholmod_factor_update(handles[i], matrix(V.data(), n, k, n), nullptr, 1, nullptr, nullptr, &status),
              GPUCHOLMOD_OK)
        << status.message;
    got[i].resize(n, n);
    solved[i] = Doubles::Ones(n, 1);
    EXPECT_EQ(get(handles[i], GPUCHOLMOD_UPPER, got[i].data(), n, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_factor_solve(handles[i], GPUCHOLMOD_A, matrix(solved[i].data(), n, 1, n), nullptr),
              GPUCHOLMOD_OK);
    gpucholmod_factor_destroy(handles[i]);
  }
  EXPECT_TRUE(same_bits(got[0], got[1]));
  EXPECT_LT((solved[0] - solved[1]).norm(), 1e-12 * solved[0].norm());
  gpucholmod_status status;
  const int none = 99;
  several.devices = &none;
  several.device_count = 1;
  EXPECT_EQ(gpucholmod_factor_create(matrix(R.data(), n, n, n), 0, &several, &handles[0], &status),
            GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(status.argument, "options->devices");
}

}  // namespace
}  // namespace gpucholmod::test
