#include <gtest/gtest.h>

#include <algorithm>

#include "stream/run.h"
#include "stream_request.h"

/// Method stream on the CPU, with its reads and writes watched: interrupts, errors, and results in the memory of the
/// factor itself.
namespace gpucholmod::test {
namespace {

struct Interrupt {};

TEST(StreamOnHost, LetsPollAbandonIt) {
  const index_t n = 500, k = 6;
  for (const Sign sign : signs) {
    const Problem<double> p = quick_problem(sign, n, k), before = p;
    for (const int threads : {1, 4})
      for (const double when : {0.0, 0.2, 0.6, 0.85}) {
        Request request = in_least_memory(streaming(), n, k);
        request.threads = threads;
        const Poll poll = [when](double done) {
          if (done >= when) throw Interrupt();
        };
        EXPECT_THROW(call_within_a_minute(p, request, poll), Interrupt);
        EXPECT_TRUE(same_bits(p.R, before.R));
      }
  }
}

/// Runs modify() by method stream on memory whose reads and writes are watched; `overwrites` as in stream::run().
template <class S>
Outcome modify_watched(const S* R, const Problem<S>& p, S* out, Request request, bool overwrites,
                       const Watch& on_read = {}, const Watch& on_write = {}, const Poll& poll = no_poll) {
  request.n = p.V.rows();
  request.k = p.V.cols();
  request.removed = p.sign == Sign::downdate ? request.k : 0;
  Outcome outcome;
  within_a_minute([&, request] {
    const WatchedSource<S> from(R, request.n, on_read);
    WatchedSink<S> to(out, request.n, on_write);
    if (!overwrites || request.k == 0) {
      outcome = modify(Place<S>::file(from, to), p.V.data(), request, poll);
      return;
    }
    const Request task = resolved(request, choose(request, Where::in_place));
    static_cast<Work&>(outcome) = task.precision == Precision::single
                                      ? stream::run<float, S>(from, p.V.data(), to, task, true, {}, poll)
                                      : stream::run<double, S>(from, p.V.data(), to, task, true, {}, poll);
  });
  return outcome;
}

TEST(StreamOnHost, PassesOnWhatReadingOrWritingThrows) {
  const index_t n = 500, k = 6;
  const Problem<double> p = quick_problem(Sign::update, n, k);
  for (const int threads : {1, 2, 6})
    for (const bool overwrites : {false, true})
      for (const bool writing : {false, true})
        for (const index_t column : {0, 300, 499}) {
          const Watch watch = [=](index_t j) {
            if (j == column) throw Interrupt();
          };
          Request request = in_least_memory(streaming(), n, k);
          request.threads = threads;
          Stored<double> memory = stored(p.R, Uplo::upper), out = memory;
          EXPECT_THROW(modify_watched(memory.data(), p, overwrites ? memory.data() : out.data(), request, overwrites,
                                      writing ? Watch() : watch, writing ? watch : Watch()),
                       Interrupt);
        }
}

template <class S>
void overwriting_gives_the_same(Precision precision) {
  for (const Sign sign : signs)
    for (const index_t n : {1, 129, 400})
      for (const index_t k : {0, 6})
        for (const Uplo uplo : uplos)
          for (const double scale : {1.0, 1e30, 1e-30}) {
            Problem<double> wide = quick_problem(sign, n, k);
            wide.R *= scale;
            wide.V *= scale;
            const Problem<S> p = stored(as<S>(wide), uplo);
            const Request request = in_least_memory(streaming(uplo, precision), n, std::max<index_t>(k, 1));
            Stored<S> memory = p.R;
            EXPECT_EQ(modify_watched(memory.data(), p, memory.data(), request, true).pivot, -1);
            EXPECT_TRUE(same_bits(memory, call(p, request).R)) << "n " << n << ", k " << k << ", scale " << scale;
          }
}
TEST(StreamOnHost, MayTakeThePlaceOfTheFactor) {
  for (const Precision precision : precisions) {
    overwriting_gives_the_same<double>(precision);
    overwriting_gives_the_same<float>(precision);
  }
}

TEST(StreamOnHost, DoesNotTouchThePlaceOfAFactorThatItCannotModify) {
  const index_t n = 400, k = 6;
  const Problem<double> good = quick_problem(Sign::downdate, n, k);
  for (const Sign sign : signs)
    for (const Uplo uplo : uplos)
      for (const index_t j : {2, 399})
        for (const double entry : {1e-7, -1.0, double(NAN), double(INFINITY)}) {
          if (sign == Sign::update && entry > 0 && std::isfinite(entry)) continue;
          Problem<double> p = good;
          p.sign = sign;
          p.R(j, j) = entry;
          p = stored(p, uplo);
          Stored<double> memory = p.R;
          const Watch on_write = [](index_t) { ADD_FAILURE() << "written to"; };
          const Request request = in_least_memory(streaming(uplo), n, k);
          index_t pivot = -2;
          const auto error = error_of(
              [&] { pivot = modify_watched(memory.data(), p, memory.data(), request, true, {}, on_write).pivot; });
          EXPECT_EQ(error.has_value(), entry != 1e-7);
          EXPECT_EQ(pivot, error ? -2 : j);
          EXPECT_TRUE(same_bits(memory, p.R));
        }
}

/// Checks that an interrupt of the run that writes nothing leaves the factor as it was.
TEST(StreamOnHost, AnInterruptBeforeWritingLeavesThePlaceAlone) {
  const index_t n = 400, k = 6;
  const Problem<double> p = quick_problem(Sign::downdate, n, k);
  const Request request = in_least_memory(streaming(), n, k);
  for (const double when : {0.0, 0.5, 0.85}) {
    Stored<double> memory = p.R;
    const Poll poll = [when](double done) {
      if (done >= when) throw Interrupt();
    };
    EXPECT_THROW(modify_watched(memory.data(), p, memory.data(), request, true, {}, {}, poll), Interrupt);
    EXPECT_TRUE(same_bits(memory, p.R));
  }
}

}  // namespace
}  // namespace gpucholmod::test
