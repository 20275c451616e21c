#include "c_call.h"
#include "batch_call.h"
#include "modify/solve_modified.h"
#include "process_threads.h"
#include "vanishing.h"
#include "mpi/factor.h"

/// Diagonal entries that would cease to be normal numbers, in every storage of a factor: an error of class
/// bad_diagonal, after which nothing has changed.
namespace gpucholmod::test {
namespace {

template <class S>
Request request_for(const Problem<S>& p, const Way& way, const Vanishing& how, Uplo uplo) {
  Request request = by(way, sizeof(S) == 8 ? Precision::double_ : Precision::single);
  request.n = p.R.cols();
  request.k = p.V.cols();
  request.removed = p.sign == Sign::downdate ? request.k : 0;
  request.scale = how.scale;
  request.uplo = uplo;
  return request;
}

template <class S>
void matrices_and_files_keep_their_diagonal() {
  std::vector<Way> all = ways;
  all.push_back({"stream", Method::stream, LoopOrder::b});
  if (sizeof(S) == 8) all.push_back({"refactor", Method::refactor, LoopOrder::b});
  for (const Vanishing& how : all_that_vanish)
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const index_t n : {1, 9, 70})
        for (const index_t k : {1, 3, 7}) {
          SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k));
          Problem<S> p = problem_of<S>(how, n, k);
          if (n == 1 && how.taken == 0) p.V *= std::numeric_limits<S>::min();
          if (uplo == Uplo::lower) p.R.transposeInPlace();
          for (const Way& way : all) {
            if (way.method == Method::refactor && how.taken != 0) continue;  // squares of such numbers vanish
            const Request request = request_for(p, way, how, uplo);
            Stored<S> out(n, n);
            expect_vanished<S>(
                error_of([&] { modify(Place<S>::memory(p.R.data(), out.data()), p.V.data(), request, no_poll); }), n,
                how, way.name);
          }
          Request request = request_for(p, {"in place", Method::automatic, LoopOrder::b}, how, uplo);
          std::atomic<bool> begun{false};
          Stored<S> R = p.R;
          expect_vanished<S>(
              error_of([&] { modify(Place<S>::in_place(R.data(), begun), p.V.data(), request, no_poll); }), n, how,
              "in place");
          EXPECT_FALSE(begun);
          EXPECT_TRUE(same_bits(R, p.R));
          if (uplo == Uplo::lower) continue;
          const MemorySource<S> source(p.R.data(), n);
          MemorySink<S> sink(R.data(), n);
          request.method = Method::stream;
          expect_vanished<S>(error_of([&] { modify(Place<S>::file(source, sink), p.V.data(), request, no_poll); }), n,
                             how, "file");
        }
}
TEST(Vanishing, OfMatricesAndFiles) { matrices_and_files_keep_their_diagonal<double>(); }
TEST(Vanishing, OfMatricesAndFilesInSinglePrecision) { matrices_and_files_keep_their_diagonal<float>(); }

template <class S>
void the_callers_memory_keeps_its_diagonal() {
  for (const Vanishing& how : all_that_vanish)
    for (const int form : {int(GPUCHOLMOD_UPPER), int(GPUCHOLMOD_LOWER), int(trusted_form)})
      for (const index_t n : {1, 9, 70, 300})
        for (const index_t k : {1, 3, 7}) {
          Problem<S> p = problem_of<S>(how, n, k);
          if (n == 1 && how.taken == 0) p.V *= std::numeric_limits<S>::min();
          if (form == GPUCHOLMOD_LOWER) p.R.transposeInPlace();
          const std::vector<double> weights(k, p.sign == Sign::update ? 1 : -1);
          Stored<S> R = p.R;
          gpucholmod_status status;
          EXPECT_EQ(update<S>(form, n, k, R.data(), n, p.V.data(), n, weights.data(), how.scale * how.scale, nullptr,
                              &status),
                    GPUCHOLMOD_BAD_DIAGONAL)
              << how.name << ", form " << form << ", n " << n << ", k " << k;
          EXPECT_EQ(status.row, n);
          EXPECT_TRUE(same_bits(R, p.R));
        }
}
TEST(Vanishing, OfTheCallersMemory) {
  the_callers_memory_keeps_its_diagonal<double>();
  the_callers_memory_keeps_its_diagonal<float>();
}

