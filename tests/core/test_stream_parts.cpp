#include <gtest/gtest.h>

#include <map>

#include "stream/staging.h"
#include "stream/workers.h"
#include "stream_call.h"

/// The parts of the stream method: its plan, the way between a factor and a chunk, and the threads.
namespace gpucholmod::test {
namespace {

using stream::Chunk;
using stream::Panel;
using stream::Plan;
using stream::Workers;

/// Checks that panels and chunks follow each other without gap, and that the plan fits into the budget.
void expect_sound(const Plan& plan, double budget) {
  int strip = 0, most_strips = 0;
  index_t most_words = 0, column = 0, most_chunk = 0;
  for (const Panel& panel : plan.panels()) {
    ASSERT_EQ(panel.first, strip);
    ASSERT_GT(panel.end, panel.first);
    strip = panel.end;
    most_strips = std::max(most_strips, panel.end - panel.first);
    most_words = std::max(most_words, panel.words());
  }
  ASSERT_EQ(strip, block_columns::strips_of(plan.n()));
  EXPECT_EQ(plan.slot_words(), most_words);
  EXPECT_EQ(plan.slot_strips(), most_strips);
  EXPECT_GE(plan.slots(), 1);
  EXPECT_LE(plan.slots(), std::min<int>(tuning::stream_slots, int(plan.panels().size())));
  EXPECT_LE(plan.device_bytes(), budget);

  int panel = 0;
  for (const Chunk& chunk : plan.chunks()) {
    const Panel& at = plan.panels()[panel];
    ASSERT_EQ(chunk.panel, panel);
    ASSERT_EQ(chunk.begin, column);
    ASSERT_GT(chunk.end, chunk.begin);
    ASSERT_EQ(chunk.offset, (chunk.begin - at.column()) * at.ld());
    ASSERT_EQ(chunk.words, (chunk.end - chunk.begin) * at.ld());
    column = chunk.end;
    ASSERT_EQ(chunk.last, column == at.column() + at.columns());
    panel += chunk.last;
    most_chunk = std::max(most_chunk, chunk.words);
  }
  ASSERT_EQ(panel, int(plan.panels().size()));
  EXPECT_EQ(plan.chunk_words(), most_chunk);
  EXPECT_GE(plan.buffers(), 1);
}

const index_t orders[] = {1, 127, 128, 129, 1000, 5000, 16384, 140000};
const index_t widths[] = {1, 16, 64, 65, 200};

TEST(StreamPlan, CoversTheFactorWithinAnyBudget) {
  for (const index_t n : orders)
    for (const index_t k : widths)
      for (const int word : {4, 8}) {
        SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + ", word " + std::to_string(word));
        double before = ample;
        for (const double budget : budgets_for(n, k, word)) {
          const Plan plan(n, k, 0, word, budget, false);
          expect_sound(plan, budget);
          EXPECT_LE(plan.device_bytes(), before) << "more memory where less is allowed";
          before = plan.device_bytes();
        }
      }
}

TEST(StreamPlan, NamesTheLeastBudget) {
  for (const index_t n : orders)
    for (const index_t k : widths)
      for (const int word : {4, 8})
        for (const bool whole : {false, true}) {
          double least = ample;
          for (const double share : {0.0, 0.5, 1.0}) {
            const double available = share == 0 ? 0 : share * least - 1;
            const auto error = error_of([&] { Plan(n, k, 0, word, available, whole); });
            ASSERT_TRUE(error);
            EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
            EXPECT_EQ(number(*error, "available"), available);
            least = number(*error, "needed");
            EXPECT_EQ(Plan(n, k, 0, word, least, whole).device_bytes(), least);
          }
        }
}

TEST(StreamPlan, WholeIsOnePanel) {
  for (const index_t n : {1, 129, 5000}) {
    const Plan plan(n, 9, 0, 8, ample, true);
    expect_sound(plan, ample);
    EXPECT_EQ(plan.panels().size(), 1u);
  }
}

/// Checks that a modest budget leaves slots enough for panels to come, to be modified and to go at the same time.
TEST(StreamPlan, KeepsItsSlotsInSmallMemory) {
  for (const index_t n : {1000, 16384}) {
    const double whole = Plan(n, 16, 0, 8, ample, true).device_bytes();
    EXPECT_EQ(Plan(n, 16, 0, 8, 0.7 * whole, false).slots(), tuning::stream_slots);
  }
}

TEST(StreamPlan, NeedsMemoryOfOrderN) {
  for (const index_t k : {1, 64, 200})
    for (const int word : {4, 8})
      EXPECT_NEAR(least_budget(200000, k, word) / least_budget(100000, k, word), 2, 0.05);
}

/// A source that copies everything to `scratch`, as a file does.
template <class S>
struct CopyingSource : WatchedSource<S> {
  using WatchedSource<S>::WatchedSource;
  const S* column(index_t j, index_t first, index_t last, S* scratch) const override {
    return std::copy_n(MemorySource<S>::column(j, first, last, nullptr), last - first, scratch) - (last - first);
  }
};

template <class S>
Stored<S> plain_factor(index_t n) {
  return as<S>(quick_problem(Sign::update, n, 1)).R;
}
/// The memory of a chunk with columns begin to end - 1, and with the rows of a panel that ends behind them.
template <class T>
struct ChunkMemory {
  ChunkMemory(index_t begin, index_t end)
      : memory(Stored<T>::Constant(
            (end + block_columns::STRIP - 1) / block_columns::STRIP * block_columns::STRIP + block_columns::margin,
            end - begin, std::numeric_limits<T>::quiet_NaN())) {}
  MatrixView<T> view() { return {memory.data(), memory.rows(), memory.cols(), memory.rows()}; }
  Stored<T> memory;
};

struct Columns {
  index_t n, begin, end;
};
/// Columns inside a factor, across its end and wholly behind it; and of a factor of order 1.
const Columns chunks[] = {{300, 0, 300},   {300, 37, 101},  {300, 128, 256}, {300, 299, 300},
                          {300, 290, 310}, {300, 300, 384}, {300, 350, 351}, {1, 0, 128}};

template <class S, class T>
void fills(const Columns& at, Uplo uplo, int e) {
  const auto [n, begin, end] = at;
  const Stored<S> R = plain_factor<S>(n), memory = stored(R, uplo);
  std::vector<S> scratch(n);
  ChunkMemory<T> chunk(begin, end);
  const CopyingSource<S> from(memory.data(), n, {});
  const stream::Seen<S> seen = stream::fill<S, T>(from, n, uplo, e, begin, end, chunk.view(), scratch.data());
  index_t bad = 0;
  S largest = 0;
  for (index_t j = begin; j < end; ++j)
    for (index_t i = 0; i < chunk.memory.rows(); ++i) {
      const T entry = chunk.memory(i, j - begin);
      if (i >= (j / block_columns::NB + 1) * block_columns::NB) bad += !std::isnan(entry);
      else if (i > j || j >= n) bad += entry != T(i == j);
      else bad += entry != T(std::scalbn(R(i, j), -e));
      if (i <= j && j < n) largest = std::max(largest, std::abs(R(i, j)));
    }
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(seen.value(), largest);
  EXPECT_FALSE(seen.bad_diagonal);
}

/// Checks that empty() reads no entry outside of the factor, all of which are NaN, and leaves the rest of `out` NaN.
template <class S, class T>
void empties(const Columns& at, Uplo uplo, int e) {
  const auto [n, begin, end] = at;
  const Stored<S> R = plain_factor<S>(n);
  ChunkMemory<T> chunk(begin, end);
  for (index_t j = begin; j < std::min(n, end); ++j)
    for (index_t i = 0; i <= j; ++i) chunk.memory(i, j - begin) = T(std::scalbn(R(i, j), -e));
  Stored<S> out = Stored<S>::Constant(n, n, std::numeric_limits<S>::quiet_NaN());
  MemorySink<S> to(out.data(), n);
  std::vector<S> scratch(n);
  const MatrixView<T> view = chunk.view();
  const auto unfit = stream::empty<S, T>({view.data, view.rows, view.cols, view.ld}, begin, end, n, uplo,
                                         std::scalbn(1.0, e), to, scratch.data());
  EXPECT_EQ(unfit.row, -1);
  if (uplo == Uplo::lower) out.transposeInPlace();
  index_t bad = 0;
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) {
      const index_t column = uplo == Uplo::upper ? j : std::max(i, j);  // column of the chunk that brings the entry
      const bool written = column >= begin && column < end;
      bad += !written ? !std::isnan(out(i, j)) : out(i, j) != (i > j ? S(0) : S(T(R(i, j))));
    }
  EXPECT_EQ(bad, 0);
}

