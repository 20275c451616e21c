#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <tuple>

#include "sweep_call.h"

namespace gpucholmod::test {
namespace {

/// Checks that threads, panels, leading dimensions, the stored triangle and overwriting R change no bit: every column
/// is computed in the same way.
template <class T>
void same_bits_however_it_is_called() {
  each_level([](Instructions instructions) {
    for (const Sign sign : signs)
      for (const index_t n : {1, 5, 8, 48, 49, 131})
        for (const index_t k : {1, 2, 3, 4, 5, 16, 33}) {
          SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k));
          const Problem<double> p = random_problem(sign, n, k);
          Sweep how;
          how.instructions = instructions;
          const Swept<T> expected = sweep<T>(p, how);
          ASSERT_EQ(expected.pivot, -1);
          for (int i = 0; i < 12; ++i) {
            how.threads = std::array{1, 2, 3, 7}[i % 4];
            how.uplo = i % 3 == 2 ? Uplo::lower : Uplo::upper;
            how.panel = how.uplo == Uplo::upper ? std::array{0, 32, 96, 8}[(i + 1) % 4] : 0;
            // The last margin crowds the first-level cache.
            how.margin = std::array<index_t, 5>{0, 3, 6, 9, 1024 - n}[i % 5];
            how.in_place = i % 2;
            Stored<T> R = sweep<T>(p, how).R;
            if (how.uplo == Uplo::lower) R.transposeInPlace();
            ASSERT_TRUE(same_bits(R, expected.R)) << "call " << i;
          }
        }
  });
}
TEST(BlockedSweep, GivesTheSameBitsHoweverItIsCalled) {
  same_bits_however_it_is_called<double>();
  same_bits_however_it_is_called<float>();
}

/// Checks that no place in memory changes a bit. Tiles depend on where R and the result begin in a cache line, vectors
/// of long rows on where R begins.
template <class T>
void same_bits_wherever_it_lies() {
  constexpr index_t n = 430, line = 64 / sizeof(T);
  std::map<std::tuple<Instructions, Sign, index_t>, Stored<T>> first;
  each_level([&](Instructions instructions) {
    for (const Sign sign : signs)
      for (const index_t k : {1, 2, 4, 5}) {
        const Problem<double> p = random_problem(sign, n, k);
        Sweep how;
        how.instructions = instructions;
        how.margin = 1;
        const Swept<T> expected = sweep<T>(p, how);
        ASSERT_EQ(expected.pivot, -1);
        // Half vectors give the bits of whole vectors.
        ASSERT_TRUE(same_bits(first.try_emplace({instructions, sign, k}, expected.R).first->second, expected.R));
        for (how.behind = 0; how.behind < line; ++how.behind)
          for (int i = 0; i < 6; ++i) {
            how.uplo = i % 2 ? Uplo::lower : Uplo::upper;
            how.margin = i == 0 ? 1024 - n : 512 - n;
            how.in_place = i >= 4;
            how.result = i < 2 ? how.behind : 0;
            Stored<T> R = sweep<T>(p, how).R;
            if (how.uplo == Uplo::lower) R.transposeInPlace();
            ASSERT_TRUE(same_bits(R, expected.R)) << "k " << k << ", " << how.behind << " behind, call " << i;
          }
      }
  });
}
TEST(BlockedSweep, GivesTheSameBitsWhereverItLies) {
  same_bits_wherever_it_lies<double>();
  same_bits_wherever_it_lies<float>();
}

/// Rows so small beside V, and downdates that leave so little, that one block of rotations is computed with care, and
/// the blocks behind it again without.
template <class T>
void takes_care() {
  const double small = sizeof(T) == 8 ? 1e-120 : 1e-15, smallest = sizeof(T) == 8 ? 1e-290 : 1e-30,
               eps = sizeof(T) == 8 ? 0x1p-52 : 0x1p-23;
  each_level([&](Instructions instructions) {
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const index_t k : {1, 2, 3, 4})
        for (const index_t n : {3, 45, 61}) {
          SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) +
                       (uplo == Uplo::upper ? ", upper" : ", lower"));
          Problem<double> update = random_problem(Sign::update, n, k);
          update.R.row(n / 2) *= smallest;
          update.R.row(n / 2 + 1) *= small;
          Random random(7);
          const Matrix R = well_conditioned(n, random);
          Matrix little = R;
          little.row(n / 2) *= sizeof(T) == 8 ? 1e-5 : 1e-2;  // a row that the downdate gets back
          for (const Problem<double>& p : {update, undo(little, random.normal(n, k))}) {
            Problem<T> rounded{p.sign, p.R.cast<T>(), p.V.cast<T>()};
            Swept<T> result = sweep<T>(p, {instructions, uplo});
            ASSERT_EQ(result.pivot, -1);
            if (uplo == Uplo::lower) result.R.transposeInPlace();
            EXPECT_LT(Residual(rounded).ratio(result.R, eps), p.sign == Sign::update ? 2 : 4);
          }
        }
  });
}
TEST(BlockedSweep, TakesCareWhereNumbersLieFarApart) {
  takes_care<double>();
  takes_care<float>();
}