/// A scale alone, without any column that is added or removed.
TEST(Vanishing, ByAScaleAlone) {
  Stored<double> R = Stored<double>::Identity(3, 3), out(3, 3);
  R(1, 1) = 1e-200;
  const Stored<double> before = R;
  Request request;
  request.backend = Backend::cpu;
  request.n = 3;
  request.scale = 1e-150;
  std::atomic<bool> begun{false};
  for (const bool in_place : {false, true}) {
    const auto error = error_of([&] {
      modify(in_place ? Place<double>::in_place(R.data(), begun) : Place<double>::memory(R.data(), out.data()),
             (const double*)nullptr, request, no_poll);
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), 2);
  }
  EXPECT_FALSE(begun);
  EXPECT_TRUE(same_bits(R, before));
}

/// A given entry that is no normal number.
TEST(Vanishing, WhatIsGiven) {
  Stored<double> R = Stored<double>::Identity(4, 4), V = Stored<double>::Ones(4, 1) * 1e-3, out(4, 4);
  R(2, 2) = 1e-310;
  for (const Way& way : ways)
    for (const index_t k : {1, 5}) {
      const Problem<double> p{Sign::update, R, V.replicate(1, k)};
      const auto error = error_of([&] { call(p, by(way)); });
      ASSERT_TRUE(error) << way.name;
      EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
      EXPECT_EQ(number(*error, "index"), 3);
      EXPECT_EQ(number(*error, "value"), 1e-310);
    }
  const auto hold = [&](Precision precision) {
    cpu::hold(R.data(), 4, Uplo::upper, precision, 0, cpu::ordinary_memory);
  };
  EXPECT_EQ(error_of([&] { hold(Precision::double_); })->code(), ErrorCode::bad_diagonal);
  const auto hold_batch = [&] {
    cpu::hold_batch(R.data(), 4, 1, Uplo::upper, Precision::double_, cpu::ordinary_memory);
  };
  EXPECT_EQ(error_of(hold_batch)->code(), ErrorCode::bad_diagonal);
  R(2, 2) = 1e-40;
  EXPECT_EQ(error_of([&] { hold(Precision::single); })->code(), ErrorCode::bad_diagonal);
}

Task task_of(const HeldFactor& f, const Problem<double>& p, double scale) {
  Task t;
  t.n = f.order();
  t.k = p.V.cols();
  t.removed = p.sign == Sign::downdate ? t.k : 0;
  t.scale = scale;
  t.precision = f.precision();
  t.instructions = cpu::resolve(Instructions::automatic);
  t.threads = 1;
  return t;
}
Doubles triangle(const HeldFactor& f) {
  Doubles R(f.order(), f.order());
  f.download(Uplo::upper, R.data());
  return R;
}

template <class S>
void held_factors_keep_their_diagonal(Precision precision) {
  for (const Vanishing& how : all_that_vanish)
    for (const index_t n : {9, 70})
      for (const index_t k : {1, 3, 7})
        for (const bool in_place : {false, true}) {
          const Problem<S> given = problem_of<S>(how, n, k);
          const Problem<double> p{given.sign, given.R.template cast<double>(), given.V.template cast<double>()};
          const auto f = cpu::hold(p.R.data(), n, Uplo::upper, precision, n + 1, cpu::ordinary_memory);
          std::unique_ptr<HeldFactor> made;
          std::atomic<bool> begun{false};
          const auto error = error_of(
              [&] { f->modify(p.V.data(), task_of(*f, p, how.scale), in_place ? nullptr : &made, no_poll, begun); });
          expect_vanished<S>(error, n, how, "held");
          EXPECT_FALSE(begun);
          EXPECT_FALSE(made);
          EXPECT_EQ(triangle(*f), p.R);
          // A modification that stays within the range is done, in place as well.
          EXPECT_EQ(f->modify(p.V.data(), task_of(*f, {Sign::update, p.R, p.V}, 4), nullptr, no_poll, begun).pivot, -1);
          EXPECT_GE(triangle(*f)(n - 1, n - 1), 4 * p.R(n - 1, n - 1));
        }
}
TEST(Vanishing, OfFactorsThatAreHeld) {
  held_factors_keep_their_diagonal<double>(Precision::double_);
  held_factors_keep_their_diagonal<float>(Precision::single);
}

