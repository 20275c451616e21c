#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/threads.h"
#include "stream_request.h"

/// Results of modify() by method stream, on the CPU.
namespace gpucholmod::test {
namespace {

template <class S>
void equals_blocked(const Problem<double>& given, Precision precision, unsigned& i) {
  const index_t n = given.R.cols(), k = given.V.cols();
  for (const Uplo uplo : uplos) {
    const Problem<S> p = stored(as<S>(given), uplo), before = p;
    Request request = streaming(uplo, precision);
    const Result<S> expected = call(p, blocked(request));
    ASSERT_EQ(expected.outcome.pivot, -1);
    for (const double budget : budgets_for(n, std::max<index_t>(k, 1), precision == Precision::single ? 4 : 8)) {
      if (++i % (sanitized ? 5 : n > 300 ? 2 : 1)) continue;
      request.device_memory = budget;
      request.threads = std::array{1, 2, 5, 0}[i / 2 % 4];
      const Result<S> result = call_within_a_minute(p, request);
      ASSERT_EQ(result.outcome.pivot, -1);
      ASSERT_TRUE(same_bits(result.R, expected.R)) << "n " << n << ", k " << k << ", budget " << budget;
      ASSERT_TRUE(same_bits(p.R, before.R) && same_bits(p.V, before.V));
    }
  }
}

TEST(StreamOnHost, EqualsBlockedBitForBit) {
  unsigned i = 0;
  for (const Sign sign : signs)
    for (const index_t n : {1, 31, 127, 129, 300, 520})
      for (const index_t k : {0, 1, 6, 17, 70}) {
        if (n == 520 && k > 17) continue;
        const Problem<double> p = quick_problem(sign, n, k);
        for (const Precision precision : precisions) {
          equals_blocked<double>(p, precision, i);
          equals_blocked<float>(p, precision, i);
        }
      }
}

TEST(StreamOnHost, TakesAnEmptyFactor) {
  const Problem<double> empty{Sign::downdate, Stored<double>(0, 0), Stored<double>(0, 3)};
  EXPECT_EQ(call(empty, streaming()).outcome.pivot, -1);
}

TEST(StreamOnHost, ReportsWhatItDid) {
  const index_t n = 700, k = 5;
  const Problem<double> p = quick_problem(Sign::update, n, k);
  for (const Precision precision : precisions)
    for (const double budget : budgets_for(n, k, precision == Precision::single ? 4 : 8))
      for (const bool timeline : {false, true}) {
        Request request = streaming(Uplo::upper, precision);
        request.device_memory = budget;
        request.timeline = timeline;
        const Outcome outcome = call(p, request).outcome;
        EXPECT_EQ(outcome.backend, Backend::cpu);
        EXPECT_EQ(outcome.method, Method::stream);
        EXPECT_EQ(outcome.precision, precision);
        EXPECT_EQ(outcome.device, "");
        EXPECT_EQ(outcome.threads, 3);
        EXPECT_GT(outcome.seconds, 0);
        EXPECT_EQ(outcome.panels > 1, budget != ample);
        EXPECT_GT(outcome.device_bytes, 0);
        EXPECT_LE(outcome.device_bytes, budget);
        EXPECT_EQ(outcome.timeline.empty(), !timeline);
        std::vector<int> filled(outcome.panels), emptied(outcome.panels);
        for (const Timeline::Entry& entry : outcome.timeline) {
          EXPECT_TRUE(0 <= entry.begin && entry.begin <= entry.end && entry.end <= outcome.seconds);
          if (entry.stage == Stage::fill) ++filled.at(entry.panel);
          if (entry.stage == Stage::empty) ++emptied.at(entry.panel);
        }
        if (timeline) {
          EXPECT_TRUE(std::all_of(filled.begin(), filled.end(), [](int times) { return times > 0; }));
          EXPECT_EQ(filled, emptied) << "each chunk comes and goes";
        }
      }
}

TEST(StreamOnHost, CountsItsThreads) {
  EXPECT_EQ(threads_for(3), 3);
  EXPECT_GE(threads_for(0), 1);
  EXPECT_LE(threads_for(0), tuning::most_threads);
}

TEST(StreamOnHost, TellsHowMuchIsDone) {
  const Problem<double> p = quick_problem(Sign::update, 700, 5);
  std::vector<double> shares;
  call(p, in_least_memory(streaming(), 700, 5), [&](double done) { shares.push_back(done); });
  ASSERT_GE(shares.size(), 3u);
  EXPECT_EQ(shares.front(), 0);
  EXPECT_GE(*std::min_element(shares.begin(), shares.end()), 0);
  EXPECT_GT(*std::max_element(shares.begin(), shares.end()), 0.5);
  EXPECT_LE(*std::max_element(shares.begin(), shares.end()), 1);
}

TEST(StreamOnHost, RefusesTooLittleMemory) {
  const Problem<double> p = quick_problem(Sign::update, 300, 5);
  Request request = in_least_memory(streaming(), 300, 5);
  const double least = request.device_memory;
  request.device_memory -= 1;
  const auto error = error_of([&] { call(p, request); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  EXPECT_EQ(number(*error, "needed"), least);
}

TEST(StreamOnHost, NamesTheFailingPivotOfAnyPanel) {
  const index_t n = 500, k = 6;
  for (const index_t pivot : {0, 130, 250, 499})
    for (const Uplo uplo : uplos)
      for (const double budget : budgets_for(n, k, 8)) {
        Problem<double> p = quick_problem(Sign::downdate, n, k);
        p.R(pivot, pivot) *= 1e-6;
        p = stored(p, uplo);
        const Problem<double> before = p;
        Request request = streaming(uplo);
        request.device_memory = budget;
        EXPECT_EQ(call_within_a_minute(p, request).outcome.pivot, pivot);
        EXPECT_TRUE(same_bits(p.R, before.R));
      }
}

/// Checks that a bad entry of R is an error wherever it is, also if a downdate of the leading part of R fails.
TEST(StreamOnHost, RefusesAFactorThatCannotBeUsed) {
  const index_t n = 500, k = 6;
  const Problem<double> good = quick_problem(Sign::downdate, n, k);
  for (const bool fails_early : {false, true})
    for (const Precision precision : precisions)
      for (const Uplo uplo : uplos)
        for (const double budget : {ample, least_budget(n, k, 8)}) {
          Request request = streaming(uplo, precision);
          request.device_memory = budget;
          const auto error_with = [&](index_t i, index_t j, double entry) {
            Problem<double> p = good;
            if (fails_early) p.R(3, 3) *= 1e-6;
            p.R(i, j) = entry;
            p = stored(p, uplo);
            const auto error = error_of([&] { call_within_a_minute(p, request); });
            return error ? *error : Error(ErrorCode::cuda_failure, "none");
          };
          for (const index_t j : {5, 490}) {
            const Error nan = error_with(j - 1, j, NAN), bad = error_with(j, j, 1e-310);
            EXPECT_EQ(nan.code(), ErrorCode::not_finite);
            EXPECT_EQ(number(nan, "row"), uplo == Uplo::upper ? j : j + 1);
            EXPECT_EQ(number(nan, "col"), uplo == Uplo::upper ? j + 1 : j);
            EXPECT_EQ(bad.code(), ErrorCode::bad_diagonal);
            EXPECT_EQ(number(bad, "index"), j + 1);
            EXPECT_EQ(number(bad, "value"), 1e-310);
            if (precision == Precision::single) {
              const Error vanished = error_with(j, j, 1e-60);
              EXPECT_EQ(vanished.code(), ErrorCode::bad_diagonal);
              EXPECT_EQ(number(vanished, "index"), j + 1);
            }
          }
        }
  Problem<double> p = good;
  p.V(499, 5) = INFINITY;
  const auto error = error_of([&] { call(p, streaming()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::not_finite);
  EXPECT_EQ(text(*error, "argument"), "V");
}

/// Checks that numbers are scaled as by method blocked, whether the need is known at once, on the way, or only in the
/// end.
template <class S>
void survives(Precision precision, double scale_of_R, double scale_of_V, double last_column) {
  const index_t n = 300, k = 6;
  for (const Sign sign : signs) {
    Problem<double> wide = quick_problem(sign, n, k);
    wide.R *= scale_of_R;
    wide.V *= scale_of_V;
    wide.R.col(n - 1) *= last_column;
    if (sign == Sign::downdate && scale_of_V > scale_of_R) continue;
    const Problem<S> p = as<S>(wide);
    for (const Uplo uplo : uplos) {
      const Request request = in_least_memory(streaming(uplo, precision), n, k);
      SCOPED_TRACE(testing::Message() << "R " << scale_of_R << ", V " << scale_of_V << ", last " << last_column);
      const Result<S> result = call_within_a_minute(stored(p, uplo), request);
      const Result<S> expected = call(stored(p, uplo), blocked(request));
      EXPECT_EQ(result.outcome.pivot, expected.outcome.pivot);
      EXPECT_TRUE(result.outcome.pivot >= 0 || same_bits(result.R, expected.R));
    }
  }
}
TEST(StreamOnHost, ScalesEntriesAtTheEndsOfTheRange) {
  const auto each = [](double scale, const auto& f) {
    f(scale, scale, 1.0);
    f(1.0, 1.0, scale);
    f(1.0, scale, 1.0);
    f(scale, 1.0, 1.0);
  };
  for (const double scale : {1e200, 1e-200, 1e-300})
    each(scale, [](double R, double V, double last) { survives<double>(Precision::double_, R, V, last); });
  for (const double scale : {1e30, 1e-30})
    each(scale, [](double R, double V, double last) {
      survives<double>(Precision::single, R, V, last);
      survives<float>(Precision::single, R, V, last);
      survives<float>(Precision::double_, R, V, last);
    });
}

TEST(StreamOnHost, SaysWhatIsTooLarge) {
  const index_t n = 300;
  for (const Precision precision : precisions)
    for (const Uplo uplo : uplos) {
      Problem<float> p = as<float>(quick_problem(Sign::update, n, 3));
      p.R(200, 200) = p.V(200, 0) = 3e38f;
      const Request request = in_least_memory(streaming(uplo, precision), n, 3);
      const auto error = error_of([&] { call_within_a_minute(stored(p, uplo), request); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::overflow);
      EXPECT_EQ(number(*error, "row"), 201);
      EXPECT_EQ(number(*error, "col"), 201);
    }
}

}  // namespace
}  // namespace gpucholmod::test