/// Checks that rows stay, as with true rotations, if columns of V begin with zeros.
TEST(BlockedSweep, LeavesRowsAloneThatTurnByNothing) {
  each_level([](Instructions instructions) {
    for (const Sign sign : signs)
      for (const index_t k : {1, 2, 3, 4}) {
        Problem<double> p = random_problem(sign, 50, k);
        p.V *= 1e-2;
        p.V.topRows(21).setZero();
        const Swept<double> result = sweep<double>(p, {instructions});
        ASSERT_EQ(result.pivot, -1);
        EXPECT_TRUE(same_bits(Stored<double>(result.R.topRows(21)), Stored<double>(p.R.topRows(21))));
        EXPECT_FALSE(same_bits(Stored<double>(result.R.row(21)), Stored<double>(p.R.row(21))));
      }
  });
}

/// Checks that columns that are added and removed in one pass give the bits of a pass that adds and a pass that
/// removes, whichever kind of steps there is for so many columns.
TEST(BlockedSweep, BothSignsAtOnceGiveTheSameBitsAsOneAfterTheOther) {
  each_level([](Instructions instructions) {
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const auto& [added, removed] : {std::pair<index_t, index_t>{2, 40}, {40, 2}, {1, 3}, {30, 5}})
        for (const int threads : {1, 3}) {
          constexpr index_t n = 150;
          const Stored<double> given = random_problem(Sign::update, n, 1).R;
          Stored<double> R = uplo == Uplo::upper ? given : Stored<double>(given.transpose()), V(n, added + removed),
                         expected = R;
          V << random_problem(Sign::update, n, added).V, 0.01 * random_problem(Sign::update, n, removed).V;
          const auto sweep = [&](Stored<double>& R, index_t first, index_t k, index_t removed) {
            cpu::BlockedSweep<double> sweep({V.data() + first * n, n, k, n}, removed, 1, uplo, instructions, threads);
            EXPECT_EQ(sweep.advance({R.data(), n, n, n}, {nullptr, n, n, n}, false, [](double) {}), -1);
            cpu::BlockedSweep<double> again({V.data() + first * n, n, k, n}, removed, 1, uplo, instructions, threads);
            EXPECT_EQ(again.advance({R.data(), n, n, n}, {R.data(), n, n, n}, false, [](double) {}), -1);
          };
          sweep(expected, 0, added, 0);
          sweep(expected, added, removed, removed);
          sweep(R, 0, added + removed, removed);
          EXPECT_TRUE(same_bits(R, expected)) << added << " and " << removed;
        }
  });
}

TEST(BlockedSweep, LevelsAgreeUpToRounding) {
  for (const Sign sign : signs)
    for (const index_t k : {1, 4, 7, 20}) {
      const Problem<double> p = random_problem(sign, 101, k);
      const Stored<double> expected = sweep<double>(p, {}).R;
      each_level([&](Instructions instructions) {
        const Stored<double> R = sweep<double>(p, {instructions}).R;
        EXPECT_LT((R - expected).norm(), 1e-12 * expected.norm());
      });
    }
}

TEST(BlockedSweep, WithoutAResultGivesTheVerdictOnly) {
  each_level([](Instructions instructions) {
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const int threads : {1, 3})
        for (const index_t k : {1, 6}) {
          Problem<double> p = random_problem(Sign::downdate, 150, k);
          Sweep how{instructions, uplo, threads};
          how.discard = true;
          const Swept<double> can = sweep<double>(p, how);
          EXPECT_EQ(can.pivot, -1);
          EXPECT_TRUE((can.R.array() == blank).all());
          p.V *= 3;
          const Swept<double> cannot = sweep<double>(p, how);
          how.discard = false;
          EXPECT_GE(cannot.pivot, 0);
          EXPECT_EQ(cannot.pivot, sweep<double>(p, how).pivot);
        }
  });
}

/// Checks that the first pivot that fails stops all threads, whichever thread finds it.
TEST(BlockedSweep, ThreadsStopAtTheFirstFailingPivot) {
  each_level([](Instructions instructions) {
    for (const index_t pivot : {0, 47, 48, 130, 199, 299})
      for (const int threads : {1, 2, 5}) {
        Problem<double> p = random_problem(Sign::downdate, 300, 5);
        p.R(pivot, pivot) *= 1e-6;
        EXPECT_EQ(sweep<double>(p, {instructions, Uplo::upper, threads}).pivot, pivot) << threads;
      }
  });
}

