#include <gtest/gtest.h>

#include <atomic>

#include "call.h"
#include "random_problem.h"

namespace gpucholmod::test {
namespace {

template <class S>
struct InPlace {
  Outcome outcome;
  Stored<S> R;
  bool begun;
};

template <class S>
InPlace<S> in_place(const Problem<S>& p, Request request) {
  request.n = p.R.cols();
  request.k = p.V.cols();
  request.removed = p.sign == Sign::downdate ? request.k : 0;
  InPlace<S> result{{}, p.R, false};
  std::atomic<bool> begun{false};
  result.outcome = modify(Place<S>::in_place(result.R.data(), begun), p.V.data(), request, [](double) {});
  result.begun = begun;
  return result;
}

/// Checks V that is so small beside R that the sum of its squares tells nothing.
TEST(ModifyInPlace, TakesColumnsOfAnyScale) {
  for (const Sign sign : signs)
    for (const double scale : {1e-100, 1e-138, 1e-160, 1e-300}) {
      Problem<double> p = random_problem(sign, 60, 6);
      p.V *= scale;
      Request request;
      request.backend = Backend::cpu;
      const InPlace<double> result = in_place(p, request);
      EXPECT_EQ(result.outcome.pivot, -1);
      EXPECT_TRUE(same_bits(result.R, call(p, request).R)) << scale;
    }
}

TEST(ModifyInPlace, BeginsOnlyWhatCanBeDone) {
  Problem<double> fails = random_problem(Sign::downdate, 120, 3), not_finite = fails, bad_diagonal = fails;
  fails.V *= 5;
  not_finite.R(3, 100) = std::nan("");
  bad_diagonal.R(119, 119) = 0;
  Request request;
  request.backend = Backend::cpu;
  const InPlace<double> result = in_place(fails, request);
  EXPECT_GE(result.outcome.pivot, 0);
  EXPECT_FALSE(result.begun);
  EXPECT_TRUE(same_bits(result.R, fails.R));
  for (const Problem<double>& p : {not_finite, bad_diagonal}) {
    Stored<double> R = p.R;
    std::atomic<bool> begun{false};
    request.n = 120;
    request.k = request.removed = 3;
    EXPECT_TRUE(
        error_of([&] { modify(Place<double>::in_place(R.data(), begun), p.V.data(), request, [](double) {}); }));
    EXPECT_FALSE(begun);
    EXPECT_TRUE(same_bits(R, p.R));
  }
}

}  // namespace
}  // namespace gpucholmod::test
