#include "factor_of_3.h"
#include "file_folder.h"
#include "led_here.h"
#include "mpi/led_factor.h"
#include "panels_here.h"
#include "process_example.h"

/// A factor that process 0 holds on the GPUs of all processes, which are threads here: inst/design/processes.md.
namespace gpucholmod::test {
namespace {

std::unique_ptr<mpi::SharedFactor> led(mpi::Team& team, const Doubles& R, Precision precision = Precision::double_) {
  const double* const given = team.rank() == 0 ? R.data() : nullptr;
  auto made = mpi::deal_out(team, given, R.cols(), Uplo::upper, precision, allocate, led_here(1, allocate));
  EXPECT_TRUE(made->is_led());
  return made;
}

/// Checks that all processes get the results, bit by bit, of one process with the factor.
TEST(LedFactor, SameBitsAsOne) {
  const index_t n = 200, k = 6;
  const Example p(n, k);
  for (const Precision precision : precisions)
    for (const int size : {1, 2, 4}) {
      Task t = task(n, k, 2, precision);
      t.scale = 0.75;
      Sides sides(n, k, 3);
      const Doubles right = expected(p, sides.with(t, n));
      Threads all(size, 1e-5);
      expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
        const auto f = led(team, p.R, precision);
        std::atomic<bool> begun{false};
        std::unique_ptr<HeldFactor> made;
        const Work first = f->modify(p.V.data(), t, &made, no_poll, begun);
        EXPECT_EQ(first.pivot, -1);
        EXPECT_FALSE(begun);
        Sides own(n, k, 3);
        EXPECT_EQ(f->modify(p.V.data(), own.with(t, n), nullptr, no_poll, begun).pivot, -1);
        EXPECT_TRUE(begun);
        EXPECT_TRUE(same_bits(own.out, sides.out) && same_bits(own.rest, sides.rest));
        for (const HeldFactor* const one : {static_cast<HeldFactor*>(f.get()), made.get()}) {
          const Doubles got = whole(*one, team.rank());
          EXPECT_TRUE(team.rank() != 0 || same_bits(got, right));
        }
        const double reported[] = {first.squares[0], first.squares[1], first.seconds};
        for (const mpi::Bytes& other : [&] {
               std::vector<mpi::Bytes> told;
               team.together(mpi::Operation::agree, 0, [&] {
                 told = team.exchange(reported, sizeof reported);
                 return -1;
               });
               return told;
             }())
          EXPECT_EQ(std::memcmp(other.data(), reported, sizeof reported), 0);
      }));
    }
}

/// Checks that every process has all that process 0 reports, if it asks for a timeline too.
TEST(LedFactor, ReportsToAll) {
  class Reporting : public FactorOf3 {
    Work modify(const ColumnsOfV&, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
                std::atomic<bool>&) override {
      Work work;
      work.device = "a GPU";
      work.timeline = {{Stage::send, 1, 0.5, 0.75}, {Stage::modify, 2, 0.25, 1}};
      work.panels = 4;
      work.squares[1] = 9;
      return work;
    }
  };
  class Together : public mpi::GpusTogether {
    std::unique_ptr<HeldFactor> hold(const double*, index_t, Uplo, Precision) const override {
      return std::make_unique<Reporting>();
    }
    std::unique_ptr<HeldFactor> hold(const Source<double>&, index_t, Precision, const Poll&) const override {
      return std::make_unique<Reporting>();
    }
  };
  Threads all(3, 1e-5);
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const mpi::Leader leader{[] { return mpi::OwnGpu{"the only GPU", 3, "memory"}; },
                             [](const std::vector<std::string>&) { return std::make_unique<Together>(); }};
    const auto f = mpi::hold_led(team, leader, {nullptr, "", 3, Uplo::upper, Precision::double_});
    std::atomic<bool> begun{false};
    const double v[] = {1, 2, 3};
    const Work work = f->modify(v, task(3, 1, 0, Precision::double_), nullptr, no_poll, begun);
    EXPECT_EQ(work.device, "a GPU");
    ASSERT_EQ(work.timeline.size(), 2u);
    EXPECT_EQ(work.timeline[1].stage, Stage::modify);
    EXPECT_EQ(work.timeline[1].panel, 2);
    EXPECT_EQ(work.timeline[0].end, 0.75);
    EXPECT_EQ(work.panels, 4);
    EXPECT_EQ(work.squares[1], 9);
  }));
}

