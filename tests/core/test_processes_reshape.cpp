#include "modify/solve_modified.h"
#include "process_example.h"

/// Rows and columns that come, go and move, and solving with modifications, over several processes:
/// inst/design/processes.md.
namespace gpucholmod::test {
namespace {

/// The results of a change f(factor, task, made) of rows and columns: the factor, right-hand sides and what is left of
/// Y.
struct Changed {
  Doubles R, z, rest;
};
template <class F>
Changed changed(HeldFactor& f, int rank, const Task& plain, index_t order, index_t k, bool in_place, F&& change) {
  Sides sides(f.order(), k, 2);
  std::unique_ptr<HeldFactor> made;
  const Task t = sides.with(plain, order);
  change(f, t, in_place ? nullptr : &made);
  const HeldFactor& now = in_place ? f : *made;
  EXPECT_EQ(now.order(), order);
  return {whole(now, rank), sides.out, sides.rest};
}

/// Checks that rows and columns come, go and move as in one process but for rounding, with the same bits for any number
/// of processes.
TEST(ProcessesReshape, RowsAndColumnsComeGoAndMove) {
  std::atomic<bool> begun{false};
  for (const Precision precision : precisions)
    for (const index_t n : {1, 64, 131, 330}) {
      const Example p(n, 1);
      const Task t = task(n, 0, 0, precision, 2);
      const auto alone = cpu::hold(p.R.data(), n, Uplo::upper, precision, 0, allocate);
      const double near = precision == Precision::single ? 2e-4 : 1e-12;
      const std::vector<index_t> gone =
          n < 100 ? std::vector<index_t>{n - 1} : std::vector<index_t>{65, 66, 100, n - 1};
      struct Case {
        index_t order, k;
        bool same;  ///< True if the bits are those of one process
        std::function<void(HeldFactor&, const Task&, std::unique_ptr<HeldFactor>*)> change;
      };
      std::vector<Case> cases;
      cases.push_back(
          {n - index_t(gone.size()), index_t(gone.size()), false,
           [&](HeldFactor& f, const Task& t, auto* made) { EXPECT_GT(f.remove(gone, t, made, no_poll, begun), 0); }});
      for (const auto& [at, count] : {std::pair<index_t, index_t>{n, 3}, {0, 1}, {n / 2, 70}})
        cases.push_back(
            {n + count, count, false, [n = n, at = at, count = count](HeldFactor& f, const Task& t, auto* made) {
               std::atomic<bool> begun{false};
               Doubles X =
                   Random(31).normal(n + count, count).cast<double>() / (20 * std::sqrt(double(n + count) * count));
               for (index_t q = 0; q < count; ++q) X(at + q, q) = 2;
               EXPECT_EQ(f.insert(at, X.data(), count, t, made, no_poll, begun), -1);
               EXPECT_FALSE(begun);
             }});
      for (const auto& [from, to] : {std::pair<index_t, index_t>{0, n - 1},
                                     {n - 1, 0},
                                     {n / 2, n / 2},
                                     {n / 4, n - n / 4 - 1},
                                     {n - n / 4 - 1, n / 3}})
        cases.push_back({n, 0, true, [from = from, to = to](HeldFactor& f, const Task& t, auto* made) {
          std::atomic<bool> begun{false};
          f.shift(from, to, t, made, no_poll, begun);
        }});
      std::vector<Changed> first;
      for (const int size : {1, 2, 4}) {
        Threads all(size, n == 330 ? 2e-5 : 0);
        expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
          const int rank = team.rank();
          const auto dealt = mpi::deal_out(team, rank == 0 ? p.R.data() : nullptr, n, Uplo::upper, precision, allocate);
          for (std::size_t i = 0; i < cases.size(); ++i) {
            const Case& one = cases[i];
            for (const bool in_place : {false, true}) {
              const auto f = dealt->copy();
              const Changed got = changed(*f, rank, t, one.order, one.k, in_place, one.change);
              if (rank != 0) continue;
              const Changed right = changed(*alone->copy(), 0, t, one.order, one.k, false, one.change);
              EXPECT_LT((got.R - right.R).cwiseAbs().sum(), near * one.order + 1e-300)
                  << n << " case " << i << " " << size;
              EXPECT_LT((got.z - right.z).cwiseAbs().sum(), 10 * near * one.order + 1e-300)
                  << n << " case " << i << " " << size;
              EXPECT_LT((got.rest.cwiseAbs() - right.rest.cwiseAbs()).cwiseAbs().sum(), 10 * near * one.order + 1e-300)
                  << n << " case " << i << " " << size;
              EXPECT_TRUE(!one.same || (same_bits(got.R, right.R) && same_bits(got.z, right.z)))
                  << n << " case " << i << " " << size;
              if (size == 1 && !in_place) first.push_back(got);
              EXPECT_TRUE(same_bits(got.R, first[i].R) && same_bits(got.z, first[i].z) &&
                          same_bits(got.rest, first[i].rest))
                  << n << " case " << i;
            }
          }
        }));
      }
    }
}

