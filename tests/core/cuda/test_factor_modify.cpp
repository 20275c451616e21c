#include <gtest/gtest.h>

#include "factor_call.h"

/// Modifications of a factor in the memory of a GPU: in place and as a new factor, with numbers of any size, within
/// limits, and interrupted.
namespace gpucholmod::test {
namespace {

TEST(FactorModify, CopiesAreIndependent) {
  for (const index_t n : {0, 1, 128, 1100}) {
    const Doubles R = example(n), V = Doubles::Constant(n, 1, 0.5);
    Factor F = upload(R);
    const Factor G = F->copy();
    EXPECT_EQ(modify(*F, V, task(*F, 1, Sign::update)).pivot, -1);
    EXPECT_TRUE(same_bits(download(*G), R));
    EXPECT_EQ(same_bits(download(*F), R), n == 0);
    F.reset();
    EXPECT_TRUE(same_bits(download(*G), R));
  }
}

TEST(FactorModify, ModifiedIsANewOneAndTheSameAsInPlace) {
  for (const Sign sign : signs)
    for (const Precision precision : precisions)
      for (const index_t k : {0, 1, 5, 64, 65, 100}) {
        Random random(5);
        const index_t n = 300;
        const Doubles V = random.normal(n, k).cast<double>() * 0.01;
        const Doubles R = in(precision, example(n));
        const Factor F = upload(R, precision);
        Work work;
        const Factor G = modified(*F, V, task(*F, k, sign), work);
        ASSERT_TRUE(G);
        EXPECT_EQ(work.pivot, -1);
        EXPECT_TRUE(same_bits(download(*F), R));
        EXPECT_LT(Residual(Problem<double>{sign, R, V}).ratio(download(*G), epsilon(precision)), 30);
        EXPECT_EQ(modify(*F, V, task(*F, k, sign)).pivot, -1);
        EXPECT_TRUE(same_bits(download(*F), download(*G))) << k;
      }
}

TEST(FactorModify, AFailingDowndateChangesNothingWhenTestedFirst) {
  const index_t n = 300;
  for (const Precision precision : precisions)
    for (const index_t k : {1, 5, 64, 65, 100})
      for (const index_t failing : {0, 150, 299}) {
        const Doubles R = in(precision, example(n));
        Doubles V = Doubles::Zero(n, k);
        V(failing, k - 1) = 10;
        const Factor F = upload(R, precision);
        Task downdate = task(*F, k, Sign::downdate);
        Work work;
        EXPECT_FALSE(modified(*F, V, downdate, work));
        EXPECT_EQ(work.pivot, failing);
        for (const bool room : {true, false}) {  // for a second factor; without room, several passes cannot be tested
          if (!room && k > 5) continue;
          downdate.device_memory = room ? work.device_bytes : work.device_bytes - F->bytes();
          downdate.keep_intact = true;
          bool changed = true;
          EXPECT_EQ(modify(*F, V, downdate, &changed).pivot, failing);
          EXPECT_FALSE(changed);
          EXPECT_TRUE(same_bits(download(*F), R));
          downdate.keep_intact = false;
          EXPECT_EQ(modify(*F, V, downdate, &changed).pivot, failing);
          EXPECT_EQ(changed, !room);
        }
      }
}

/// Checks that the number of turns of an earlier pass, which decides how many turns of the next pass are queued, does
/// not change the result of the next pass.
TEST(FactorModify, DoesNotDependOnTheCallBefore) {
  const index_t n = 500, k = 9;
  const Doubles R = example(n), small = Random(5).normal(n, k).cast<double>() * 0.01, large = small * 1e4;
  const Factor F = upload(R);
  for (const Launch launch : {Launch::persistent, Launch::stepwise}) {
    Task update = task(*F, k, Sign::update);
    update.launch = launch;
    Work work;
    modified(*F, small, update, work);
    const Doubles expected = download(*modified(*F, small, update, work));
    EXPECT_LT(Residual(Problem<double>{Sign::update, R, small}).ratio(expected, epsilon(Precision::double_)), 30);
    modified(*F, large, task(*F, k, Sign::update), work);
    EXPECT_GT(work.rescalings + work.fallbacks, 0) << "the test is of no use";
    EXPECT_TRUE(same_bits(download(*modified(*F, small, update, work)), expected));
  }
}

/// Checks that the result is the same with and without a second factor and a factor between passes, which save time.
TEST(FactorModify, TheSameBitsInPlaceWithRoomAndWithout) {
  const index_t n = 900;
  for (const Precision precision : precisions)
    for (const Sign sign : signs)
      for (const index_t k : {5, 16, 32, 70}) {
        const Doubles R = in(precision, example(n)), V = Random(5).normal(n, k).cast<double>() * 0.01;
        const Factor F = upload(R, precision);
        Task task_ = task(*F, k, sign);
        task_.keep_intact = k <= widest_pass(precision);
        Work work;
        const Doubles expected = download(*modified(*F, V, task_, work));
        task_.device_memory = work.device_bytes - (k <= widest_pass(precision) ? 1 : 2) * F->bytes();
        bool changed = false;
        EXPECT_EQ(modify(*F, V, task_, &changed).pivot, -1);
        EXPECT_TRUE(changed);
        EXPECT_TRUE(same_bits(download(*F), expected)) << k;
      }
}

/// Checks that the pivot is that of the first leading minor that is not positive, whichever pass fails there, in place,
/// too.
TEST(FactorModify, TheFirstFailingPivotIsFoundWhicheverPassFailsThere) {
  const index_t n = 500, k = 70;
  for (const index_t later : {201, 499}) {
    Doubles V = Doubles::Zero(n, k);
    V(later, 3) = V(200, 66) = 1e3;
    const Factor F = upload(example(n));
    Work work;
    EXPECT_FALSE(modified(*F, V, task(*F, k, Sign::downdate), work));
    EXPECT_EQ(work.pivot, 200);
    EXPECT_EQ(modify(*F, V, task(*F, k, Sign::downdate)).pivot, 200);
    EXPECT_TRUE(same_bits(download(*F), example(n)));
  }
}

/// Checks a V whose column 3 by itself fails in row 201 because of R(200, 201), though V is zero from there on. Column
/// 66 fails earlier, in row 150.
TEST(FactorModify, TheFirstFailingPivotIsFoundWhereTheRestOfTheFactorFailsToo) {
  const index_t n = 500, k = 70;
  const double cosine = 0.9;
  Doubles R = Doubles::Identity(n, n), V = Doubles::Zero(n, k);
  R(200, 201) = cosine;
  R(201, 201) = std::sqrt(1 - cosine * cosine);
  V(200, 3) = 0.9;
  V(150, 66) = 1e3;
  const Factor F = upload(R);
  EXPECT_EQ(modify(*F, V, task(*F, k, Sign::downdate)).pivot, 150);
  EXPECT_TRUE(same_bits(download(*F), R));
}

/// Checks the ratio of test_methods.cpp for very large and very small numbers, and an overflow.
TEST(FactorModify, NumbersOfAnySizeAreScaled) {
  const index_t n = 300;
  for (const Sign sign : signs)
    for (const index_t k : {5, 70}) {
      Random random(5);
      const Doubles R = example(n), V = random.normal(n, k).cast<double>() * 0.01;
      const Residual residual(Problem<double>{sign, R, V});
      for (const int e : {600, -600}) {
        const double s = std::ldexp(1.0, e);
        const Factor F = upload(Doubles(s * R));
        Work work;
        const Factor G = modified(*F, s * V, task(*F, k, sign), work);
        ASSERT_TRUE(G);
        EXPECT_LT(residual.ratio(Doubles(download(*G) / s), 0x1p-52), 30) << e;
        EXPECT_EQ(modify(*F, s * V, task(*F, k, sign)).pivot, -1);
        EXPECT_TRUE(same_bits(download(*F), download(*G))) << e;
      }
    }
  const double top = 1e308;
  const Factor F = upload(Doubles(top * Doubles::Identity(n, n)));
  const Doubles V = Doubles::Constant(n, 1, 0.0) + top * 1.7 * Doubles::Identity(n, 1);
  const auto error = error_of([&] { modify(*F, V, task(*F, 1, Sign::update)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::overflow);
  EXPECT_EQ(number(*error, "row"), 1);
  EXPECT_EQ(number(*error, "col"), 1);
  EXPECT_TRUE(same_bits(download(*F), Doubles(top * Doubles::Identity(n, n))));
}

TEST(FactorModify, KeepsToTheMemoryThatItIsAllowed) {
  const index_t n = 700, k = 70;
  const Doubles R = example(n), V = Doubles::Constant(n, k, 1e-3);
  const Factor F = upload(R);
  Task limited = task(*F, k, Sign::update);
  Work work;
  const Doubles expected = download(*modified(*F, V, limited, work));
  EXPECT_GT(work.device_bytes, F->bytes());
  const double with_room = limited.device_memory = work.device_bytes;
  EXPECT_TRUE(same_bits(download(*modified(*F, V, limited, work)), expected));
  EXPECT_EQ(work.device_bytes, with_room);
  // The factor between two passes can be spared, and so can a second pass that receives V while the first works.
  int spared = -1;
  std::optional<Error> error;
  for (; !error && spared < 4; ++spared) {
    limited.device_memory = work.device_bytes - 1;
    Doubles found;
    error = error_of([&] { found = download(*modified(*F, V, limited, work)); });
    EXPECT_TRUE(error || same_bits(found, expected));
  }
  EXPECT_EQ(spared, 3);  // either of the two, and both
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  EXPECT_EQ(number(*error, "needed"), limited.device_memory + 1);
}

TEST(FactorModify, APollThatThrowsStopsBetweenPasses) {
  const index_t n = 700, k = 200;
  const Doubles R = example(n), V = Doubles::Constant(n, k, 1e-3);
  const Factor F = upload(R);
  const Poll stop = [](double done) {
    if (done > 0) throw 1;
  };
  Factor made;
  std::atomic<bool> begun{false};
  EXPECT_THROW(F->modify(V.data(), task(*F, k, Sign::update), &made, stop, begun), int);
  EXPECT_FALSE(begun);
  EXPECT_FALSE(made);
  EXPECT_TRUE(same_bits(download(*F), R));
  EXPECT_THROW(F->modify(V.data(), task(*F, k, Sign::update), nullptr, stop, begun), int);
  EXPECT_FALSE(begun);  // only a second factor has changed
  EXPECT_TRUE(same_bits(download(*F), R));
  Task in_place = task(*F, k, Sign::update);
  in_place.device_memory = F->bytes();
  EXPECT_THROW(F->modify(V.data(), in_place, nullptr, stop, begun), int);
  EXPECT_TRUE(begun);
}

/// Checks that the kernels that status() reports for a GPU are the kernels that run there.
TEST(FactorModify, GoesByTheKernelsThatAreTold) {
  const index_t n = 300;
  const Factor F = upload(example(n));
  const cuda::Status status = cuda::status(false);
  for (const cuda::Device& device : status.devices) {
    if (device.id != status.device) continue;
    Work work;
    modified(*F, Doubles::Constant(n, 5, 1e-3), task(*F, 5, Sign::update), work);
    EXPECT_EQ(work.launch, device.kernels >= cuda::Kernels::plain ? Launch::persistent : Launch::stepwise);
    EXPECT_GE(device.kernels, cuda::Kernels::steps);
  }
}

TEST(FactorModify, HasATimeline) {
  const index_t n = 700, k = 70;
  const Doubles V = Doubles::Constant(n, k, 1e-3);
  const Factor F = upload(example(n));
  Task timed = task(*F, k, Sign::update);
  timed.timeline = true;
  Work work;
  modified(*F, V, timed, work);
  ASSERT_EQ(work.timeline.size(), 2 * std::size_t((k + widest_pass() - 1) / widest_pass()));
  double last = 0;
  for (const Timeline::Entry& entry : work.timeline) {
    EXPECT_LE(last, entry.begin);
    EXPECT_LT(entry.begin, last = entry.end);
  }
}

TEST(FactorModify, RefusesAVThatIsNotFinite) {
  const Doubles R = example(40);
  const Factor F = upload(R, Precision::single);
  for (const double value : {nan, 1e300}) {
    Doubles V = Doubles::Zero(40, 2);
    V(30, 1) = value;
    const auto error = error_of([&] { modify(*F, V, task(*F, 2, Sign::update)); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), value > 1 ? ErrorCode::overflow : ErrorCode::not_finite);
    EXPECT_EQ(number(*error, "row"), 31);
    EXPECT_EQ(number(*error, "col"), 2);
    EXPECT_TRUE(same_bits(download(*F), in(Precision::single, R)));
  }
}

}  // namespace
}  // namespace gpucholmod::test