TEST(LedFactor, ADowndateThatFails) {
  const index_t n = 150, at = 70;
  Example p(n, 3);
  p.V.setZero();
  p.V(at, 2) = 2 * p.R(at, at) + 1;
  Threads all(3, 1e-5);
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto f = led(team, p.R);
    const Doubles before = whole(*f, team.rank());
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    Task t = task(n, 3, 3, Precision::double_);
    EXPECT_EQ(f->modify(p.V.data(), t, &made, no_poll, begun).pivot, at);
    EXPECT_EQ(f->modify(p.V.data(), t, nullptr, no_poll, begun).pivot, at);
    EXPECT_FALSE(made || begun);
    const Doubles after = whole(*f, team.rank());
    EXPECT_TRUE(team.rank() != 0 || same_bits(after, before));
    t.keep_intact = false;
    EXPECT_EQ(f->modify(p.V.data(), t, nullptr, no_poll, begun).pivot, at);
    EXPECT_TRUE(begun);
  }));
}

/// Checks that every process learns that the factor has begun to change, if process 0 is stopped then.
TEST(LedFactor, IsStoppedWhileItChanges) {
  struct Stop {};
  const index_t n = 500;
  const Example p(n, 5);
  for (const bool in_place : {false, true}) {
    Threads all(3, 1e-5);
    expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
      const auto f = led(team, p.R);
      std::atomic<bool> begun{false};
      std::unique_ptr<HeldFactor> made;
      const Poll poll = [&](double done) {
        if (done > 0.2) throw Stop();
      };
      const auto modify = [&] {
        f->modify(p.V.data(), task(n, 5, 0, Precision::double_), in_place ? nullptr : &made, poll, begun);
      };
      expect_stopped<Stop>(team.rank(), 0, modify);
      EXPECT_EQ(begun, in_place);
      EXPECT_FALSE(made);
      EXPECT_EQ(led(team, p.R)->order(), n);
    }));
  }
}

/// Checks that all processes know whether the factor has changed, if one of them is interrupted when process 0 has
/// polled for the last time, or later.
TEST(LedFactor, AProcessIsInterruptedLate) {
  struct Stop {};
  const index_t n = 100;
  const Example p(n, 3);
  Doubles X = Doubles::Zero(n + 1, 1);
  X(7) = 9;
  for (const bool inserts : {false, true})
    for (const int interrupted : {0, 1, 2})
      for (int repeat = 0; repeat < 20; ++repeat) {
        Threads all(3, 1e-5);
        std::atomic<bool> late{false};
        std::atomic<int> begun_in{0};
        expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
          const auto f = led(team, p.R);
          const Doubles before = whole(*f, team.rank());
          std::atomic<bool> begun{false};
          const Poll poll = [&](double) { late = true; };
          bool stopped = true;
          try {
            if (inserts)
              f->insert(7, X.data(), 1, task(n, 0, 0, Precision::double_), nullptr, poll, begun);
            else
              f->modify(p.V.data(), task(n, 3, 0, Precision::double_), nullptr, poll, begun);
            stopped = false;
          } catch (const Stop&) {
            EXPECT_EQ(team.rank(), interrupted);
          } catch (const Error& error) {
            EXPECT_EQ(text(error, "reason"), "stopped");
          }
          late = false;
          begun_in += begun;
          if (stopped && !begun) {
            EXPECT_EQ(f->order(), n);
            const Doubles after = whole(*f, team.rank());
            EXPECT_TRUE(team.rank() != 0 || same_bits(after, before));
          }
        }, [&](int rank) {
          if (rank == interrupted && late.exchange(false)) throw Stop();
        }));
        EXPECT_TRUE(begun_in == 0 || begun_in == 3) << begun_in;
      }
}

/// Checks that a process that fails before the operation stops process 0 before the factor changes.
TEST(LedFactor, AnotherProcessRefuses) {
  const index_t n = 100;
  const Example p(n, 2);
  Threads all(2, 1e-5);
  expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
    team.begin_call();
    const auto f = led(team, p.R);
    const Doubles before = whole(*f, team.rank());
    team.begin_call();
    std::atomic<bool> begun{false};
    const auto error = error_of([&] {
      if (team.rank() == 1) team.refuse(Error(ErrorCode::bad_argument, "no", {}));
      f->modify(p.V.data(), task(n, 2, 0, Precision::double_), nullptr, no_poll, begun);
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_argument);
    EXPECT_FALSE(begun);
    team.begin_call();
    const Doubles after = whole(*f, team.rank());
    EXPECT_TRUE(team.rank() != 0 || same_bits(after, before));
  }));
}

