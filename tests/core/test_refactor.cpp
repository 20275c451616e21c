#include <gtest/gtest.h>

#include "call.h"
#include "modify/choice.h"
#include "families.h"

namespace gpucholmod::test {
namespace {

Request refactoring(Uplo uplo = Uplo::upper) {
  Request request;
  request.backend = Backend::cpu;
  request.method = Method::refactor;
  request.uplo = uplo;
  return request;
}

TEST(Refactor, ResidualRatio) {
  Random random(5);
  for (const Sign sign : signs)
    for (const index_t n : {1, 40, 300})
      for (const index_t k : {1, 30, 400}) {
        const Matrix R = well_conditioned(n, random), V = random.normal(n, k);
        const Problem<double> p = sign == Sign::update ? problem(sign, R, V) : undo(R, V);
        const Result<double> result = call(p, refactoring());
        EXPECT_EQ(result.outcome.method, Method::refactor);
        EXPECT_EQ(result.outcome.pivot, -1);
        EXPECT_LT(Residual(p).ratio(result.R, epsilon(Precision::double_)), 30) << "n " << n << ", k " << k;
        EXPECT_TRUE(result.R.triangularView<Eigen::StrictlyLower>().toDenseMatrix().isZero(0));
      }
}

TEST(Refactor, ReadsAndWritesTheTriangleThatIsAskedFor) {
  Random random(6);
  Problem<double> p = problem(Sign::update, well_conditioned(270, random), random.normal(270, 20));
  const Stored<double> expected = call(p, refactoring()).R;
  for (index_t j = 0; j < 270; ++j) p.R.col(j).tail(269 - j).setConstant(std::nan(""));
  EXPECT_TRUE(same_bits(call(p, refactoring()).R, expected));
  p.R.transposeInPlace();
  EXPECT_TRUE(same_bits(call(p, refactoring(Uplo::lower)).R, Stored<double>(expected.transpose())));
}

/// Checks that the blocked method modifies factors that LAPACK cannot factorise or that have to be scaled, and that the
/// outcome says so.
TEST(Refactor, LeavesToTheBlockedMethodWhatItCannotDo) {
  Random random(7);
  Problem<double> fails = undo(well_conditioned(60, random), random.normal(60, 4));
  fails.V *= 4;
  Request blocked = refactoring();
  blocked.method = Method::blocked;
  const Result<double> result = call(fails, refactoring());
  EXPECT_EQ(result.outcome.method, Method::blocked);
  EXPECT_GE(result.outcome.pivot, 0);
  EXPECT_EQ(result.outcome.pivot, call(fails, blocked).outcome.pivot);

  Problem<double> large = problem(Sign::update, well_conditioned(60, random), random.normal(60, 4));
  large.R *= 1e200;
  large.V *= 1e200;
  const Result<double> scaled = call(large, refactoring());
  EXPECT_EQ(scaled.outcome.method, Method::blocked);
  EXPECT_TRUE(same_bits(scaled.R, call(large, blocked).R));
}

TEST(Refactor, IsRefusedInSinglePrecisionAndOnTheGpu) {
  const Problem<double> p{Sign::update, Stored<double>::Identity(3, 3), Stored<double>::Ones(3, 1)};
  Request single = refactoring(), cuda = refactoring();
  single.precision = Precision::single;
  cuda.backend = Backend::cuda;
  for (const Request& request : {single, cuda}) {
    const auto error = error_of([&] { call(p, request); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_argument);
    EXPECT_EQ(text(*error, "argument"), "method");
  }
}

TEST(Refactor, IsTakenWhereItIsExpectedToBeQuicker) {
  for (const Instructions instructions : all_instructions) {
    if (!cpu::available(instructions)) continue;
    Request request;
    request.backend = Backend::cpu;
    request.n = 500;
    request.instructions = instructions;
    request.optimised_blas = true;
    const Expected few = (request.k = 1, expected(request)), many = (request.k = 5000, expected(request));
    EXPECT_LT(few.blocked, few.refactor);
    EXPECT_EQ(few.cpu, few.blocked);
    EXPECT_EQ(many.cpu, std::min(many.blocked, many.refactor));
    EXPECT_EQ(choose(request, Where::memory).method == Method::refactor, many.refactor < many.blocked);
    if (instructions == Instructions::plain) {
      EXPECT_EQ(choose(request, Where::memory).method, Method::refactor);
    }
    request.optimised_blas = false;
    EXPECT_EQ(choose(request, Where::memory).method, Method::blocked);
    EXPECT_EQ(expected(request).refactor, HUGE_VAL);
    request.optimised_blas = true;
    request.precision = Precision::single;
    EXPECT_EQ(choose(request, Where::memory).method, Method::blocked);
  }
}

}  // namespace
}  // namespace gpucholmod::test
