#include <gtest/gtest.h>

#include "call.h"
#include "families.h"
#include "lazy_executor.h"
#include "paper/drive.h"
#include "paper/host_executor.h"

namespace gpucholmod::test {
namespace {

using paper::HostExecutor;

const Poll no_poll = [](double) {};

paper::Shape shape_of(int rows, int threads, int blocks, int elements) {
  paper::Shape shape;
  shape.panel_rows = rows;
  shape.threads_per_block = threads;
  shape.blocks_per_kernel = blocks;
  shape.elements_per_thread = elements;
  return shape;
}

std::string text(const paper::Shape& shape) {
  return "panel_rows " + std::to_string(shape.panel_rows) + ", threads " + std::to_string(shape.threads_per_block) +
         ", blocks " + std::to_string(shape.blocks_per_kernel) + ", elements " +
         std::to_string(shape.elements_per_thread);
}

Problem<double> random_problem(Sign sign, index_t n, index_t k, unsigned seed = 3) {
  Random random(seed);
  const Matrix R = well_conditioned(n, random), V = random.normal(n, k);
  return sign == Sign::update ? problem(sign, R, V) : undo(R, V);
}

/// Runs drive() on a problem, whose R becomes the result.
template <class Executor>
index_t drive(Problem<double>& p, const paper::Shape& shape, Executor& executor, const Poll& poll) {
  const index_t n = p.R.cols(), k = p.V.cols();
  return paper::drive<double>({p.R.data(), n, n, n}, {p.V.data(), n, k, n}, p.sign, shape, executor, poll).pivot;
}

TEST(Panel, AgreesWithTheReferenceBitForBitInAnyShape) {
  for (const Precision precision : precisions)
    for (const Sign sign : signs) {
      const Problem<double> p = random_problem(sign, 131, 17);
      const Stored<double> expected = call(p, by(ways[0], precision)).R;
      for (const int rows : {1, 5, 16, 64, 100, 500})
        for (const int threads : {32, 64, 96, 256})
          for (const int blocks : {1, 2, 7})
            for (const int elements : {1, 4, 8, 16, 32}) {
              if (rows < 16 && (threads + blocks + elements) % 3 != 0) continue;  // slow: every third will do
              Request request = by(ways[3], precision);
              request.shape = shape_of(rows, threads, blocks, elements);
              ASSERT_TRUE(same_bits(call(p, request).R, expected)) << text(*request.shape);
            }
    }
}

TEST(Panel, AShapeLargerThanTheMatrixCostsNothing) {
  const Problem<double> p = random_problem(Sign::update, 33, 3);
  Request request = by(ways[3]);
  request.shape = shape_of(33, 256, 1, 32);
  const Result<double> fitting = call(p, request);
  request.shape = shape_of(std::numeric_limits<int>::max(), 256, std::numeric_limits<int>::max(), 32);
  const Result<double> huge = call(p, request);
  EXPECT_TRUE(same_bits(huge.R, fitting.R));
  EXPECT_EQ(huge.outcome.device_bytes, fitting.outcome.device_bytes);
}

TEST(Panel, CountsItsPanels) {
  Request request = by(ways[3]);
  request.shape = shape_of(16, 32, 1, 4);  // 84 columns right of the first block: 16, 32, 32, 4
  const Outcome outcome = call(random_problem(Sign::update, 100, 2), request).outcome;
  index_t panels = 0;
  for (const paper::Step& step : paper::schedule(100, *request.shape)) panels += step.kind == paper::Step::Kind::panel;
  EXPECT_EQ(outcome.panels, panels);
  EXPECT_EQ(outcome.panels, 4 + 3 + 3 + 2 + 2 + 1);
}

/// A team whose threads run in another order in every phase, so that a race between two barriers shows.
template <class T>
class ShuffledThreads {
 public:
  ShuffledThreads(int threads, unsigned seed) : registers_(threads), order_(threads), random_(seed) {
    for (int t = 0; t < threads; ++t) order_[t] = t;
  }
  int threads() const { return int(order_.size()); }
  template <class F>
  void each_sync(F&& f) {
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const int t : order_) f(t, registers_[t].data());
  }

