#include <gtest/gtest.h>

#include <array>

#include "families.h"
#include "lazy_device.h"
#include "stream/pipeline.h"
#include "stream_call.h"

/// The stream method as on a GPU: the whole way of a factor, with a device that is late, and the GPU's kernels.
namespace gpucholmod::test {
namespace {

using stream::End;

constexpr Kernel kernels[] = {Kernel::persistent, Kernel::stepwise};

struct StreamRun {
  Uplo uplo = Uplo::upper;
  double budget = ample;
  int threads = 2;
  Laziness device = {};
  Watch on_read = {}, on_write = {};
};

/// Returns a run in which everything but kernel and budget varies with i.
StreamRun variant(unsigned i, Kernel kernel, double budget) {
  StreamRun how;
  how.uplo = uplos[i / 2 % 2];
  how.budget = budget;
  how.threads = std::array{1, 2, 5}[i % 3];
  how.device = {kernel, i / 3 % 2 ? i : 0, 1 + int(i / 2 % 2)};
  return how;
}

StreamRun some_run(unsigned i, Kernel kernel, index_t n, index_t k) {
  return variant(i, kernel, budgets_for(n, k, 8)[i % 6]);
}

std::string text(const StreamRun& how) {
  return std::string(how.uplo == Uplo::upper ? "upper" : "lower") + ", budget " + std::to_string(how.budget) +
         ", threads " + std::to_string(how.threads) + ", kernel " + std::to_string(int(how.device.kernel)) +
         ", workers " + std::to_string(how.device.workers) + ", seed " + std::to_string(how.device.seed);
}

template <class S>
struct Streamed {
  stream::Run<S> run;
  Stored<S> R;  ///< the result, NaN where nothing was written
  Work outcome;
  int panels = 0, slots = 0;
};

/// Runs the stream method on p with a device that is late. p.R is upper, whatever how.uplo is.
template <class T, class S>
Streamed<S> stream_lazily(const Problem<S>& p, const StreamRun& how, const Poll& poll = no_poll) {
  const auto result = std::make_shared<Streamed<S>>();
  within_a_minute([=] {
    const index_t n = p.R.cols(), k = p.V.cols();
    const Problem<S> given = stored(p, how.uplo);
    const Stored<S> before = given.R;
    const Stored<double> V = p.V.template cast<double>();
    const stream::Plan plan(n, k, p.sign == Sign::downdate ? k : 0, int(sizeof(T)), how.budget, false);
    result->panels = int(plan.panels().size());
    result->slots = plan.slots();
    result->R = Stored<S>::Constant(n, n, std::numeric_limits<S>::quiet_NaN());
    const WatchedSource<S> from(given.R.data(), n, how.on_read);
    WatchedSink<S> to(result->R.data(), n, how.on_write);
    LazyDevice<T> device(plan, V.data(), how.device);
    result->run = stream::Pipeline<S, T>(plan, from, to, {how.uplo}, device, how.threads, poll, nullptr).run();
    device.report(result->outcome);
    EXPECT_TRUE(same_bits(given.R, before));
  });
  return *result;
}

/// Returns the result for the whole factor in one piece, in passes over as many columns of V as one pass takes.
template <class T>
Stored<T> in_one_piece(Problem<double> p, Kernel kernel) {
  const Stored<double> V = p.V;
  SegmentsRun how;
  how.by_steps = kernel == Kernel::stepwise;
  Stored<T> R;
  for (index_t first = 0; first < V.cols(); first += block_columns::most_columns) {
    p.V = V.middleCols(first, std::min(block_columns::most_columns, V.cols() - first));
    const SegmentsResult<T> result = run_segments<T>(p, how);
    EXPECT_EQ(result.done.pivot, -1);
    R = result.R;
    p.R = R.template cast<double>();
  }
  return R;
}

/// Checks that every division into panels, with every kernel, gives the bits of the factor in one piece.
template <class T, class S>
void agrees(const Problem<double>& given, unsigned& i) {
  const Problem<S> p = as<S>(given);
  const Problem<double> rounded{p.sign, p.R.template cast<double>(), p.V.template cast<double>()};
  for (const Kernel kernel : kernels) {
    const Stored<S> expected = in_one_piece<T>(rounded, kernel).template cast<S>();
    for (const double budget : budgets_for(p.R.cols(), p.V.cols(), int(sizeof(T)))) {
      if (++i % 3 && sanitized) continue;
      const StreamRun how = variant(i, kernel, budget);
      const Streamed<S> streamed = stream_lazily<T>(p, how);
      ASSERT_EQ(streamed.run.end, End::complete) << text(how);
      const Stored<S> in_place = how.uplo == Uplo::upper ? expected : Stored<S>(expected.transpose());
      ASSERT_TRUE(same_bits(streamed.R, in_place)) << text(how);
    }
  }
}

TEST(Stream, DoesNotDependOnHowTheFactorTravels) {
  unsigned i = 0;
  for (const Sign sign : signs) {
    for (const index_t n : {1, 128, 129}) agrees<double, double>(quick_problem(sign, n, 5), i);
    for (const index_t k : {1, 9, 65}) agrees<double, double>(quick_problem(sign, 300, k), i);
    agrees<float, double>(quick_problem(sign, 257, 17), i);
    agrees<double, float>(quick_problem(sign, 260, 9), i);
    agrees<float, float>(quick_problem(sign, 260, 65), i);
  }
  agrees<double, double>(quick_problem(Sign::downdate, sanitized ? 640 : 900, 9), i);
}

/// Rescalings and rejected row blocks, whose transforms also pass from one panel to the next. With 9 columns the metric
/// is renewed, with 17 columns segments end.
TEST(Stream, DoesNotDependOnItWhereTheGuardRefusesEither) {
  unsigned i = 0;
  const index_t n = 400;
  index_t fallbacks = 0, rescalings = 0;
  for (const index_t k : {9, 17})
    for (const double scale : {20, 60, 400}) {
      Problem<double> p = quick_problem(Sign::update, n, k);
      p.V *= scale;
      agrees<double, double>(p, i);
      const Work outcome = stream_lazily<double>(p, variant(0, Kernel::persistent, least_budget(n, k, 8))).outcome;
      fallbacks += outcome.fallbacks;
      rescalings += outcome.rescalings;
    }
  EXPECT_GT(fallbacks, 0) << "the test is of no use";
  EXPECT_GT(rescalings, 0) << "the test is of no use";
}

/// Checks that the budgets give all sorts of panels; otherwise the tests here are of no use.
TEST(Stream, HasAllSortsOfPanels) {
  const index_t n = 900, k = 5;
  const Problem<double> p = quick_problem(Sign::update, n, k);
  bool slots_used_twice = false, all_slots = false, one_slot = false;
  for (const double budget : budgets_for(n, k, 8)) {
    const Streamed<double> streamed = stream_lazily<double>(p, variant(1, Kernel::persistent, budget));
    slots_used_twice = slots_used_twice || streamed.panels > streamed.slots;
    all_slots = all_slots || streamed.slots == tuning::stream_slots;
    one_slot = one_slot || (streamed.slots == 1 && streamed.panels > 1);
  }
  EXPECT_TRUE(slots_used_twice);
  EXPECT_TRUE(all_slots);
  EXPECT_TRUE(one_slot);
}

/// Checks that the residual ratio of matrices.h is below 30, at the least budget.
TEST(Stream, ResidualRatio) {
  for (const Precision precision : precisions)
    for (int which = int(precision); which < int(std::size(cases)); which += sanitized ? 8 : 3) {
      const bool single = precision == Precision::single;
      const index_t n = 200, k = which % 4 == 0 ? 70 : 9;
      Random random(8);
      Problem<double> p = cases[which].make(n, k, Level{epsilon(precision)}, random);
      if (single) p.R = p.R.cast<float>().cast<double>();
      const Residual residual(p);
      for (const Kernel kernel : kernels) {
        const StreamRun how = variant(which, kernel, least_budget(n, k, single ? 4 : 8));
        Streamed<double> streamed = single ? stream_lazily<float>(p, how) : stream_lazily<double>(p, how);
        if (how.uplo == Uplo::lower) streamed.R.transposeInPlace();
        ASSERT_EQ(streamed.run.end, End::complete);
        EXPECT_EQ(streamed.panels, 2);
        EXPECT_LT(residual.ratio(streamed.R, epsilon(precision)), 30) << cases[which].name << ", " << text(how);
      }
    }
}

TEST(Stream, NamesTheFailingPivotOfAnyPanel) {
  const index_t n = 400;
  unsigned i = 0;
  for (const index_t k : {9, 70}) {
    const Problem<double> good = quick_problem(Sign::downdate, n, k);
    for (const index_t pivot : {0, 127, 250, 399})
      for (const Kernel kernel : kernels)
        for (const double budget : budgets_for(n, k, 8)) {
          if (++i % (sanitized ? 7 : 2)) continue;
          Problem<double> p = good;
          p.R(pivot, pivot) *= 1e-6;
          const StreamRun how = variant(i, kernel, budget);
          const Streamed<double> streamed = stream_lazily<double>(p, how);
          ASSERT_EQ(streamed.run.end, End::failing_pivot) << text(how);
          ASSERT_EQ(streamed.run.pivot, pivot) << text(how);
        }
  }
}

/// A downdate whose second pass fails. An earlier pass may fail further down, and its pivot may be named instead: all
/// that is certain is that the leading minor of the named pivot is not positive definite.
TEST(Stream, NoticesADowndateThatOnlyFailsInTheSecondPass) {
  const index_t n = 400, k = 70, pivot = 250;
  Problem<double> p = quick_problem(Sign::downdate, n, k), first = p;
  first.V = p.V.leftCols(block_columns::most_columns);
  const double r = p.R(pivot, pivot), r1 = in_one_piece<double>(first, Kernel::persistent)(pivot, pivot),
               r2 = in_one_piece<double>(p, Kernel::persistent)(pivot, pivot);
  p.R(pivot, pivot) = std::sqrt(r * r - (r1 * r1 + r2 * r2) / 2);
  for (const Kernel kernel : kernels)
    for (const double budget : budgets_for(n, k, 8)) {
      const Streamed<double> streamed = stream_lazily<double>(p, variant(1, kernel, budget));
      EXPECT_EQ(streamed.run.end, End::failing_pivot);
      EXPECT_GE(streamed.run.pivot, pivot);
    }
}

TEST(Stream, StopsAtAnEntryThatCannotBeUsed) {
  const index_t n = 400, k = 9;
  const Problem<double> good = quick_problem(Sign::downdate, n, k);
  unsigned i = 0;
  for (const double entry : {double(NAN), double(INFINITY), 1e200, -1.0})
    for (const index_t j : {0, 200, 399})
      for (const Kernel kernel : kernels) {
        Problem<double> p = good;
        p.R(entry == -1 ? j : j / 2, j) = entry;
        const StreamRun how = some_run(++i, kernel, n, k);
        EXPECT_EQ(stream_lazily<double>(p, how).run.end, entry == 1e200 ? End::rescale : End::refused) << text(how);
      }
  Problem<float> large = as<float>(good);
  large.sign = Sign::update;
  large.R(300, 300) = large.V(300, 0) = 3e38f;
  const Streamed<float> streamed = stream_lazily<double>(large, variant(1, Kernel::persistent, least_budget(n, k, 8)));
  EXPECT_EQ(streamed.run.end, End::unfit);
  EXPECT_EQ(streamed.run.unfit.row, 300);
  EXPECT_EQ(streamed.run.unfit.col, 300);
}

struct Interrupt {};

/// Checks that poll() can end a run. Reading takes 1 ms a column, so that there is time to call poll().
TEST(Stream, LetsPollAbandonIt) {
  const index_t n = 300, k = 5;
  const Problem<double> p = quick_problem(Sign::update, n, k);
  unsigned i = 0;
  for (const int last : {1, 2, 4})
    for (const Kernel kernel : kernels) {
      StreamRun how = some_run(++i, kernel, n, k);
      how.uplo = Uplo::upper;
      how.on_read = [](index_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
      how.threads = 1 + i % 2;
      int calls = 0;
      const Poll poll = [&](double done) {
        EXPECT_GE(done, 0);
        EXPECT_LE(done, 1);
        if (++calls == last) throw Interrupt();
      };
      EXPECT_THROW(stream_lazily<double>(p, how, poll), Interrupt);
      EXPECT_EQ(calls, last);
    }
}

TEST(Stream, PassesOnWhatReadingOrWritingThrows) {
  const index_t n = 300, k = 5;
  const Problem<double> p = quick_problem(Sign::update, n, k);
  unsigned i = 0;
  for (const bool writing : {false, true})
    for (const index_t column : {0, 150, 299})
      for (const Kernel kernel : kernels) {
        StreamRun how = some_run(++i, kernel, n, k);
        (writing ? how.on_write : how.on_read) = [=](index_t j) {
          if (j == column) throw Interrupt();
        };
        EXPECT_THROW(stream_lazily<double>(p, how), Interrupt) << text(how);
      }
}

TEST(Stream, ReportsTheModifications) {
  const index_t n = 300, k = 70;
  const Problem<double> p = quick_problem(Sign::update, n, k);
  for (const Kernel kernel : kernels) {
    const Work outcome = stream_lazily<double>(p, variant(1, kernel, least_budget(n, k, 8))).outcome;
    EXPECT_EQ(outcome.blocks, 3 * row_blocks(n));
    EXPECT_EQ(outcome.fallbacks, kernel == Kernel::stepwise ? 3 * row_blocks(n) : 0);
  }
}

}  // namespace
}  // namespace gpucholmod::test