template <class S, class T>
void there_and_back() {
  for (const Columns& at : chunks)
    for (const Uplo uplo : uplos)
      for (const int e : {0, 3, -5}) {
        SCOPED_TRACE(testing::Message() << "n " << at.n << ", columns " << at.begin << " to " << at.end
                                        << (uplo == Uplo::upper ? ", upper" : ", lower") << ", e " << e);
        fills<S, T>(at, uplo, e);
        empties<S, T>(at, uplo, e);
      }
}
TEST(Staging, ThereAndBack) {
  there_and_back<double, double>();
  there_and_back<double, float>();
  there_and_back<float, double>();
  there_and_back<float, float>();
}

template <class S, class T>
stream::Seen<S> seen_of(Stored<S> R, Uplo uplo, int e = 0) {
  const index_t n = R.cols();
  R = stored(R, uplo);
  std::vector<S> scratch(n);
  ChunkMemory<T> chunk(0, n);
  return stream::fill<S, T>(MemorySource<S>(R.data(), n), n, uplo, e, 0, n, chunk.view(), scratch.data());
}
TEST(Staging, SeesWhatCannotBeUsed) {
  const Stored<double> good = plain_factor<double>(70);
  for (const Uplo uplo : uplos) {
    for (const double entry : {double(NAN), double(INFINITY), -double(INFINITY)}) {
      Stored<double> R = good;
      R(3, 69) = entry;
      EXPECT_FALSE(std::isfinite((seen_of<double, double>(R, uplo).value())));
      EXPECT_FALSE(std::isfinite((seen_of<double, float>(R, uplo).value())));
    }
    for (const double entry : {0.0, -0.0, -1.0, double(NAN), 1e-60}) {
      Stored<double> R = good;
      R(69, 69) = entry;
      EXPECT_EQ((seen_of<double, double>(R, uplo).bad_diagonal), entry != 1e-60);
      EXPECT_TRUE((seen_of<double, float>(R, uplo).bad_diagonal)) << "it vanishes";
    }
    Stored<double> tiny = good * 1e-60;
    EXPECT_FALSE((seen_of<double, float>(tiny, uplo, -190).bad_diagonal));
  }
}

