#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "factor_call.h"
#include "hold.h"

/// Modifications and solves on a GPU that other work uses, too. Their thread blocks wait for each other. They must
/// complete all the same, with the same bits.
namespace gpucholmod::test {
namespace {

struct Results {
  Doubles R, X;
};

/// Updates and downdates a copy of a factor in place, `rounds` times. Returns R at the end, and a solution.
Results work_hard(const HeldFactor& before, int rounds) {
  const index_t n = before.order(), k = 16;
  Random random(11);
  const Doubles V = random.normal(n, k).cast<double>() * (0.1 / std::sqrt(double(n))),
                B = random.normal(n, 9).cast<double>();
  Factor F = before.copy();
  for (int round = 0; round < rounds; ++round) {
    EXPECT_EQ(modify(*F, V, task(*F, k, Sign::update)).pivot, -1);
    EXPECT_EQ(modify(*F, V, task(*F, k, Sign::downdate)).pivot, -1);
  }
  Results results{download(*F), B};
  F->solve(TriangularSolve::both, results.X.data(), B.cols());
  return results;
}

void expect_same(const Results& a, const Results& b) {
  EXPECT_TRUE(same_bits(a.R, b.R));
  EXPECT_TRUE(same_bits(a.X, b.X));
}

TEST(Crowded, AForeignKernelHoldsMostMultiprocessors) {
  const Factor F = upload(example(3000));
  const Results alone = work_hard(*F, 2);
  const cuda::CurrentDevice current(cuda::status(false).device);
  const int all = cuda::status(false).devices.at(cuda::status(false).device).multiprocessors;
  for (const int held : {1, all / 2, all - 2, all}) {
    cuda::Stream other;
    for (int i = 0; i < 20; ++i) hold_multiprocessors(held, 0.01, other);
    expect_same(work_hard(*F, 2), alone);
    other.synchronize();
  }
}

/// The work that another process does in TwoProcessesAtOnce, at the same time.
TEST(Crowded, DISABLED_TheOther) {
  const Factor F = upload(example(3000));
  const Results first = work_hard(*F, 20);
  for (int i = 0; i < 3; ++i) expect_same(work_hard(*F, 20), first);
}

TEST(Crowded, TwoProcessesAtOnce) {
  const Factor F = upload(example(3000));
  const Results alone = work_hard(*F, 20);
  for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
    unsetenv(name);  // the other process would leave its only test to another shard
  const pid_t other = vfork();
  if (other == 0) {
    execl("/proc/self/exe", "cuda_tests", "--gtest_brief=1", "--gtest_also_run_disabled_tests",
          "--gtest_filter=Crowded.DISABLED_TheOther", static_cast<char*>(nullptr));
    _exit(127);
  }
  ASSERT_GT(other, 0);
  int status = 0, rounds = 0;
  for (; waitpid(other, &status, WNOHANG) == 0; ++rounds) expect_same(work_hard(*F, 20), alone);
  EXPECT_GT(rounds, 1);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gpucholmod::test