TEST(BlockedSweep, SumsUpSquaresAndSeesWhatIsNotFinite) {
  each_level([](Instructions instructions) {
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const int threads : {1, 4})
        for (const index_t k : {2, 9})
          for (const index_t n : {7, 100}) {
            Problem<double> p = random_problem(Sign::update, n, k);
            const Sweep how{instructions, uplo, threads};
            const index_t rows = cpu::kernels<double>(instructions, k, Sign::update, uplo).rows;
            double squares = 0;  // with rotations, of the blocks on the diagonal alone
            for (index_t j = 0; j < n; ++j)
              for (index_t i = k > 4 ? 0 : j / rows * rows; i <= j; ++i) squares += p.R(i, j) * p.R(i, j);
            EXPECT_NEAR(sweep<double>(p, how).squares, squares, 1e-12 * squares);
            for (const index_t j : {index_t(3), n / 2, n - 1})
              for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
                Problem<double> q = p;
                q.R(2, j) = bad;
                EXPECT_FALSE(std::isfinite(sweep<double>(q, how).squares) && sweep<double>(q, how).pivot < 0) << j;
              }
          }
  });
}

/// Checks that no thread outlives an interrupted call. `poll` is called before the threads start, and then by the
/// calling thread for each strip that it takes. If other threads run, the calling thread may take no strip.
TEST(BlockedSweep, NoThreadOutlivesAnInterruptedCall) {
  const Problem<double> p = random_problem(Sign::update, 400, 6);
  for (const int threads : {1, 2, 6})
    for (const int last : {1, 2, 3}) {
      int calls = 0;
      const auto interrupt = [&](double) {
        if (++calls == last) throw std::runtime_error("interrupted");
      };
      bool interrupted = false;
      try {
        sweep<double>(p, {Instructions::plain, Uplo::upper, threads}, interrupt);
      } catch (const std::runtime_error&) {
        interrupted = true;
      }
      EXPECT_EQ(interrupted, calls == last);
      EXPECT_TRUE(interrupted || (threads > 1 && last > 1)) << threads << " threads, call " << last;
    }
}

/// Downdates that leave 0. A compiler may fuse r^2 - |v|^2, which leaves the rounding error of r^2 if both squares are
/// equal.
TEST(BlockedSweep, ADowndateThatLeavesNothingFails) {
  const auto check = [](auto zero, Instructions instructions) {
    using T = decltype(zero);
    constexpr index_t n = 10;
    Random random(1);
    for (const index_t k : {1, 4, 5, 16})
      for (int turn = 0; turn < 50; ++turn) {
        const T r = T(1 + random.uniform());
        Problem<double> p{Sign::downdate, r * Stored<double>::Identity(n, n), Stored<double>::Zero(n, k)};
        p.V(0, 0) = r;
        Sweep how;
        how.instructions = instructions;
        EXPECT_EQ(sweep<T>(p, how).pivot, 0) << "k " << k << ", r " << r;
      }
  };
  each_level([&](Instructions instructions) {
    check(0.0, instructions);
    check(0.0f, instructions);
  });
}

TEST(BlockedSweep, TakesMoreThreadsForMoreWorkOnly) {
  EXPECT_EQ(cpu::useful_threads(100, 1, Uplo::upper, 16), 1);
  EXPECT_EQ(cpu::useful_threads(700, 1, Uplo::upper, 16), 1) << "fetching from each other's caches takes longer";
  EXPECT_GE(cpu::useful_threads(1000, 1, Uplo::upper, 16), 4) << "so few help not at all";
  EXPECT_LT(cpu::useful_threads(1000, 1, Uplo::upper, 16), 16);
  EXPECT_EQ(cpu::useful_threads(1000, 1, Uplo::lower, 16), 1);
  EXPECT_EQ(cpu::useful_threads(10000, 16, Uplo::upper, 16), 16);
  EXPECT_EQ(cpu::useful_threads(10000, 16, Uplo::upper, 1), 1);
  EXPECT_EQ(cpu::useful_threads(0, 0, Uplo::lower, 8), 1);
  EXPECT_LE(cpu::useful_threads(tuning::blocked_strip, 100000, Uplo::upper, 8), 1);
}

TEST(Instructions, TheBestAreTaken) {
  EXPECT_TRUE(cpu::available(Instructions::plain));
  const Instructions best = cpu::resolve(Instructions::automatic);
  EXPECT_TRUE(cpu::available(best));
  for (const Instructions instructions : all_instructions) {
    if (cpu::available(instructions)) {
      EXPECT_LE(int(instructions), int(best));
      EXPECT_EQ(cpu::resolve(instructions), instructions);
    } else {
      const auto error = error_of([&] { cpu::resolve(instructions); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::bad_argument);
      EXPECT_EQ(text(*error, "argument"), "instructions");
      EXPECT_EQ(text(*error, "value"), text(instructions));
    }
  }
}

/// A set of instructions. If this machine lacks the set, its tests are shown as skipped.
class Level : public testing::TestWithParam<Instructions> {};
TEST_P(Level, IsAvailableHere) {
  if (!cpu::available(GetParam())) GTEST_SKIP() << "this machine does not have " << text(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Of, Level, testing::ValuesIn(all_instructions),
                         [](const auto& info) { return text(info.param); });

}  // namespace
}  // namespace gpucholmod::test
