#include "panels_here.h"

/// A factor whose panels are on the GPUs of several processes. Here, processes are threads, and the panels are in
/// ordinary memory: inst/design/processes.md.
namespace gpucholmod::test {
namespace {

constexpr double eps = 0x1p-52, eps_of_floats = 0x1p-23;

struct Result {
  Doubles made, in_place, out, rest;
};

/// Modifies p into a new factor and in place, with right-hand sides. Returns the results in process 0.
Result modified(const Example& p, const Task& t, int size, double delay, const mpi::MakePanels& make) {
  const index_t n = p.R.cols(), k = p.V.cols();
  Threads all(size, delay);
  Result result;
  expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
    const int rank = team.rank();
    const auto f = mpi::deal_out(team, rank == 0 ? p.R.data() : nullptr, n, Uplo::upper, t.precision, allocate, make);
    EXPECT_TRUE(f->on_gpu());
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    EXPECT_EQ(f->modify(p.V.data(), t, &made, no_poll, begun).pivot, -1);
    EXPECT_FALSE(begun);
    Sides own(n, k, 3);
    const Work work = f->modify(p.V.data(), own.with(t, n), nullptr, no_poll, begun);
    EXPECT_EQ(work.pivot, -1);
    EXPECT_EQ(work.device, "here");
    const Doubles got = whole(*made, rank), in_place = whole(*f, rank);
    if (rank == 0) result = {got, in_place, own.out, own.rest};
    team.together(mpi::Operation::columns, 0, [&] {
      const std::vector<mpi::Bytes> sides = team.exchange(own.out.data(), sizeof(double) * own.out.size());
      for (const mpi::Bytes& one : sides) EXPECT_EQ(one, sides[0]);
      return -1;
    });
  }));
  return result;
}

void expect_right(index_t n, index_t k, index_t removed, Precision precision, double scale = 1, mpi::PanelWay way = {},
                  double size = 1) {
  SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + ", removed " + std::to_string(removed));
  const Example p(n, k, size);
  Task t = task(n, k, removed, precision);
  t.scale = scale;
  Sides sides(n, k, 3);
  const Doubles right = expected(p, n > 0 && k > 0 ? sides.with(t, n) : t);
  const double off = 100 * (precision == Precision::single ? eps_of_floats : eps);
  Result one;
  for (const int processes : {1, 2, 3, 5}) {
    const Result got = modified(p, t, processes, n < 400 ? 0 : 1e-4, panels_here(way, way));
    if (processes == 1) one = got;
    if (n > 0) {
      EXPECT_LT(away(got.made, right), off);
    }
    EXPECT_TRUE(same_bits(got.made, one.made) && same_bits(got.in_place, one.made));
    if (n == 0 || k == 0) continue;
    EXPECT_LT(away(got.out, sides.out), off);
    EXPECT_LT(away_in_squares(got.rest, sides.rest, t), off);
    EXPECT_TRUE(same_bits(got.out, one.out) && same_bits(got.rest, one.rest));
  }
}

TEST(PanelSweep, AsInOneProcess) {
  for (const Precision precision : precisions) {
    for (const index_t n : {1, 127, 128, 130, 300}) expect_right(n, 5, 0, precision);
    expect_right(700, 9, 9, precision, 0.75);
  }
  expect_right(700, 20, 8, Precision::double_, 1.5);
  expect_right(700, 1, 0, Precision::double_);
  expect_right(0, 3, 0, Precision::double_);
  expect_right(300, 0, 0, Precision::double_, 2);
}

/// Checks that messages are stored in the panels' own memory for messages, where they are made and where they arrive,
/// and that this memory is free in the end.
TEST(PanelSweep, MessagesInMemoryOfTheirOwn) {
  const index_t n = 700, k = 20, panel = 128 * k * 2 * sizeof(double);
  const std::size_t before = counted_memory.taken;
  const Example p(n, k);
  modified(p, task(n, k, 0, Precision::double_), 2, 1e-4, panels_here());
  EXPECT_GT(counted_memory.taken - before, 2 * 2 * 4 * panel);  // two modifications, at both ends
  EXPECT_EQ(counted_memory.in_use, 0);
}

TEST(PanelSweep, InPasses) {
  expect_right(520, 40, 0, Precision::double_, 1.5);
  expect_right(520, 40, 25, Precision::double_);
  expect_right(520, 20, 20, Precision::double_, 1, {Launch::persistent, 8});
}

TEST(PanelSweep, NumbersOfAnySize) {
  for (const double size : {1e-200, 1e200, 1e-150, 1e150}) expect_right(300, 6, 2, Precision::double_, 0.5, {}, size);
}

/// Passes are as wide as the narrowest of all processes, and stepwise if one process can do no more.
TEST(PanelSweep, OneWayForAll) {
  const Example p(300, 20);
  const Task t = task(300, 20, 0, Precision::double_);
  const Result narrow = modified(p, t, 3, 0, panels_here({Launch::persistent, 32}, {Launch::persistent, 8})),
               same = modified(p, t, 1, 0, panels_here({}, {Launch::persistent, 8}));
  EXPECT_TRUE(same_bits(narrow.made, same.made));
}

