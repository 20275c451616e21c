#include "process_example.h"

/// A factor over several processes, which are threads here: inst/design/processes.md.
namespace gpucholmod::test {
namespace {

void expect_same_bits(index_t n, index_t k, index_t removed, Precision precision, int size, int threads, double delay,
                      double scale = 1) {
  const Example p(n, k);
  Task t = task(n, k, removed, precision, threads);
  t.scale = scale;
  Sides sides(n, k, 3);
  const Doubles right = expected(p, n > 0 && k > 0 ? sides.with(t, n) : t, Uplo::lower);
  Threads all(size, delay);
  expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
    const int rank = team.rank();
    const auto f = mpi::deal_out(team, rank == 0 ? p.R.data() : nullptr, n, Uplo::upper, precision, allocate);
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    EXPECT_EQ(f->modify(p.V.data(), t, &made, no_poll, begun).pivot, -1);
    EXPECT_FALSE(begun);
    Sides own(n, k, 3);
    EXPECT_EQ(f->modify(p.V.data(), n > 0 && k > 0 ? own.with(t, n) : t, nullptr, no_poll, begun).pivot, -1);
    EXPECT_TRUE(same_bits(own.out, sides.out) && same_bits(own.rest, sides.rest));
    for (const HeldFactor* const one :
         {static_cast<const HeldFactor*>(f.get()), static_cast<const HeldFactor*>(made.get())}) {
      const Doubles got = whole(*one, rank, Uplo::lower);
      EXPECT_TRUE(rank != 0 || same_bits(got, right))
          << n << " " << k << " " << removed << " " << size << " " << threads;
    }
  }));
}

TEST(Processes, SameBitsAsOne) {
  for (const int size : {1, 2, 4})
    for (const Precision precision : precisions) {
      for (const index_t n : {0, 1, 64, 65, 130}) expect_same_bits(n, n == 65 ? 1 : 6, 0, precision, size, 1, 0);
      for (const auto& [k, removed] : {std::pair<index_t, index_t>{3, 3}, {17, 5}, {0, 0}})
        expect_same_bits(331, k, removed, precision, size, 1, 2e-5);
    }
  expect_same_bits(400, 16, 0, Precision::double_, 3, 2, 1e-4);
  expect_same_bits(400, 9, 4, Precision::double_, 2, 3, 1e-4, 0.75);
}

/// Numbers near the ends of the range, which are modified by way of a second factor.
TEST(Processes, NumbersOfAnySize) {
  for (const double size : {1e-200, 1e200, 1e-150, 1e150}) {
    const Example p(150, 6, size);
    Task t = task(150, 6, 2, Precision::double_);
    t.scale = 0.5;
    Sides sides(150, 6, 2);
    const Doubles right = expected(p, sides.with(t, 150));
    Doubles inserted = Doubles::Zero(151, 1);
    inserted(150) = size * size;
    Threads all(2);
    expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
      const auto f = mpi::deal_out(team, p.R.data(), 150, Uplo::upper, Precision::double_, allocate);
      std::atomic<bool> begun{false};
      Sides own(150, 6, 2);
      EXPECT_EQ(f->modify(p.V.data(), own.with(t, 150), nullptr, no_poll, begun).pivot, -1);
      EXPECT_TRUE(same_bits(own.out, sides.out) && same_bits(own.rest, sides.rest));
      const Doubles got = whole(*f, team.rank());
      EXPECT_TRUE(team.rank() != 0 || same_bits(got, right));
      if (!(inserted(150) > 0 && std::isfinite(inserted(150)))) return;
      const Task plain = task(150, 0, 0, Precision::double_);
      EXPECT_EQ(f->insert(150, inserted.data(), 1, plain, nullptr, no_poll, begun), -1);
      EXPECT_NEAR(f->remove({150}, plain, nullptr, no_poll, begun), size * size, 1e-12 * size * size);
      EXPECT_FALSE(begun);
      const Doubles back = whole(*f, team.rank());
      EXPECT_TRUE(team.rank() != 0 || same_bits(back, right));
    }));
  }
}

/// Checks that a failing downdate has the same pivot in all processes as in one, and changes nothing.
TEST(Processes, ADowndateThatFails) {
  const index_t n = 400;
  for (const index_t at : {0, 70, 399})
    for (const int size : {1, 3}) {
      Example p(n, 6);
      p.V.setZero();
      p.V(at, 2) = 2 * p.R(at, at) + 1;
      Threads all(size, 1e-5);
      expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
        const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate);
        const Doubles before = whole(*f, team.rank());
        std::atomic<bool> begun{false};
        std::unique_ptr<HeldFactor> made;
        const Task t = task(n, 6, 6, Precision::double_);
        EXPECT_EQ(f->modify(p.V.data(), t, &made, no_poll, begun).pivot, at);
        EXPECT_EQ(f->modify(p.V.data(), t, nullptr, no_poll, begun).pivot, at);
        EXPECT_FALSE(made || begun);
        const Doubles after = whole(*f, team.rank());
        EXPECT_TRUE(team.rank() != 0 || same_bits(after, before));
        Task careless = t;
        careless.keep_intact = false;
        EXPECT_EQ(f->modify(p.V.data(), careless, nullptr, no_poll, begun).pivot, at);
        EXPECT_TRUE(begun);
      }));
    }
}

TEST(Processes, UsesOfAFactor) {
  const index_t n = 300;
  const Example p(n, 1);
  for (const int size : {1, 2, 3})
    for (const Precision precision : precisions) {
      Threads all(size);
      const auto alone = cpu::hold(p.R.data(), n, Uplo::upper, precision, 0, allocate);
      const Doubles R = whole(*alone, 0), B = Random(5).normal(n, 3).cast<double>(), lower = p.R.transpose();
      Doubles written = Doubles::Zero(n, n);
      expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
        const auto f =
            mpi::deal_out(team, team.rank() == 0 ? lower.data() : nullptr, n, Uplo::lower, precision, allocate);
        EXPECT_EQ(f->processes(), size);
        EXPECT_LT(f->bytes(), (n * (n + 2 * mpi::block_width + 32)) / 2 * 8.0 / size + 8 * n * mpi::block_width);
        Doubles diagonal(n, 1);
        f->diagonal(diagonal.data());
        EXPECT_TRUE(same_bits(diagonal, Doubles(R.diagonal())));
        EXPECT_NEAR(f->trace(), R.squaredNorm(), 1e-12 * R.squaredNorm());
        for (const TriangularSolve which : {TriangularSolve::both, TriangularSolve::forward, TriangularSolve::back}) {
          Doubles x = B, y = B;
          f->copy()->solve(which, x.data(), 3);
          alone->solve(which, y.data(), 3);
          EXPECT_LT((x - y).cwiseAbs().maxCoeff(), 1e-12 * (1 + y.cwiseAbs().maxCoeff()));
        }
        Doubles inverse(n, n), alone_inverse(n, n);
        f->inverse(team.rank() == 0 ? inverse.data() : nullptr);
        alone->inverse(alone_inverse.data());
        EXPECT_TRUE(team.rank() != 0 ||
                    (inverse - alone_inverse).cwiseAbs().maxCoeff() < 1e-12 * alone_inverse.cwiseAbs().maxCoeff());
        MemorySink<double> sink(written.data(), n);
        f->write(team.rank() == 0 ? &sink : nullptr);
      }));
      EXPECT_TRUE(same_bits(written, R));
    }
}

}  // namespace
}  // namespace gpucholmod::test
