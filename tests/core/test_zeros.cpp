#include "base/semidefinite.h"
#include "cpu/host_factor.h"
#include "cpu/kernels.h"
#include "grid_measure.h"
#include "reshape_call.h"

/// Zeros on the diagonal of a factor, which are replaced by stand-ins: in the kernels of a GPU, and in factors that are
/// kept. The contract of every storage is in modify_diagonal.h.
namespace gpucholmod::test {
namespace {

/// Returns two factors: one that is zero, and R with every third diagonal entry and every sixth row 0.
std::vector<Stored<double>> with_zeros(Stored<double> R) {
  for (index_t i = 0; i < R.rows(); i += 3) {
    R(i, i) = 0;
    if (i % 2 == 0) R.row(i).setZero();
  }
  return {Stored<double>::Zero(R.rows(), R.cols()), R};
}

template <class T>
void expect_updated(const Problem<double>& p, const SegmentsRun& how, Precision computed) {
  const index_t n = p.R.cols();
  Zeros zeros(MemorySource<double>(p.R.data(), n), n);
  zeros.choose<T>(computed, std::max(p.R.cwiseAbs().maxCoeff(), p.V.cwiseAbs().maxCoeff()));
  Problem<double> mended = p;
  zeros.put(mended.R.data());
  const SegmentsResult<T> result = run_segments<T>(mended, how);
  ASSERT_EQ(result.done.pivot, -1);
  Stored<double> R = result.R.template cast<double>();
  zeros.take(Uplo::upper, R.data(), 1);
  ASSERT_TRUE(R.allFinite());
  EXPECT_GE(R.diagonal().minCoeff(), 0);
  EXPECT_LT(Residual(p).ratio(R, eps<T>), 30);
  if (p.R.isZero(0)) { EXPECT_TRUE(R.bottomRows(n / 4).isZero(0)); }
}

/// Row blocks with zeros are rejected, and taken by Householder steps.
TEST(Zeros, AreUpdatedByTheKernelsOfAGpu) {
  Random random(8);
  for (const index_t n : {16, 200})
    for (const index_t k : {1, 9, 32})
      for (const Stored<double>& R : with_zeros(well_conditioned(n, random).cast<double>())) {
        SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k));
        Problem<double> p{Sign::update, R, random.normal(n, k).cast<double>()};
        p.V.bottomRows(n / 4).setZero();
        p = stored_as<float>(p);
        for (const Into into : {Into::other_memory, Into::place})
          for (const Simulated card : {Simulated::clusters, Simulated::graphics})
            for (const bool by_steps : {false, true}) {
              SegmentsRun how;
              how.into = into;
              how.card = card;
              how.by_steps = by_steps;
              if (card != Simulated::graphics) expect_updated<double>(p, how, Precision::double_);
              expect_updated<float>(p, how, Precision::single);
            }
      }
}

std::unique_ptr<HeldFactor> kept(const Stored<double>& R, Precision precision = Precision::double_) {
  return keep_with_zeros(R.data(), R.cols(), Uplo::upper, precision, [&](const double* numbers) {
    return cpu::hold(numbers, R.cols(), Uplo::upper, precision, R.cols() + 2, cpu::ordinary_memory);
  });
}

Task adding(const HeldFactor& f, index_t k) {
  Task task;
  task.n = f.order();
  task.k = k;
  task.precision = f.precision();
  task.threads = 1;
  task.instructions = cpu::resolve(Instructions::automatic);
  return task;
}