 private:
  std::vector<std::array<T, paper::max_elements_per_thread>> registers_;
  std::vector<int> order_;
  std::mt19937 random_;
};

template <int E, Sign sign>
void shuffled_equals_ordered(index_t rows, index_t cols, index_t k, int threads) {
  Random random(5);
  const Stored<double> R = random.normal(rows, cols).cast<double>(), V = random.normal(cols, k).cast<double>();
  std::vector<Rotation<double>> rotations(rows * k);
  for (Rotation<double>& g : rotations) {
    double r = 2;
    compute<sign>(r, double(random.uniform()), g);
  }
  Stored<double> R1 = R, R2 = R, V1 = V, V2 = V;
  const auto run = [&](auto& team, Stored<double>& R_out, Stored<double>& V_out) {
    std::vector<double> sR(threads * (paper::TILE + 1));
    std::vector<Rotation<double>> sG(paper::TILE * E);
    const paper::Launch<double> launch{R_out.data(), rows, cols, rows, V_out.data(), cols, k, rotations.data()};
    for (index_t block = 0; block * threads < cols; ++block)
      paper::rotate_block<E, sign>(launch, int(block), team, sR.data(), sG.data());
  };
  paper::HostThreads<double> ordered(threads);
  ShuffledThreads<double> shuffled(threads, 6);
  run(ordered, R1, V1);
  run(shuffled, R2, V2);
  EXPECT_TRUE(same_bits(R1, R2));
  EXPECT_TRUE(same_bits(V1, V2));
  EXPECT_FALSE(same_bits(R1, R));
}

TEST(Panel, ThreadsOfABlockDoNotDependOnTheirOrder) {
  for (const index_t rows : {1, 16, 37})
    for (const index_t cols : {1, 64, 100}) {
      shuffled_equals_ordered<1, Sign::update>(rows, cols, 3, 64);
      shuffled_equals_ordered<4, Sign::downdate>(rows, cols, 6, 32);
      shuffled_equals_ordered<16, Sign::update>(rows, cols, 16, 96);
    }
}

TEST(Panel, CompilesEnoughElements) {
  for (index_t wanted = 1; wanted <= 32; ++wanted)
    paper::with_elements(wanted, [&](auto elements) { EXPECT_GE(elements(), wanted); });
  for (const int elements : {1, 4, 8, 16, 32})
    paper::with_elements(elements, [&](auto compiled) { EXPECT_EQ(compiled(), elements); });
}

/// Checks that a thread block needs no more than 48 KiB of shared memory, which need no special request to the driver.
TEST(Panel, FitsInSharedMemory) {
  EXPECT_LE(paper::shared_bytes<double>(paper::max_threads_per_block, paper::max_elements_per_thread), 48 * 1024);
}

TEST(Drive, NeedsNoMoreOfAnExecutorThanItsContract) {
  for (const Sign sign : signs)
    for (const index_t n : {1, 15, 16, 17, 64, 131})
      for (const paper::Shape& shape : {shape_of(1, 32, 1, 1), shape_of(5, 32, 1, 1), shape_of(16, 32, 1, 4),
                                      shape_of(16, 96, 1, 4), shape_of(48, 32, 1, 4), shape_of(64, 64, 132, 16)}) {
        Problem<double> p = random_problem(sign, n, 5);
        const Stored<double> expected = call(p, by(ways[0])).R;
        int in_flight = 0;
        LazyExecutor<double> executor(sign, in_flight);
        ASSERT_EQ(drive(p, shape, executor, no_poll), -1);
        ASSERT_EQ(in_flight, 0) << "drive() returned before R was complete";
        ASSERT_TRUE(same_bits(p.R, expected)) << "n " << n << ", " << text(shape);
      }
}

TEST(Drive, LeavesNothingInFlightWhenADowndateFails) {
  Problem<double> p = random_problem(Sign::downdate, 131, 5);
  p.R(70, 70) *= 1e-3;
  const index_t expected = call(p, by(ways[0])).outcome.pivot;
  ASSERT_EQ(expected, 70);
  int in_flight = 0;
  {
    LazyExecutor<double> executor(p.sign, in_flight);
    EXPECT_EQ(drive(p, shape_of(16, 32, 1, 4), executor, no_poll), expected);
    EXPECT_GT(in_flight, 0) << "the test is of no use";
  }
  EXPECT_EQ(in_flight, 0);
  EXPECT_TRUE(p.R.allFinite());
}

TEST(Drive, LetsPollAbandonTheComputation) {
  struct Interrupt {};
  Problem<double> p = random_problem(Sign::update, 131, 5);
  const paper::Shape shape = shape_of(16, 32, 1, 4);
  for (const int last : {1, 2, 5}) {
    int calls = 0, in_flight = 0;
    const Poll poll = [&](double) {
      if (++calls == last) throw Interrupt();
    };
    const auto lazily = [&] {
      LazyExecutor<double> executor(p.sign, in_flight);
      drive(p, shape, executor, poll);
    };
    const auto on_host = [&] {
      HostExecutor<double> executor(paper::Footprint<double>(131, 5, shape), p.sign, shape);
      drive(p, shape, executor, poll);
    };
    EXPECT_THROW(lazily(), Interrupt);
    EXPECT_EQ(calls, last);
    EXPECT_EQ(in_flight, 0);
    calls = 0;
    EXPECT_THROW(on_host(), Interrupt);
  }
}

}  // namespace
}  // namespace gpucholmod::test