/// Checks that a failing downdate has the same pivot in all processes as in one, and changes nothing; in one pass, and
/// in several passes, the first of which fails in a later row.
TEST(PanelSweep, ADowndateThatFails) {
  const index_t n = 500;
  for (const index_t at : {0, 70, 300, 499})
    for (const int columns : {32, 8})
      for (const int size : {1, 3}) {
        Example p(n, 20);
        p.V.setZero();
        p.V(at, 19) = 2 * p.R(at, at) + 1;
        if (at + 20 < n) p.V(at + 20, 2) = 2 * p.R(at + 20, at + 20) + 1;
        const Task t = task(n, 20, 20, Precision::double_);
        Threads all(size, 1e-5);
        expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
          const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate,
                                       panels_here({Launch::persistent, columns}, {Launch::persistent, columns}));
          std::atomic<bool> begun{false};
          std::unique_ptr<HeldFactor> made;
          EXPECT_EQ(f->modify(p.V.data(), t, nullptr, no_poll, begun).pivot, at) << columns;
          EXPECT_FALSE(begun);
          EXPECT_EQ(f->modify(p.V.data(), t, &made, no_poll, begun).pivot, at) << columns;
          EXPECT_FALSE(made);
          const Doubles got = whole(*f, team.rank());
          EXPECT_TRUE(team.rank() != 0 || same_bits(got, Doubles(p.R.triangularView<Eigen::Upper>())));
        }));
      }
}

/// Operations that do not modify, and rows and columns that come, go and move, compared with a factor in ordinary
/// memory.
TEST(PanelSweep, AsAnyFactor) {
  const index_t n = 400;
  const Example p(n, 3);
  Doubles X = Random(5).normal(n + 2, 2).cast<double>() * 1e-3;
  X(200, 0) = X(201, 1) = 5;
  const Doubles B = Random(6).normal(n, 3).cast<double>();
  for (const Precision precision : precisions)
    for (const int size : {1, 2, 3}) {
      Threads all(size);
      expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
        const int rank = team.rank();
        const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, precision, allocate, panels_here()),
                   g = mpi::deal_out(team, p.R.data(), n, Uplo::upper, precision, allocate);
        EXPECT_EQ(f->trace(), g->trace());
        EXPECT_EQ(f->device(), rank);
        EXPECT_EQ(g->device(), -1);
        Doubles d(n, 1), e(n, 1);
        f->diagonal(d.data());
        g->diagonal(e.data());
        EXPECT_TRUE(same_bits(d, e));
        for (const TriangularSolve which : {TriangularSolve::both, TriangularSolve::forward, TriangularSolve::back}) {
          Doubles x = B, y = B;
          f->solve(which, x.data(), 3);
          g->solve(which, y.data(), 3);
          EXPECT_LT(away(x, y), 1e-13);
        }
        Doubles inverse = Doubles::Zero(n, n), other = inverse;
        f->inverse(inverse.data());
        g->inverse(other.data());
        EXPECT_TRUE(rank != 0 || away(inverse, other) < 1e-13);
        const auto copied = f->copy();
        const Doubles of_copy = whole(*copied, rank);
        EXPECT_TRUE(rank != 0 ||
                    same_bits(of_copy, whole(*cpu::hold(p.R.data(), n, Uplo::upper, precision, 0, allocate), 0)));
        const Task t = task(n, 0, 0, precision);
        std::atomic<bool> begun{false};
        for (HeldFactor* const one : {static_cast<HeldFactor*>(f.get()), static_cast<HeldFactor*>(g.get())}) {
          one->remove({3, 150, 399}, t, nullptr, no_poll, begun);
          EXPECT_EQ(one->insert(200, X.topRows(n - 1).eval().data(), 2, t, nullptr, no_poll, begun), -1);
          one->shift(10, 300, t, nullptr, no_poll, begun);
          one->shift(390, 20, t, nullptr, no_poll, begun);
        }
        const Doubles got = whole(*f, rank), right = whole(*g, rank);
        EXPECT_TRUE(rank != 0 || away(got, right) < (precision == Precision::single ? 1e-5 : 1e-13));
        EXPECT_TRUE(f->on_gpu());
      }));
    }
}

/// Checks that GPUs of two kinds are refused in all processes.
TEST(PanelSweep, OneKind) {
  Threads all(2);
  const Example p(130, 1);
  for (const auto& error : in_processes(all, 2, 60, [&](mpi::Team& team) {
         mpi::deal_out(team, p.R.data(), 130, Uplo::upper, Precision::double_, allocate, panels_here({}, {}, 80));
       })) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_argument);
  }
}

}  // namespace
}  // namespace gpucholmod::test
