#include "../batch_call.h"
#include "../vanishing.h"
#include "factor_call.h"
#include "cuda/device_batch.h"

/// Diagonal entries that would cease to be normal numbers, on a GPU: an error of class bad_diagonal, after which
/// nothing has changed.
namespace gpucholmod::test {
namespace {

Doubles diagonal(std::initializer_list<double> entries) {
  Doubles R = Doubles::Zero(index_t(entries.size()), index_t(entries.size()));
  index_t j = 0;
  for (const double x : entries) R(j, j) = x, ++j;
  return R;
}

/// Checks modifications in place, with memory for a second factor and without, and as a new factor.
template <class S>
void held_factors_keep_their_diagonal(Precision precision) {
  for (const Vanishing& how : all_that_vanish)
    for (const index_t n : {9, 70, 300})
      for (const index_t k : {1, 3, 7}) {
        SCOPED_TRACE(std::string(how.name) + ", n " + std::to_string(n) + ", k " + std::to_string(k));
        const Problem<S> given = problem_of<S>(how, n, k);
        const Doubles R = given.R.template cast<double>(), V = given.V.template cast<double>();
        const Factor F = upload(R, precision);
        Task t = task(*F, k, how.sign);
        t.scale = 4;
        Work work;
        t.removed = 0;
        EXPECT_GE(download(*modified(*F, V, t, work))(n - 1, n - 1), 4 * R(n - 1, n - 1));
        t.removed = how.sign == Sign::downdate ? k : 0;
        t.scale = how.scale;
        expect_vanished<S>(error_of([&] { modified(*F, V, t, work); }), n, how, "a new one");
        for (const bool room : {true, false}) {
          t.device_memory = room ? work.device_bytes : work.device_bytes - F->bytes();
          bool changed = true;
          expect_vanished<S>(error_of([&] { modify(*F, V, t, &changed); }), n, how, room ? "in place" : "without room");
          EXPECT_TRUE(same_bits(download(*F), R));
        }
      }
}
TEST(VanishingOnGpu, OfFactorsThatAreHeld) { held_factors_keep_their_diagonal<double>(Precision::double_); }
TEST(VanishingOnGpu, OfFactorsThatAreHeldInSinglePrecision) {
  held_factors_keep_their_diagonal<float>(Precision::single);
}

TEST(VanishingOnGpu, OfMatrices) {
  for (const Vanishing& how : all_that_vanish)
    for (const Method method : {Method::automatic, Method::stream}) {
      const index_t n = 200, k = 3;
      const Problem<double> p = problem_of<double>(how, n, k);
      Request request;
      request.backend = Backend::cuda;
      request.method = method;
      request.n = n;
      request.k = k;
      request.removed = p.sign == Sign::downdate ? k : 0;
      request.scale = how.scale;
      Doubles out(n, n);
      expect_vanished<double>(
          error_of([&] { modify(Place<double>::memory(p.R.data(), out.data()), p.V.data(), request, no_poll); }), n,
          how, "matrix");
    }
}

TEST(VanishingOnGpu, ByAScaleAloneAndByForgetting) {
  const Factor F = upload(diagonal({1, 1e-200}));
  Task alone = task(*F, 0, Sign::update);
  alone.scale = 1e-150;
  for (const bool in_place : {false, true}) {
    Work work;
    const auto error = error_of(
        [&] { in_place ? modify(*F, Doubles(2, 0), alone) : (modified(*F, Doubles(2, 0), alone, work), work); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), 2);
  }
  Task step = task(*F, 1, Sign::update);
  step.scale = 1e-3;
  const Doubles V = Doubles::Identity(2, 1);
  int steps = 0;
  std::optional<Error> error;
  while (!error && steps < 100) error = error_of([&] { modify(*F, V, step); ++steps; });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
  EXPECT_EQ(steps, 35);
  EXPECT_NEAR(download(*F)(0, 0), 1e-3, 1e-8);
}

TEST(VanishingOnGpu, OfRowsThatMoveAndCome) {
  Doubles R = diagonal({1, 1e-200, 1, 1e-150, 1});
  R(1, 3) = 1;
  const Factor F = upload(R);
  Task how;
  std::atomic<bool> begun{false};
  const auto expect_bad_diagonal = [&](auto&& f, index_t index) {
    const auto error = error_of(f);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), index);
    EXPECT_FALSE(begun);
    EXPECT_TRUE(same_bits(download(*F), R));
  };
  expect_bad_diagonal([&] { F->shift(1, 4, how, nullptr, no_poll, begun); }, 5);
  expect_bad_diagonal([&] { F->shift(3, 0, how, nullptr, no_poll, begun); }, 3);
  F->shift(3, 2, how, nullptr, no_poll, begun);
  EXPECT_EQ(download(*F).diagonal(), diagonal({1, 1e-200, 1e-150, 1, 1}).diagonal());