/// Checks that a failing insertion has the same pivot in all processes, and changes nothing.
TEST(ProcessesReshape, AnInsertionThatFails) {
  const index_t n = 200, p = 3;
  const Example example(n, 1);
  const Doubles R = Doubles(example.R.triangularView<Eigen::Upper>()), A = R.transpose() * R;
  Threads all(3, 1e-5);
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto f = mpi::deal_out(team, example.R.data(), n, Uplo::upper, Precision::double_, allocate);
    const Doubles before = whole(*f, team.rank());
    std::atomic<bool> begun{false};
    const Task t = task(n, 0, 0, Precision::double_);
    Doubles X = Doubles::Zero(n + p, p);
    for (index_t q = 0; q < p; ++q) X(70 + q, q) = q == 1 ? -1 : 1;
    EXPECT_EQ(f->insert(70, X.data(), p, t, nullptr, no_poll, begun), 71);
    X(71, 1) = 1;
    // A row that nearly equals row 150, which is behind it.
    X.col(0) << A.col(150).head(70), A(150, 150) * (1 - 1e-10), 0, 0, A.col(150).tail(n - 70);
    EXPECT_EQ(f->insert(70, X.data(), p, t, nullptr, no_poll, begun), 150 + p);
    X(0, 2) = INFINITY;
    EXPECT_EQ(error_of([&] { f->insert(70, X.data(), p, t, nullptr, no_poll, begun); })->code(), ErrorCode::not_finite);
    EXPECT_FALSE(begun);
    EXPECT_EQ(f->order(), n);
    const Doubles after = whole(*f, team.rank());
    EXPECT_TRUE(team.rank() != 0 || same_bits(after, before));
  }));
}

/// Checks solutions with many modifications, for some of which R is modified, also if one process alone finds that
/// necessary.
TEST(ProcessesReshape, SolvingWithModifications) {
  const index_t n = 150;
  const Example p(n, 6);
  const Doubles b = Random(5).normal(n, 2).cast<double>();
  struct Found {
    Doubles solution = Doubles::Zero(n, 6), logdet = Doubles::Zero(3, 1);
    ModifiedOutcome outcome;
  };
  const auto solved = [&](HeldFactor& f) {
    Found found;
    ModifiedSystems systems;
    Doubles V = p.V;
    V.col(4) *= 1e5;
    V(140, 3) = 1e3;
    const double weights[] = {1, 1, 1, -1, 1, 1};
    systems.asked.n = n;
    systems.asked.backend = Backend::cpu;
    systems.k = {2, 2, 2};
    systems.V = V.data();
    systems.weights = weights;
    systems.scale = {1, 1, 0.5};
    systems.m = 2;
    systems.b = b.data();
    systems.solution = found.solution.data();
    systems.logdet = found.logdet.data();
    found.outcome = solve_modified(f, systems, no_poll);
    return found;
  };
  const auto alone = cpu::hold(p.R.data(), n, Uplo::upper, Precision::double_, 0, allocate);
  const Found right = solved(*alone);
  EXPECT_EQ(right.outcome.pivot[1], 140);
  EXPECT_TRUE(right.outcome.by_factor[2] && !right.outcome.by_factor[0]);
  Threads all(3, 1e-5);
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate);
    const Found got = solved(*f);
    EXPECT_EQ(got.outcome.pivot, right.outcome.pivot);
    EXPECT_EQ(got.outcome.by_factor, right.outcome.by_factor);
    for (const index_t j : {0, 2}) {
      EXPECT_LT((got.solution.middleCols(2 * j, 2) - right.solution.middleCols(2 * j, 2)).cwiseAbs().maxCoeff(), 1e-11);
      EXPECT_NEAR(got.logdet(j), right.logdet(j), 1e-11);
    }
    std::vector<char> flags{team.rank() == 1, 0};
    f->any_of(flags);
    EXPECT_EQ(flags, (std::vector<char>{1, 0}));
  }));
}

}  // namespace
}  // namespace gpucholmod::test