TEST(LedFactor, IsUsedAndReshapedByAll) {
  const index_t n = 120;
  const Example p(n, 1);
  const auto alone = cpu::hold(p.R.data(), n, Uplo::upper, Precision::double_, 0, allocate);
  const Doubles B = Random(5).normal(n, 2).cast<double>();
  Doubles X = Doubles::Zero(n + 1, 1);
  X(40) = 9;
  Doubles diagonal(n, 1), solved(n, 2), inverse(n, n), written = Doubles::Zero(n, n);
  alone->diagonal(diagonal.data());
  alone->solve_for(TriangularSolve::both, B.data(), solved.data(), 2);
  alone->inverse(inverse.data());
  const double trace = alone->trace();
  const Task t = task(n, 0, 0, Precision::double_);
  std::atomic<bool> changes{false};
  std::unique_ptr<HeldFactor> inserted, removed;
  EXPECT_EQ(alone->insert(40, X.data(), 1, t, &inserted, no_poll, changes), -1);
  const double taken = inserted->remove({3, 40}, t, &removed, no_poll, changes);
  removed->shift(10, 90, t, nullptr, no_poll, changes);
  const Doubles reshaped = whole(*removed, 0);
  Threads all(3, 1e-5);
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto f = led(team, p.R);
    EXPECT_EQ(f->processes(), 3);
    EXPECT_EQ(f->device(), 3);
    EXPECT_EQ(f->device_name(), "memory");
    EXPECT_GT(f->bytes(), n * n * 8 / 6.5);
    Doubles d(n, 1), x(n, 2), A(n, n);
    f->diagonal(d.data());
    f->copy()->solve_for(TriangularSolve::both, B.data(), x.data(), 2);
    f->inverse(team.rank() == 0 ? A.data() : nullptr);
    EXPECT_TRUE(same_bits(d, diagonal) && same_bits(x, solved));
    EXPECT_TRUE(team.rank() != 0 || same_bits(A, inverse));
    EXPECT_EQ(f->trace(), trace);
    MemorySink<double> sink(written.data(), n);
    f->write(team.rank() == 0 ? &sink : nullptr);
    std::vector<char> flags{0, char(team.rank() == 1), char(team.rank() == 2)};
    f->any_of(flags);
    EXPECT_EQ(flags, (std::vector<char>{0, 1, 1}));
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    EXPECT_EQ(f->insert(40, X.data(), 1, t, &made, no_poll, begun), -1);
    EXPECT_EQ(made->order(), n + 1);
    EXPECT_EQ(f->order(), n);
    EXPECT_EQ(made->remove({3, 40}, t, nullptr, no_poll, begun), taken);
    EXPECT_EQ(made->order(), n - 1);
    made->shift(10, 90, t, nullptr, no_poll, begun);
    const Doubles got = whole(*made, team.rank());
    EXPECT_TRUE(team.rank() != 0 || same_bits(got, reshaped));
  }));
  EXPECT_TRUE(same_bits(written, Doubles(p.R.triangularView<Eigen::Upper>())));
}

/// Checks that the columns are dealt out where process 0 cannot use the GPUs of all processes.
TEST(LedFactor, IsDealtOutWhereProcess0CannotHoldIt) {
  const Example p(300, 4);
  Threads all(2);
  expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
    const auto f = mpi::deal_out(team, p.R.data(), 300, Uplo::upper, Precision::double_, allocate,
                                 led_here(2, allocate, panels_here()));
    EXPECT_FALSE(f->is_led());
    EXPECT_TRUE(f->on_gpu());
    const Doubles got = whole(*f, team.rank());
    EXPECT_TRUE(team.rank() != 0 || same_bits(got, Doubles(p.R.triangularView<Eigen::Upper>())));
  }));
}

TEST(LedFactor, AnErrorOfProcess0IsThatOfAll) {
  Doubles R = Example(50, 1).R;
  R(7, 7) = 0;
  Threads all(3, 1e-5);
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto error = error_of([&] { led(team, R); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), 8);
    EXPECT_EQ(number(*error, "process"), 0);
  }));
}

TEST_F(File, IsReadByProcess0) {
  const index_t n = 90;
  Doubles R = Example(n, 1).R.triangularView<Eigen::Upper>();
  const std::string path = (folder / "factor").string();
  OutputFile out(path, n, true);
  R.row(50) *= -1;  // a row that reading turns
  for (index_t j = 0; j < n; ++j) out.put(j, 0, j + 1, R.col(j).data());
  R.row(50) *= -1;
  out.commit();
  Threads all(2);
  expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
    const auto f = mpi::read_out(team, path, n, Precision::double_, allocate, led_here(1, allocate));
    EXPECT_TRUE(f->is_led());
    const Doubles got = whole(*f, team.rank());
    EXPECT_TRUE(team.rank() != 0 || same_bits(got, R));
    const auto error = error_of(
        [&] { mpi::read_out(team, path, n + 1, Precision::double_, allocate, led_here(1, allocate)); });
    EXPECT_TRUE(error && error->code() == ErrorCode::bad_file);
  }));
}

}  // namespace
}  // namespace gpucholmod::test
