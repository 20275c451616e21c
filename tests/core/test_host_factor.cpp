#include <gtest/gtest.h>

#include <atomic>

#include "base/semidefinite.h"
#include "call.h"
#include "cpu/host_factor.h"
#include "reshape_call.h"

/// Factors in ordinary memory of their own.
namespace gpucholmod::test {
namespace {

using Doubles = Stored<double>;

/// Counts the bytes that are held, up to a limit.
struct Memory {
  std::size_t held = 0, most = 0, limit = SIZE_MAX;
  cpu::Allocate allocate() {
    return [this](std::size_t bytes) -> std::shared_ptr<void> {
      if (held + bytes > limit) throw out_of_memory("full", double(bytes), double(limit - held));
      held += bytes;
      most = std::max(most, held);
      return {::operator new(bytes), [this, bytes](void* data) {
                held -= bytes;
                ::operator delete(data);
              }};
    };
  }
};

Doubles triangle(const HeldFactor& f) {
  Doubles out = Doubles::Constant(f.order(), f.order(), std::numeric_limits<double>::quiet_NaN());
  f.download(Uplo::upper, out.data());
  return out;
}

Task task(const HeldFactor& f, index_t k, index_t removed) {
  Task t;
  t.n = f.order();
  t.k = k;
  t.removed = removed;
  t.precision = f.precision();
  t.instructions = Instructions::plain;
  t.threads = 1;
  return t;
}

/// Returns a factor with NaN in entries that may not be read.
Doubles example(index_t n) {
  Random random(3);
  Doubles R = well_conditioned(n, random).cast<double>();
  for (index_t j = 0; j < n; ++j) R.col(j).tail(n - j - 1).setConstant(std::numeric_limits<double>::quiet_NaN());
  return R;
}

TEST(HostFactor, InPlaceNoMemoryIsTaken) {
  Memory memory;
  const Doubles R = example(130), V = Random(4).normal(130, 9).cast<double>() / 20;
  const auto f = cpu::hold(R.data(), 130, Uplo::upper, Precision::double_, 0, memory.allocate());
  memory.limit = memory.held;
  std::atomic<bool> begun{false};
  EXPECT_EQ(f->modify(V.data(), task(*f, 9, 0), nullptr, [](double) {}, begun).pivot, -1);
  EXPECT_TRUE(begun);
  EXPECT_EQ(f->modify(V.data(), task(*f, 9, 9), nullptr, [](double) {}, begun).pivot, -1);
  const Doubles upper = R.triangularView<Eigen::Upper>();
  EXPECT_LT((triangle(*f) - upper).cwiseAbs().maxCoeff(), 1e-13);
}

/// Checks that from the 17th downdate in place on, if memory allows, a factor alternates with a second one. The bits
/// are those without a second factor, whether downdates fail or succeed, and also once the factor has grown.
TEST(HostFactor, DowndatesAlternateWithMemoryBeside) {
  for (const index_t n : {1, 9, 130, 256}) {
    Memory roomy, tight;
    const Doubles R = example(n), V = Random(4).normal(n, 6).cast<double>() / 20, huge = V * 1e4;
    const auto held = [&](Memory& in) {
      return cpu::hold(R.data(), n, Uplo::upper, Precision::double_, n, in.allocate());
    };
    const auto f = held(roomy), g = held(tight);
    const std::size_t bytes = roomy.held;
    tight.limit = bytes;
    std::atomic<bool> begun{false};
    const auto both = [&](const Doubles& columns, index_t removed) {
      index_t pivots[2], *next = pivots;
      for (HeldFactor* to : {f.get(), g.get()}) {
        const Task what = task(*to, columns.cols(), removed);
        *next++ = to->modify(columns.data(), what, nullptr, [](double) {}, begun).pivot;
      }
      EXPECT_EQ(pivots[0], pivots[1]);
      EXPECT_EQ(Doubles(triangle(*f) - triangle(*g)).norm(), 0) << n;
      return pivots[0];
    };
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(both(V, 0), -1);
      EXPECT_EQ(roomy.held, i <= 8 ? bytes : 2 * bytes + 4096) << "two downdates a round: " << i;
      EXPECT_GE(both(huge, 6), 0);
      EXPECT_EQ(both(V, i % 2 ? 6 : 2), -1);
    }
    EXPECT_EQ(Doubles(triangle(*f->copy()) - triangle(*g)).norm(), 0);
    tight.limit = SIZE_MAX;
    Doubles X = Doubles::Zero(n + 2, 2);
    X(n, 0) = X(n + 1, 1) = 100;
    for (HeldFactor* to : {f.get(), g.get()})
      EXPECT_EQ(to->insert(n, X.data(), 2, task(*to, 0, 0), nullptr, [](double) {}, begun), -1);
    EXPECT_EQ(roomy.held, sizeof(double) * f->capacity() * f->capacity());
    Doubles longer = Doubles::Constant(n + 2, 1, 0.1);
    EXPECT_EQ(both(longer, 0), -1);
    EXPECT_EQ(both(longer, 1), -1);
    EXPECT_EQ(both(longer * 1e4, 1), 0);
  }
}

/// Numbers near the ends of the range, which are modified by way of a second factor; it takes the place of the first.
TEST(HostFactor, NumbersOfAnySize) {
  for (const double size : {1e-200, 1e-30, 1e30, 1e200}) {
    Memory memory;
    const Doubles R = example(70) * size, V = Random(4).normal(70, 3).cast<double>() * (size / 100);
    const auto f = cpu::hold(R.data(), 70, Uplo::upper, Precision::double_, 0, memory.allocate());
    std::atomic<bool> begun{false};
    EXPECT_EQ(f->modify(V.data(), task(*f, 3, 1), nullptr, [](double) {}, begun).pivot, -1);
    EXPECT_EQ(memory.held, sizeof(double) * 70 * 70);
    const Doubles small = Doubles(R.triangularView<Eigen::Upper>()) / size, W = V / size, X = triangle(*f) / size;
    const Doubles target =
        small.transpose() * small + W.leftCols(2) * W.leftCols(2).transpose() - W.col(2) * W.col(2).transpose();
    EXPECT_LT((X.transpose() * X - target).cwiseAbs().maxCoeff(), 1e-14 * target.cwiseAbs().maxCoeff()) << size;
  }
}

/// Checks that after any failure the factor is as it was, and no memory is lost.
TEST(HostFactor, StaysAsItWasWhereACallFails) {
  Memory memory;
  const index_t n = 100;
  const auto f = cpu::hold(example(n).data(), n, Uplo::upper, Precision::double_, 0, memory.allocate());
  const Doubles before = triangle(*f), V = Doubles::Constant(n, 2, 10);
  const std::size_t held = memory.held;
  std::atomic<bool> begun{false};
  std::unique_ptr<HeldFactor> made;
  EXPECT_EQ(f->modify(V.data(), task(*f, 2, 2), nullptr, [](double) {}, begun).pivot, 0);
  EXPECT_EQ(f->modify(V.data(), task(*f, 2, 2), &made, [](double) {}, begun).pivot, 0);
  EXPECT_FALSE(made);
  memory.limit = held;
  EXPECT_EQ(error_of([&] {
              f->modify(
                  V.data(), task(*f, 2, 0), &made, [](double) {}, begun);
            })->code(),
            ErrorCode::out_of_memory);
  EXPECT_EQ(error_of([&] { f->copy(); })->code(), ErrorCode::out_of_memory);
  memory.limit = SIZE_MAX;
  const Doubles huge = Doubles::Constant(n, 3, 1.7e308);
  EXPECT_EQ(error_of([&] {
              f->modify(
                  huge.data(), task(*f, 3, 0), nullptr, [](double) {}, begun);
            })->code(),
            ErrorCode::overflow);
  Doubles bad = V;
  bad(3, 1) = INFINITY;
  EXPECT_EQ(error_of([&] {
              f->modify(
                  bad.data(), task(*f, 2, 0), nullptr, [](double) {}, begun);
            })->code(),
            ErrorCode::not_finite);
  struct Stop {};
  EXPECT_THROW(f->modify(V.data(), task(*f, 2, 0), &made, [](double) { throw Stop(); }, begun), Stop);
  EXPECT_FALSE(begun);
  EXPECT_TRUE(same_bits(triangle(*f), before));
  EXPECT_EQ(memory.held, held);
}

/// Checks that an insertion or removal that breaks off has begun to change the factor only if it works in place.
TEST(HostFactor, AReshapeThatBreaksOff) {
  struct Stop {};
  Memory memory;
  const index_t n = 300;
  const Doubles X = Doubles::Identity(n + 1, n + 1).col(100) * 2, R = example(n);
  for (const bool in_place : {false, true})
    for (const double size : {1.0, 1e150})
      for (const int what : {0, 1}) {
        const auto f =
            cpu::hold(Doubles(R * size).data(), n, Uplo::upper, Precision::double_, n + 1, memory.allocate());
        const Doubles before = triangle(*f);
        std::atomic<bool> begun{false};
        std::unique_ptr<HeldFactor> made;
        auto* const to = in_place ? nullptr : &made;
        int calls = 0;
        const bool own = in_place && size == 1;  // otherwise by way of another factor
        const Poll poll = [&](double) {
          if (own ? begun.load() : ++calls == 2) throw Stop();
        };
        if (what == 0) {
          EXPECT_THROW(f->remove({5, 50}, task(*f, 0, 0), to, poll, begun), Stop);
        } else {
          EXPECT_THROW(f->insert(100, Doubles(X * (size * size)).data(), 1, task(*f, 0, 0), to, poll, begun), Stop);
        }
        EXPECT_EQ(begun, own) << what << " " << size;
        EXPECT_FALSE(made);
        EXPECT_TRUE(own || same_bits(triangle(*f), before));
      }
  EXPECT_EQ(memory.held, 0u);
}

const Keep in_memory = [](const Doubles& R, Precision precision, index_t capacity) {
  return cpu::hold(R.data(), R.cols(), Uplo::upper, precision, capacity, cpu::ordinary_memory);
};
TEST(HostFactor, RowsAndColumnsComeGoAndMove) { expect_reshapes(in_memory, {1, 2, 65, 190}, {0, 1, 5, 40}); }
TEST(HostFactor, GrowsAndShrinks) { expect_growth(in_memory, 150, 7); }
TEST(HostFactor, WhatCannotBeInserted) { expect_pivots(in_memory); }

/// Checks that a diagonal entry whose root is too large for single precision is not inserted.
TEST(HostFactor, InsertsNothingTooLarge) {
  const auto f = in_memory(Doubles::Identity(3, 3), Precision::single, 4);
  Doubles X(4, 1);
  X << 0, 0, 0, 1e80;
  std::atomic<bool> begun{false};
  const auto error = error_of([&] { f->insert(3, X.data(), 1, task(*f, 0, 0), nullptr, [](double) {}, begun); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::overflow);
  EXPECT_EQ(number(*error, "row"), 4);
  X(3) = 1e70;
  EXPECT_EQ(f->insert(3, X.data(), 1, task(*f, 0, 0), nullptr, [](double) {}, begun), -1);
  EXPECT_FLOAT_EQ(float(triangle(*f)(3, 3)), 1e35f);
}

TEST(HostFactor, SolvesInDoublePrecision) {
  for (const index_t n : {1, 255, 256, 257, 600})
    for (const Precision precision : precisions) {
      Memory memory;
      const Doubles R = example(n);
      const auto f = cpu::hold(R.data(), n, Uplo::upper, precision, 0, memory.allocate());
      const Doubles X = triangle(*f), B = Random(5).normal(n, 3).cast<double>();
      for (const auto& [which, transposed] :
           {std::pair(TriangularSolve::forward, true), {TriangularSolve::back, false}}) {
        Doubles x = B;
        f->solve(which, x.data(), 3);
        const Doubles left = (transposed ? Doubles(X.transpose() * x) : Doubles(X * x)) - B;
        EXPECT_LT(left.cwiseAbs().maxCoeff(), 1e-12) << n;
      }
      Doubles inverse(n, n);
      f->inverse(inverse.data());
      EXPECT_LT((X.transpose() * (X * Doubles(inverse * B)) - B).cwiseAbs().maxCoeff(), 1e-11) << n;
      EXPECT_NEAR(f->trace(), X.squaredNorm(), 1e-12 * X.squaredNorm());
    }
}

TEST(HostFactor, MultipliesInDoublePrecision) {
  for (const index_t n : {0, 1, 255, 256, 300, 520})
    for (const Precision precision : precisions) {
      Memory memory;
      const Doubles R = example(n);
      const auto f = cpu::hold(R.data(), n, Uplo::upper, precision, n + 3, memory.allocate());
      const Doubles U = triangle(*f), X = Random(6).normal(n, 3).cast<double>();
      const auto times = [&](TriangularProduct which) {
        Doubles Y = X;
        f->multiply(which, Y.data(), 3);
        return Y;
      };
      EXPECT_TRUE(times(TriangularProduct::plain).isApprox(U * X, 1e-14)) << n;
      EXPECT_TRUE(times(TriangularProduct::transposed).isApprox(U.transpose() * X, 1e-14)) << n;
      EXPECT_TRUE(times(TriangularProduct::both).isApprox(U.transpose() * (U * X), 1e-14)) << n;
    }
}

/// Checks that a factor that is read by columns is kept with stand-ins for its zeros.
TEST(Semidefinite, IsMadeOfAFactorThatIsRead) {
  const index_t n = 3;
  Doubles R = Doubles::Zero(n, n);
  R(0, 0) = -2;
  R(0, 2) = 1;
  R(2, 2) = 3;
  const MemorySource<double> source(R.data(), n);
  Memory memory;
  const auto f = keep_with_zeros(source, n, Precision::double_, [&](const Source<double>& given) {
    Doubles copy = Doubles::Zero(n, n);
    double scratch[n];
    for (index_t j = 0; j < n; ++j) {
      std::copy_n(given.column(j, 0, j + 1, scratch), j + 1, copy.col(j).data());
      require_positive(copy(j, j), j);
    }
    return cpu::hold(copy.data(), n, Uplo::upper, Precision::double_, 0, memory.allocate());
  });
  Doubles kept(n, n);
  f->download(Uplo::upper, kept.data());
  R.row(0) *= -1;
  EXPECT_EQ(kept, R);
}

}  // namespace
}  // namespace gpucholmod::test
