#include <gtest/gtest.h>

#include "../reshape_call.h"
#include "factor_call.h"

/// Insertions, removals and moves of rows and columns of a factor in the memory of a GPU.
namespace gpucholmod::test {
namespace {

const Keep on_gpu = [](const Doubles& R, Precision precision, index_t capacity) {
  return Factor(cuda::upload(R.data(), R.cols(), Uplo::upper, precision, capacity, -1));
};

TEST(ReshapeOnGpu, RowsAndColumnsComeGoAndMove) {
  expect_reshapes(on_gpu, {1, 2, 65, 128, 300}, {0, 1, 5, 40});
  expect_reshapes(on_gpu, {710}, {17});
}
TEST(ReshapeOnGpu, GrowsAndShrinks) {
  expect_growth(on_gpu, 150, 7);
  expect_growth(on_gpu, 400, 90);
}
TEST(ReshapeOnGpu, WhatCannotBeInserted) { expect_pivots(on_gpu); }

/// Checks that results have the same bits in place and as a new factor, with any capacity.
TEST(ReshapeOnGpu, TheSameInPlace) {
  const index_t n = 900;
  const Doubles R = example(n);
  const Matrix A = gram(R);
  Task how;
  for (const index_t capacity : {n + 1, 2 * n}) {
    const Factor f = on_gpu(R, Precision::double_, capacity), g = on_gpu(R, Precision::double_, 0);
    std::atomic<bool> begun{false};
    Factor made;
    f->remove({3, 400, 401, 899}, how, nullptr, no_poll, begun);
    g->remove({3, 400, 401, 899}, how, &made, no_poll, begun);
    EXPECT_TRUE(same_bits(download(*f), download(*made)));
    f->shift(800, 20, how, nullptr, no_poll, begun);
    made->shift(800, 20, how, nullptr, no_poll, begun);
    f->shift(7, 650, how, nullptr, no_poll, begun);
    made->shift(7, 650, how, nullptr, no_poll, begun);
    EXPECT_TRUE(same_bits(download(*f), download(*made)));
  }
}

/// Checks numbers near the ends of the range, which are changed by way of a scaled factor.
TEST(ReshapeOnGpu, NumbersOfAnySize) {
  for (const double size : {1e-140, 1e150}) {
    const index_t n = 260;
    const Doubles R = example(n) * size;
    const Factor f = on_gpu(R, Precision::double_, n), whole = on_gpu(R, Precision::double_, n);
    Task how;
    std::atomic<bool> begun{false};
    f->remove({100}, how, nullptr, no_poll, begun);
    const Doubles unit = example(n);
    const Matrix A = gram(unit);
    Doubles X = (A.col(100).cast<double>() * size) * size;
    EXPECT_EQ(f->insert(100, X.data(), 1, how, nullptr, no_poll, begun), -1);
    const Doubles back = download(*f) / size;
    EXPECT_LT(double(norm_1(gram(back) - A) / norm_1(A)), 1e-13);
    f->shift(3, 200, how, nullptr, no_poll, begun);
    EXPECT_TRUE(download(*f).allFinite());
  }
}

/// Checks factors in single precision whose A is beyond the range of floats though R is not.
TEST(ReshapeOnGpu, SingleNumbersOfAnySize) {
  for (const double size : {1e-17, 1e15}) {
    const index_t n = 200;
    const Doubles unit = example(n);
    const Matrix A = gram(unit);
    const Factor f = on_gpu(unit * size, Precision::single, n);
    Task how;
    how.precision = Precision::single;
    std::atomic<bool> begun{false};
    f->remove({50}, how, nullptr, no_poll, begun);
    Doubles X = (A.col(50).cast<double>() * size) * size;
    EXPECT_EQ(f->insert(50, X.data(), 1, how, nullptr, no_poll, begun), -1);
    EXPECT_LT(double(norm_1(gram(Doubles(download(*f) / size)) - A) / norm_1(A)), 1e-5);
  }
}

/// Checks the insertion of an exact copy of a row. The pivot of the second copy consists of rounding errors and may be
/// found positive or not. Nothing is lost if there is room for a second factor; if there is none, `begun` tells of the
/// loss.
TEST(ReshapeOnGpu, ARowTwice) {
  const index_t n = 260;
  for (const index_t twin : {30, 200, 259})
    for (const double most : {std::numeric_limits<double>::infinity(), 1e6}) {
      const Factor f = on_gpu(example(n), Precision::double_, n + 1);
      const Doubles before = download(*f);
      const Matrix A = gram(before);
      Doubles X(n + 1, 1);
      X << double(A(twin, twin)), A.col(twin).cast<double>();
      Task how;
      how.device_memory = most;
      std::atomic<bool> begun{false};
      const index_t pivot = f->insert(0, X.data(), 1, how, nullptr, no_poll, begun);
      if (pivot < 0) continue;
      EXPECT_EQ(pivot, twin + 1);
      EXPECT_FALSE(begun && most > 1e6);
      EXPECT_TRUE(begun || same_bits(download(*f), before));
    }
}

/// Checks that calls keep to `device_memory`.
TEST(ReshapeOnGpu, TakesWhatItMay) {
  const index_t n = 500;
  const Factor f = on_gpu(example(n), Precision::double_, n + 1);
  const Doubles before = download(*f), X = Doubles::Identity(n + 1, n + 1).col(n) * 2;
  Task how;
  std::atomic<bool> begun{false};
  for (const double most : {1000.0, 30000.0}) {  // too little for the gathered rows, and for the pass
    how.device_memory = most;
    EXPECT_EQ(error_of([&] { f->remove({1, 2, 3}, how, nullptr, no_poll, begun); })->code(), ErrorCode::out_of_memory);
    EXPECT_FALSE(begun);
  }
  how.device_memory = 1000;
  EXPECT_EQ(error_of([&] { f->insert(n, X.data(), 1, how, nullptr, no_poll, begun); })->code(),
            ErrorCode::out_of_memory);
  EXPECT_EQ(error_of([&] { f->remove({1}, how, nullptr, no_poll, begun); })->code(), ErrorCode::out_of_memory);
  EXPECT_FALSE(begun);
  EXPECT_TRUE(same_bits(download(*f), before));
}

}  // namespace
}  // namespace gpucholmod::test