/// Checks that operations that need a positive definite matrix name the first zero, and change nothing.
TEST(Zeros, WhatAFactorWithZerosCannotDo) {
  Stored<double> R = Stored<double>::Identity(5, 5);
  R(3, 3) = 0;
  R(1, 1) = -2;
  const auto f = kept(R);
  std::atomic<bool> begun{false};
  std::vector<double> numbers(36, 1.0);
  const Task task = adding(*f, 1);
  const std::vector<std::function<void()>> refused = {
      [&] { f->solve(TriangularSolve::both, numbers.data(), 1); }, [&] { f->inverse(numbers.data()); },
      [&] { f->remove({1}, task, nullptr, no_poll, begun); },
      [&] { f->insert(0, numbers.data(), 1, task, nullptr, no_poll, begun); },
      [&] { f->shift(0, 2, task, nullptr, no_poll, begun); },
      [&] {
        Task downdate = task;
        downdate.removed = 1;
        f->modify(numbers.data(), downdate, nullptr, no_poll, begun);
      }};
  R(1, 1) = 2;
  for (const auto& call : refused) {
    const auto error = error_of(call);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), 4);
    EXPECT_EQ(number(*error, "value"), 0);
    EXPECT_FALSE(begun);
    EXPECT_EQ(contents(*f), R);
  }
  EXPECT_EQ(contents(*f->copy()), R);
}

/// Checks that a factor without zeros left is like any other, also if it was scaled down for long before.
TEST(Zeros, AreGoneWhenSomethingHasCome) {
  const index_t n = 12;
  for (const Precision precision : precisions) {
    const auto f = kept(Stored<double>::Zero(n, n), precision);
    std::atomic<bool> begun{false};
    Task task = adding(*f, 1);
    task.scale = 0.5;
    Stored<double> v = Stored<double>::Zero(n, 1);
    for (int i = 0; i < 3000; ++i) {
      v(i % (n - 1)) = 1;
      ASSERT_EQ(f->modify(v.data(), task, nullptr, no_poll, begun).pivot, -1);
      v(i % (n - 1)) = 0;
    }
    EXPECT_EQ(contents(*f)(n - 1, n - 1), 0);
    EXPECT_GT(contents(*f).diagonal().head(n - 1).minCoeff(), 0);
    v(n - 1) = 3;
    std::unique_ptr<HeldFactor> made;
    ASSERT_EQ(f->modify(v.data(), task, &made, no_poll, begun).pivot, -1);
    EXPECT_EQ(contents(*made)(n - 1, n - 1), 1.5);
    EXPECT_EQ(contents(*f)(n - 1, n - 1), 0);
    made->solve(TriangularSolve::both, v.data(), 1);
    EXPECT_NEAR(v(n - 1), 3 / 2.25, 1e-6);
  }
}

/// Checks that a row with a zero on the diagonal keeps its small numbers if V is too large, or if the result goes into
/// another factor.
TEST(Zeros, SmallNumbersStayWhereLargeOnesDoNotCome) {
  for (const Precision precision : precisions) {
    const bool single = precision == Precision::single;
    Stored<double> R = Stored<double>::Identity(4, 4);
    R.row(1) << 0, 0, std::ldexp(1, single ? -7 : -300), 0;
    const auto f = kept(R, precision);
    ASSERT_EQ(contents(*f), R);
    std::atomic<bool> begun{false};
    const double largest = single ? 0x1.8p127 : 0x1.8p1023, large = largest * 0x1p-24;
    for (const double size : {largest, single ? 1e200 : largest}) {
      const Stored<double> V = Stored<double>::Constant(4, 3, size);
      const auto error = error_of([&] { f->modify(V.data(), adding(*f, 3), nullptr, no_poll, begun); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::overflow);
      EXPECT_FALSE(begun);
      EXPECT_EQ(contents(*f), R);
    }
    std::unique_ptr<HeldFactor> made;
    const Stored<double> V = Stored<double>::Constant(4, 1, large);
    EXPECT_EQ(f->modify(V.data(), adding(*f, 1), &made, no_poll, begun).pivot, -1);
    EXPECT_EQ(contents(*f), R);
    EXPECT_NEAR(contents(*made)(0, 3) / large, 1, 1e-6);
  }
}

}  // namespace
}  // namespace gpucholmod::test