  const Factor single = upload(diagonal({1, 1}), Precision::single);
  for (const index_t at : {0, 1, 2}) {
    Doubles X = Doubles::Zero(3, 1);
    X(at, 0) = 1e-100;
    begun = false;
    const auto error = error_of([&] { single->insert(at, X.data(), 1, how, nullptr, no_poll, begun); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), at + 1);
    EXPECT_NEAR(number(*error, "value"), 1e-50, 1e-63);
    EXPECT_FALSE(begun);
  }
  EXPECT_EQ(single->order(), 2);
}

/// Checks batches in which a diagonal entry of one member alone vanishes.
TEST(VanishingOnGpu, OfMembersOfABatch) {
  for (const Precision precision : precisions)
    for (const Vanishing& how : all_that_vanish)
      for (const index_t n : {6, 100, 200})
        for (const index_t k : {1, 3, 7})
          for (const bool in_place : {true, false}) {
            SCOPED_TRACE(std::string(how.name) + ", n " + std::to_string(n) + ", k " + std::to_string(k));
            const auto of = [&](const Vanishing& one) {
              if (precision == Precision::double_) return problem_of<double>(one, n, k);
              const Problem<float> p = problem_of<float>(one, n, k);
              return Problem<double>{p.sign, p.R.cast<double>(), p.V.cast<double>()};
            };
            std::vector<Problem<double>> members(21, of({"", how.sign, 1e10, 0, 1, 0}));
            members[13] = of(how);
            Batch batch(members);
            batch.scale = {how.scale * how.scale};
            const auto held = cuda::upload_batch(batch.R.data(), n, 21, Uplo::upper, precision, -1);
            const auto all = [&] {
              std::vector<double> R(n * n * 21);
              held->download(Uplo::upper, R.data());
              return R;
            };
            const std::vector<double> before = all();
            std::unique_ptr<HeldBatch> made;
            Pivots pivots;
            std::atomic<bool> begun{false};
            const auto error = error_of([&] {
              held->modify(batch.V.data(), batch.given(), in_place ? nullptr : &made, pivots, no_poll, begun);
            });
            if (precision == Precision::double_) expect_vanished<double>(error, n, how, "batch");
            else expect_vanished<float>(error, n, how, "batch of floats");
            EXPECT_EQ(number(*error, "member"), 14);
            EXPECT_FALSE(begun);
            EXPECT_EQ(all(), before);
          }
}

/// Checks that a factor that once held a number near the end of the range is treated as any other when the number is
/// gone.
TEST(VanishingOnGpu, IsNotExpectedOfNumbersThatHaveGone) {
  const index_t n = 200;
  Doubles R = example(n + 1);
  R.col(n) *= 1e305;
  const Factor F = upload(R);
  Task how;
  std::atomic<bool> begun{false};
  F->remove({n}, how, nullptr, no_poll, begun);
  const Doubles rest = download(*F), V = Random(3).normal(n, 2).cast<double>() * 1e-2;
  EXPECT_EQ(modify(*F, V, task(*F, 2, Sign::update)).pivot, -1);
  EXPECT_LT(Residual(Problem<double>{Sign::update, rest, V}).ratio(download(*F), epsilon(Precision::double_)), 30);
  const Matrix A = gram(rest);
  Doubles X = Doubles::Zero(n + 1, 1);
  X(n, 0) = 1e-30;
  EXPECT_EQ(F->insert(n, X.data(), 1, how, nullptr, no_poll, begun), -1);
  EXPECT_NEAR(download(*F)(n, n), 1e-15, 1e-29);
}

}  // namespace
}  // namespace gpucholmod::test
