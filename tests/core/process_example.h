#pragma once

#include <gtest/gtest.h>

#include "call.h"
#include "cpu/host_factor.h"
#include "mpi/factor.h"
#include "process_threads.h"

/// Factors over several processes, which are threads, beside factors in one process.
namespace gpucholmod::test {

using Doubles = Stored<double>;

inline const cpu::Allocate allocate = cpu::ordinary_memory;

inline Task task(index_t n, index_t k, index_t removed, Precision precision, int threads = 1) {
  Task t;
  t.n = n;
  t.k = k;
  t.removed = removed;
  t.precision = precision;
  t.instructions = cpu::resolve(Instructions::automatic);
  t.threads = threads;
  return t;
}

/// An upper factor with NaN below the diagonal, which must not be read, and columns any of which can be taken away.
struct Example {
  Doubles R, V;
  Example(index_t n, index_t k, double size = 1) {
    Random random(3);
    R = random.normal(n, n).cast<double>() * (size / (1 + 4 * std::sqrt(double(n))));
    R.diagonal().array() = R.diagonal().array().abs() + size;
    for (index_t j = 0; j < n; ++j) R.col(j).tail(n - j - 1).setConstant(std::numeric_limits<double>::quiet_NaN());
    V = random.normal(n, k).cast<double>() * (size / (10 * std::sqrt(double(n) * k + 1)));
  }
};

inline Doubles whole(const HeldFactor& f, int rank, Uplo uplo = Uplo::upper) {
  Doubles out = Doubles::Constant(f.order(), f.order(), std::numeric_limits<double>::quiet_NaN());
  f.download(uplo, rank == 0 ? out.data() : nullptr);
  return out;
}

/// Holds right-hand sides z and Y, and the results `out` and `rest`.
struct Sides {
  Doubles z, Y, out, rest;
  Sides(index_t n, index_t k, index_t m)
      : z(Random(11).normal(n, m).cast<double>()), Y(Random(12).normal(m, k).cast<double>()) {}
  Task with(Task t, index_t order) {
    out = Doubles::Zero(order, z.cols());
    rest = Doubles::Zero(z.cols(), Y.cols());
    t.right = sides_in(z, Y, out, rest);
    return t;
  }
};

/// Returns the modified factor that one process computes in ordinary memory.
inline Doubles expected(const Example& p, const Task& t, Uplo uplo = Uplo::upper) {
  const auto f = cpu::hold(p.R.data(), p.R.cols(), Uplo::upper, t.precision, 0, allocate);
  std::atomic<bool> begun{false};
  EXPECT_EQ(f->modify(p.V.data(), t, nullptr, no_poll, begun).pivot, -1);
  return whole(*f, 0, uplo);
}

/// Returns the relative difference of the squares of what is left of right-hand sides, squares of columns that are
/// taken away counted negative. Only their signed sum is independent of the way in which V is eliminated.
inline double away_in_squares(const Doubles& got, const Doubles& right, const Task& t) {
  Doubles signs = Doubles::Ones(t.k, 1);
  signs.bottomRows(t.removed).setConstant(-1);
  const double by = right.cwiseAbs().maxCoeff();
  return (((got / by).array().square() - (right / by).array().square()).matrix() * signs).norm() /
         (right / by).squaredNorm();
}
inline double away(const Doubles& got, const Doubles& right) {
  const double by = right.cwiseAbs().maxCoeff();  // squares of very large or small numbers leave the range
  return (got / by - right / by).norm() / (right / by).norm();
}

/// Expects f() to throw Stop in process `stopped`, and the error of a process that was stopped in the others.
template <class Stop, class F>
void expect_stopped(int rank, int stopped, F&& f) {
  if (rank == stopped) {
    EXPECT_THROW(f(), Stop);
    return;
  }
  const auto error = error_of(f);
  ASSERT_TRUE(error);
  EXPECT_EQ(text(*error, "reason"), "stopped");
  EXPECT_EQ(number(*error, "process"), stopped);
}

inline void expect_none(const std::vector<std::optional<Error>>& errors) {
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

}  // namespace gpucholmod::test
