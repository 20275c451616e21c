#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/pool.h"
#include "factor_call.h"

/// A factor in the memory of a GPU: upload and download, computations with it, and its state after a call that fails.
/// Modifications have tests of their own.
namespace gpucholmod::test {
namespace {

TEST(Factor, ThereAndBack) {
  for (const index_t n : sizes)
    for (const Uplo from : uplos)
      for (const Precision precision : precisions) {
        const Doubles R = example(n);
        const Factor F = upload(R, precision, from), G = upload(Stored<float>(R.cast<float>()), precision, from);
        EXPECT_EQ(F->order(), n);
        EXPECT_EQ(F->precision(), precision);
        for (const Uplo to : uplos) {
          const auto expected = [&](const Doubles& U) { return to == Uplo::upper ? U : Doubles(U.transpose()); };
          EXPECT_TRUE(same_bits(download(*F, to), expected(in(precision, R)))) << n;
          EXPECT_TRUE(same_bits(download(*G, to), expected(in(Precision::single, R)))) << n;
        }
      }
}

TEST(Factor, KnowsWhereItIs) {
  const auto F = upload(example(300)), G = upload(example(300), Precision::single);
  EXPECT_EQ(F->device(), cuda::status(false).device);
  EXPECT_FALSE(F->device_name().empty());
  EXPECT_GE(F->bytes(), 8.0 * 300 * 300);
  EXPECT_EQ(F->bytes(), 2 * G->bytes());
  EXPECT_EQ(upload(example(3), Precision::double_, Uplo::upper, F->device())->device(), F->device());
  for (const int device : {-2, 1000}) {
    const auto error = error_of([&] { upload(example(3), Precision::double_, Uplo::upper, device); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_argument);
    EXPECT_EQ(text(*error, "argument"), "device");
    EXPECT_EQ(number(*error, "value"), device);
  }
}

TEST(Factor, RefusesWhatIsNone) {
  const auto refusal = [](index_t i, index_t j, double value, Precision precision, Uplo uplo) {
    Doubles R = example(5);
    R(i, j) = value;
    return error_of([&] { upload(R, precision, uplo); });
  };
  for (const Uplo uplo : uplos) {
    const auto missing = refusal(1, 3, nan, Precision::double_, uplo);
    ASSERT_TRUE(missing);
    EXPECT_EQ(missing->code(), ErrorCode::not_finite);
    EXPECT_EQ(number(*missing, "row"), uplo == Uplo::upper ? 2 : 4);
    const auto large = refusal(1, 3, 1e300, Precision::single, uplo);
    ASSERT_TRUE(large);
    EXPECT_EQ(large->code(), ErrorCode::overflow);
    EXPECT_EQ(number(*large, "col"), uplo == Uplo::upper ? 4 : 2);
    EXPECT_FALSE(refusal(1, 3, 1e300, Precision::double_, uplo));
    for (const double value : {0.0, 1e-300}) {
      const auto small = refusal(2, 2, value, Precision::single, uplo);
      ASSERT_TRUE(small);
      EXPECT_EQ(small->code(), ErrorCode::bad_diagonal);
      EXPECT_EQ(number(*small, "index"), 3);
      EXPECT_EQ(number(*small, "value"), value);
    }
  }
}

/// Checks ratio = ||R'R - A||_1 / (n eps ||A||_1) < 30.
TEST(Factor, Factorises) {
  for (const index_t n : {1, 2, 129, 300})
    for (const Uplo uplo : uplos)
      for (const Precision precision : precisions) {
        const Matrix A = gram(example(n));
        index_t pivot = -2;
        const Factor F = cuda::factorise(stored(Doubles(A.cast<double>()), uplo).data(), n, uplo, precision, -1, pivot);
        ASSERT_TRUE(F);
        EXPECT_EQ(pivot, -1);
        EXPECT_LT(norm_1(gram(download(*F)) - A) / (n * epsilon(precision) * norm_1(A)), 30);
      }
  index_t pivot = -2;
  EXPECT_EQ(cuda::factorise<double>(nullptr, 0, Uplo::upper, Precision::double_, -1, pivot)->order(), 0);
  EXPECT_EQ(pivot, -1);
}

TEST(Factor, FactorisationFindsThePivotThatFails) {
  for (const index_t n : {32, 64, 128, 256, 300})
    for (const index_t failing : {index_t(0), index_t(1), index_t(31), index_t(32), index_t(63), index_t(64),
                                  index_t(127), index_t(128), index_t(150), n - 1})
      for (const Precision precision : precisions) {
        if (failing >= n) continue;
        Doubles A = gram(example(n)).cast<double>();
        A(failing, failing) = -1;
        index_t pivot = -2;
        EXPECT_FALSE(cuda::factorise(A.data(), n, Uplo::upper, precision, -1, pivot));
        EXPECT_EQ(pivot, failing) << n;
      }
}

TEST(Factor, DiagonalAndTrace) {
  for (const index_t n : sizes)
    for (const Precision precision : precisions) {
      const Doubles R = in(precision, example(n));
      const Factor F = upload(R, precision);
      Doubles diagonal = Doubles::Constant(n, 1, nan);
      F->diagonal(diagonal.data());
      EXPECT_TRUE(same_bits(diagonal, Doubles(R.diagonal())));
      const real trace = R.cast<real>().squaredNorm();
      EXPECT_LE(std::abs(F->trace() - trace), 30 * 0x1p-52 * trace);
      EXPECT_EQ(F->trace(), F->trace());
    }
}

/// Checks ratio = ||M X - B||_1 / (n eps ||M||_1 ||X||_1) < 30 for M = R'R, R' and R. m = 600 is more than is solved
/// for at a time.
TEST(Factor, Solves) {
  for (const index_t n : {1, 127, 300})
    for (const Precision precision : precisions) {
      const Doubles R = example(n);
      const Factor F = upload(R, precision);
      const Matrix U = R.cast<real>();
      for (const index_t m : {0, 1, 3, 20, 65, 600}) {
        Random random(3);
        const Doubles B = random.normal(n, m).cast<double>();
        for (const auto& [which, M] : {std::pair(TriangularSolve::both, gram(R)),
                                       {TriangularSolve::forward, Matrix(U.transpose())}, {TriangularSolve::back, U}}) {
          Doubles X = B;
          F->solve(which, X.data(), m);
          if (m == 0) continue;
          const Matrix x = X.cast<real>();
          EXPECT_LT(norm_1(M * x - B.cast<real>()) / (n * epsilon(precision) * norm_1(M) * norm_1(x)), 30);
        }
      }
    }
}

/// Checks ratio = ||A X - I||_1 / (n eps ||A||_1 ||X||_1) < 30.
TEST(Factor, Inverts) {
  for (const index_t n : {1, 128, 300, 1100})
    for (const Precision precision : precisions) {
      const Doubles R = example(n);
      Doubles X = Doubles::Constant(n, n, nan);
      upload(R, precision)->inverse(X.data());
      EXPECT_TRUE(same_bits(X, Doubles(X.transpose())));
      const Doubles residual = R.transpose() * (R * X) - Doubles::Identity(n, n);
      const Matrix A = (R.transpose() * R).cast<real>();
      EXPECT_LT(norm_1(residual.cast<real>()) / (n * epsilon(precision) * norm_1(A) * norm_1(X.cast<real>())), 30);
    }
}

/// Checks ratio = ||Y - A X||_1 / (n eps ||R'||_1 ||R||_1 ||X||_1) < 30, with the eps of double in both precisions, and
/// the corresponding ratios of R X and R'X.
TEST(Factor, Multiplies) {
  for (const index_t n : sizes)
    for (const Precision precision : precisions) {
      const Doubles R = in(precision, example(n));
      const auto F = upload(R, precision);
      const Matrix U = R.cast<real>(), A = gram(R);
      for (const index_t m : {0, 1, 4, 600}) {
        Random random(9);
        const Matrix X = random.normal(n, m).cast<double>().cast<real>();
        const auto times = [&](TriangularProduct which) {
          Doubles Y = X.cast<double>();
          F->multiply(which, Y.data(), m);
          return Matrix(Y.cast<real>());
        };
        const Matrix AX = times(TriangularProduct::both), UX = times(TriangularProduct::plain),
                     UtX = times(TriangularProduct::transposed);
        if (n == 0 || m == 0) continue;
        const real unit = n * 0x1p-52 * norm_1(X);
        EXPECT_LT(norm_1(AX - A * X) / (unit * norm_1(U.transpose()) * norm_1(U)), 30);
        EXPECT_LT(norm_1(UX - U * X) / (unit * norm_1(U)), 30);
        EXPECT_LT(norm_1(UtX - U.transpose() * X) / (unit * norm_1(U.transpose())), 30);
      }
    }
}

TEST(Factor, IsMeasuredWithoutBeingChanged) {
  for (const index_t n : sizes)
    for (const Precision precision : precisions) {
      const Doubles R = in(precision, example(n));
      const auto F = upload(R, precision);
      for (const int repeats : {1, 4})
        for (const double seconds : {F->sweep_seconds(repeats), F->refactor_seconds(repeats)}) {
          EXPECT_EQ(seconds > 0, n > 0);
          EXPECT_LT(seconds, 1);
        }
      EXPECT_TRUE(same_bits(download(*F), R));
    }
}

/// Runs all computations of a factor, at order 1100.
void exercise() {
  const index_t n = 1100;
  const auto F = upload(example(n));
  Doubles V = Doubles::Constant(n, 70, 1e-3), B = V, X(n, n);
  Work work;
  Factor G = modified(*F, V, task(*F, 70, Sign::update), work);
  for (int repeat = 0; repeat < 3; ++repeat) G = modified(*G, V, task(*G, 3, Sign::update), work);
  modify(*G, V, task(*G, 70, Sign::downdate));
  F->copy()->solve(TriangularSolve::both, B.data(), 70);
  F->inverse(X.data());
  F->trace();
  F->multiply(TriangularProduct::both, B.data(), 70);
  F->sweep_seconds(1);
  F->refactor_seconds(1);
  index_t pivot;
  cuda::factorise(Doubles(Doubles::Identity(n, n)).data(), n, Uplo::upper, Precision::single, -1, pivot);
}

TEST(Factor, GivesAllMemoryBack) {
  exercise();  // the handles of the libraries stay,
  exercise();  // and what the driver takes for the second time
  const double before = free_memory();
  exercise();
  EXPECT_EQ(free_memory(), before);
  const Factor F = upload(example(4000));
  EXPECT_LE(free_memory(), before - F->bytes());
}

TEST(Factor, RunningOutOfMemoryLeavesItAsItWas) {
  constexpr double left = 200e6;  // less than a second factor takes
  const cuda::CurrentDevice current(cuda::status(false).device);
  const cuda::Stream stream;
  cuda::Pool pool(cuda::status(false).device, stream);
  const Doubles R = Doubles::Identity(6000, 6000);
  const Factor F = upload(R);
  {
    const cuda::PoolBuffer<char> rest(pool, index_t(free_memory() - left));
    const auto error = error_of([&] { F->copy(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
    EXPECT_EQ(number(*error, "needed"), F->bytes());
    EXPECT_LT(number(*error, "available"), F->bytes());
    EXPECT_EQ(F->trace(), 6000);
  }
  EXPECT_EQ(F->copy()->trace(), 6000);
}

TEST(Factor, IsLeftAloneInAForkedProcess) {
  const Doubles R = example(200);
  Factor F = upload(R);
  const pid_t child = fork();
  if (child == 0) {
    const auto refused = [](const std::optional<Error>& error) {
      return error && error->code() == ErrorCode::backend_unavailable && text(*error, "reason") == "forked";
    };
    const bool right = refused(error_of([&] { F->trace(); })) && refused(error_of([&] { upload(R); }));
    F.reset();
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(same_bits(download(*F), R));
}

}  // namespace
}  // namespace gpucholmod::test