TEST(Staging, SaysWhatIsTooLargeOrTooSmall) {
  const index_t n = 70;
  for (const Uplo uplo : uplos) {
    ChunkMemory<double> chunk(0, n);
    chunk.memory.topRows(n) = plain_factor<double>(n);
    chunk.memory(5, 60) = -1e39;
    Stored<float> out(n, n);
    MemorySink<float> to(out.data(), n);
    std::vector<float> scratch(n);
    const MatrixView<double> from = chunk.view();
    const auto empty = [&](double scale) {
      return stream::empty<float, double>({from.data, from.rows, from.cols, from.ld}, 0, n, n, uplo, scale, to,
                                          scratch.data());
    };
    const auto large = empty(1);
    EXPECT_EQ(large.row, uplo == Uplo::upper ? 5 : 60);
    EXPECT_EQ(large.col, uplo == Uplo::upper ? 60 : 5);
    EXPECT_EQ(large.error().code(), ErrorCode::overflow);
    chunk.memory(5, 60) = 1;
    chunk.memory(66, 66) = 1e-38;
    const auto small = empty(0.5);
    EXPECT_EQ(small.row, 66);
    EXPECT_EQ(small.error().code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(small.error(), "index"), 67);
    EXPECT_EQ(number(small.error(), "value"), float(0.5e-38));
  }
}

TEST(Workers, OneThreadIsTheOneThatHelps) {
  Workers workers(1);
  EXPECT_EQ(workers.count(), 1);
  std::vector<int> done;
  for (int i = 0; i < 3; ++i)
    workers.submit([&done, i, me = std::this_thread::get_id()](int worker) {
      EXPECT_EQ(worker, 0);
      EXPECT_EQ(std::this_thread::get_id(), me);
      done.push_back(i);
    });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(int(done.size()), i);
    workers.help();
  }
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
  workers.help();
  workers.submit([](int) { throw 7; });
  EXPECT_THROW(workers.help(), int);
}

TEST(Workers, EveryTaskIsDoneOnceByAThreadOfItsOwnNumber) {
  for (const int threads : {2, 3, 5, 9})
    within_a_minute([threads] {
      Workers workers(threads);
      std::mutex mutex;
      std::vector<int> times(200, 0);
      std::map<int, std::thread::id> who;
      std::atomic<int> done{0};
      for (int i = 0; i < 200; ++i)
        workers.submit([&, i](int worker) {
          const std::lock_guard<std::mutex> lock(mutex);
          ++times[i];
          const auto [at, is_new] = who.insert({worker, std::this_thread::get_id()});
          EXPECT_EQ(at->second, std::this_thread::get_id()) << "two threads with one number";
          ++done;
        });
      while (done < 200) workers.help();
      EXPECT_EQ(times, std::vector<int>(200, 1));
      EXPECT_GE(who.begin()->first, 0);
      EXPECT_LT(who.rbegin()->first, workers.count());
      EXPECT_LE(workers.count(), threads);
    });
}

TEST(Workers, TasksThatHaveNotBegunAreDropped) {
  within_a_minute([] {
    std::atomic<bool> begun{false};
    std::atomic<int> done{0};
    {
      auto token = std::make_shared<int>();
      const std::weak_ptr<int> dropped = token;
      Workers workers(2);
      workers.submit([&begun, dropped](int) {  // ends when the tasks behind this one are gone
        begun = true;
        while (!dropped.expired()) std::this_thread::yield();
      });
      while (!begun) std::this_thread::yield();
      for (int i = 0; i < 10; ++i) workers.submit([&done, token](int) { ++done; });
      token.reset();
    }
    EXPECT_EQ(done, 0);
  });
}

TEST(Workers, WhatATaskThrowsReachesTheOneWhoHelps) {
  for (const int threads : {2, 5})
    within_a_minute([threads] {
      Workers workers(threads);
      std::atomic<int> done{0};
      workers.submit([](int) { throw 7; });
      for (int i = 0; i < 10; ++i) workers.submit([&](int) { ++done; });
      const auto help_forever = [&] {
        for (;;) workers.help();
      };
      EXPECT_THROW(help_forever(), int);
      while (done < 10) std::this_thread::yield();
    });
}

}  // namespace
}  // namespace gpucholmod::test