/// Checks that an entry that no column changes is scaled down until the next step would take it out of the range.
TEST(Vanishing, ByForgetting) {
  const double scale = std::sqrt(0.5);
  const auto steps = [](auto&& step) {
    int count = 0;
    std::optional<Error> error;
    while (!error && count < 3000) {
      error = error_of(step);
      count += !error;
    }
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), 2);
    return count;
  };
  const Problem<double> p{Sign::update, Doubles::Identity(2, 2), Doubles::Identity(2, 1)};
  const auto f = cpu::hold(p.R.data(), 2, Uplo::upper, Precision::double_, 0, cpu::ordinary_memory);
  std::atomic<bool> begun{false};
  EXPECT_NEAR(steps([&] {
    begun = false;
    f->modify(p.V.data(), task_of(*f, p, scale), nullptr, no_poll, begun);
  }), 2044, 1);
  EXPECT_FALSE(begun);
  EXPECT_GE(triangle(*f)(1, 1), std::numeric_limits<double>::min());
  EXPECT_NEAR(triangle(*f)(0, 0), 1, 1e-14);

  Batch batch({{Sign::update, Doubles::Identity(2, 2), Doubles::Ones(2, 1)}, p});
  batch.scale = {0.5};
  const auto held = batch.hold(Precision::double_);
  Pivots pivots;
  std::optional<Error> error;
  EXPECT_NEAR(steps([&] {
    begun = false;
    error = error_of([&] { held->modify(batch.V.data(), batch.given(), nullptr, pivots, no_poll, begun); });
    if (error) throw *error;
  }), 2044, 1);
  EXPECT_EQ(number(*error, "member"), 2);
  EXPECT_FALSE(begun);
  EXPECT_GE(member(numbers(*held), 2, 1)(1, 1), std::numeric_limits<double>::min());

  Doubles R = p.R, out(2, 2);
  Request request = by({"auto", Method::automatic, LoopOrder::b});
  request.n = 2;
  request.k = 1;
  request.scale = scale;
  EXPECT_NEAR(steps([&] {
    modify(Place<double>::memory(R.data(), out.data()), p.V.data(), request, no_poll);
    R = out;
  }), 2044, 1);
}

/// Members of a batch, beside members that stay within the range.
TEST(Vanishing, OfMembersOfABatch) {
  for (const Precision precision : precisions)
    for (const Vanishing& how : all_that_vanish)
      for (const index_t k : {1, 3, 7, 70})
        for (const How way : {How::in_place, How::made, How::scattered}) {
          const auto of = [&](const Vanishing& one) {
            if (precision == Precision::double_) return problem_of<double>(one, 6, k);
            const Problem<float> p = problem_of<float>(one, 6, k);
            return Problem<double>{p.sign, p.R.cast<double>(), p.V.cast<double>()};
          };
          std::vector<Problem<double>> members(21, of({"", how.sign, 1e10, 0, 1, 0}));
          members[13] = of(how);
          Batch batch(members);
          batch.scale = {how.scale * how.scale};
          const auto held = batch.hold(precision);
          const std::vector<double> before = numbers(*held);
          std::unique_ptr<HeldBatch> made;
          Pivots pivots;
          std::atomic<bool> begun{false};
          const auto error = error_of([&] {
            if (way == How::scattered) modified(batch, precision, way);
            else
              held->modify(batch.V.data(), batch.given(), way == How::made ? &made : nullptr, pivots, no_poll, begun);
          });
          if (precision == Precision::double_) expect_vanished<double>(error, 6, how, "batch");
          else expect_vanished<float>(error, 6, how, "batch of floats");
          EXPECT_EQ(number(*error, "member"), 14);
          EXPECT_FALSE(begun);
          EXPECT_TRUE(same(numbers(*held), before));
        }
}

/// Downdates that leave the bounds known for the entries, but not the range, go on in place, and give the result of a
/// new factor.
TEST(Vanishing, DoesNotComeOfManyDowndates) {
  const index_t n = 20;
  Random random(5);
  const Problem<double> p = problem(Sign::downdate, well_conditioned(n, random), random.normal(n, 3) * 1e-3L);
  const auto once = [taken = false](std::size_t bytes) mutable {
    if (std::exchange(taken, true)) throw std::bad_alloc();
    return cpu::ordinary_memory(bytes);
  };
  const auto f = cpu::hold(p.R.data(), n, Uplo::upper, Precision::double_, 0, once);
  std::unique_ptr<HeldFactor> g =
      cpu::hold(p.R.data(), n, Uplo::upper, Precision::double_, 0, cpu::ordinary_memory);
  Batch batch({p});
  const auto held = batch.hold(Precision::double_);
  for (int i = 0; i < 40; ++i) {
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    EXPECT_EQ(f->modify(p.V.data(), task_of(*f, p, 1), nullptr, no_poll, begun).pivot, -1);
    EXPECT_TRUE(begun);
    EXPECT_EQ(g->modify(p.V.data(), task_of(*g, p, 1), &made, no_poll, begun).pivot, -1);
    g = std::move(made);
    Pivots pivots;
    held->modify(batch.V.data(), batch.given(), nullptr, pivots, no_poll, begun);
    EXPECT_EQ(pivots[0], -1);
  }
  EXPECT_TRUE(triangle(*f) == triangle(*g));
  EXPECT_LT((member(numbers(*held), n, 0) - triangle(*f)).cwiseAbs().maxCoeff(), 1e-13);
}

/// A modification for which solve_modified() modifies R.
TEST(Vanishing, OfOneOfManyModifications) {
  Problem<double> p = problem_of<double>(all_that_vanish[1], 9, 1);
  const auto f = cpu::hold(p.R.data(), 9, Uplo::upper, Precision::double_, 0, cpu::ordinary_memory);
  ModifiedSystems systems;
  systems.asked = by({"auto", Method::automatic, LoopOrder::b});
  systems.asked.downdate = true;
  systems.k = {1, 1};
  Doubles V = Doubles::Zero(9, 2), b = Doubles::Ones(9, 1), x(9, 2);
  V.col(1) = p.V;
  systems.V = V.data();
  systems.scale = {1, 1};
  systems.m = 1;
  systems.b = b.data();
  systems.solution = x.data();
  const auto error = error_of([&] { solve_modified(*f, systems, no_poll); });
  expect_vanished<double>(error, 9, all_that_vanish[1], "solve_modified");
  EXPECT_EQ(number(*error, "member"), 2);
}

/// Checks that a factor over several processes throws the same error in all of them.
TEST(Vanishing, OfFactorsOverProcesses) {
  const index_t n = 150;
  for (const Vanishing& how : all_that_vanish)
    for (const bool in_place : {false, true})
      for (const int size : {1, 3}) {
        const Problem<double> p = problem_of<double>(how, n, 3);
        Threads all(size);
        const auto errors = in_processes(all, size, 60, [&](mpi::Team& team) {
          const auto f = mpi::deal_out(team, team.rank() == 0 ? p.R.data() : nullptr, n, Uplo::upper,
                                       Precision::double_, cpu::ordinary_memory);
          std::unique_ptr<HeldFactor> made;
          std::atomic<bool> begun{false};
          const auto error = error_of(
              [&] { f->modify(p.V.data(), task_of(*f, p, how.scale), in_place ? nullptr : &made, no_poll, begun); });
          expect_vanished<double>(error, n, how, "process " + std::to_string(team.rank()));
          EXPECT_FALSE(begun);
          Doubles R = p.R;
          f->download(Uplo::upper, team.rank() == 0 ? R.data() : nullptr);
          EXPECT_TRUE(R == p.R);
          EXPECT_EQ(f->modify(p.V.data(), task_of(*f, {Sign::update, p.R, p.V}, 4), nullptr, no_poll, begun).pivot, -1);
        });
        for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
      }
}

}  // namespace
}  // namespace gpucholmod::test
