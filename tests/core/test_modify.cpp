#include "modify/modify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "call.h"
#include "cuda/backend.h"
#include "random_problem.h"

namespace gpucholmod::test {
namespace {

constexpr Uplo uplos[] = {Uplo::upper, Uplo::lower};

template <class S>
Problem<S> as(const Problem<double>& p) {
  return {p.sign, p.R.cast<S>(), p.V.cast<S>()};
}

/// Returns the same problem with R stored by `uplo`, and NaN in the triangle that is not its own.
template <class S>
Problem<S> with_uplo(Problem<S> p, Uplo uplo) {
  for (index_t j = 0; j < p.R.cols(); ++j) p.R.col(j).tail(p.R.cols() - j - 1).setConstant(std::nan(""));
  if (uplo == Uplo::lower) p.R.transposeInPlace();
  return p;
}

/// Calls f(problem, request) for storage S, both signs, triangles and precisions, and every way.
template <class S, class F>
void each_call(F&& f) {
  for (const Sign sign : signs)
    for (const Uplo uplo : uplos)
      for (const Precision precision : precisions)
        for (const Way& way : ways)
          for (const index_t n : {1, 33, 70}) {
            SCOPED_TRACE(std::string(way.name) + ", n " + std::to_string(n));
            Request request = by(way, precision);
            request.uplo = uplo;
            request.shape.emplace().panel_rows = 16;
            f(with_uplo(as<S>(random_problem(sign, n, 3)), uplo), request);
          }
}

template <class S>
void inputs_unchanged() {
  each_call<S>([](const Problem<S>& p, const Request& request) {
    const Problem<S> before = p;
    EXPECT_EQ(call(p, request).outcome.pivot, -1);
    EXPECT_TRUE(same_bits(p.R, before.R));
    EXPECT_TRUE(same_bits(p.V, before.V));
  });
}
TEST(Modify, ChangesNoBitOfItsInputs) {
  inputs_unchanged<double>();
  inputs_unchanged<float>();
}

TEST(Modify, ChangesNoBitOfItsInputsWhenADowndateFails) {
  for (const Way& way : ways) {
    Problem<double> p = random_problem(Sign::downdate, 70, 3);
    p.V *= 2;
    const Problem<double> before = p;
    EXPECT_GE(call(p, by(way)).outcome.pivot, 0);
    EXPECT_TRUE(same_bits(p.R, before.R));
    EXPECT_TRUE(same_bits(p.V, before.V));
  }
}

template <class S>
void is_a_factor() {
  each_call<S>([](const Problem<S>& p, const Request& request) {
    const Stored<S> R = call(p, request).R;
    for (index_t j = 0; j < R.cols(); ++j)
      for (index_t i = 0; i < R.rows(); ++i) {
        const bool empty = request.uplo == Uplo::upper ? i > j : i < j;
        ASSERT_TRUE(i == j ? R(i, j) > 0 : empty ? R(i, j) == 0 : std::isfinite(R(i, j))) << i << ", " << j;
      }
  });
}
TEST(Modify, GivesAPositiveDiagonalAndAnEmptyTriangle) {
  is_a_factor<double>();
  is_a_factor<float>();
}

TEST(Modify, LowerIsTheTransposeOfUpper) {
  each_call<double>([](const Problem<double>& p, Request request) {
    const Stored<double> R = call(p, request).R;
    Problem<double> transposed = p;
    transposed.R.transposeInPlace();
    request.uplo = request.uplo == Uplo::upper ? Uplo::lower : Uplo::upper;
    EXPECT_TRUE(same_bits(R, Stored<double>(call(transposed, request).R.transpose())));
  });
}

TEST(Modify, RotationsAgreeBitForBit) {
  for (const Sign sign : signs)
    for (const Precision precision : precisions)
      for (const index_t n : {1, 2, 9, 33, 64, 65, 131})
        for (const index_t k : {1, 4, 17}) {
          const Problem<double> p = random_problem(sign, n, k);
          const Stored<double> R = call(p, by(ways[0], precision)).R;
          EXPECT_TRUE(same_bits(call(p, by(ways[1], precision)).R, R)) << "loop orders, n " << n << ", k " << k;
          EXPECT_TRUE(same_bits(call(p, by(ways[3], precision)).R, R)) << "panel, n " << n << ", k " << k;
        }
}

/// Checks that the type in which numbers are stored does not change what is computed from them.
TEST(Modify, StorageOnlyRoundsTheResult) {
  for (const Sign sign : signs)
    for (const Precision precision : precisions)
      for (const Way& way : ways) {
        const Problem<float> p = as<float>(random_problem(sign, 70, 3));
        const Stored<double> from_double = call(Problem<double>{sign, p.R.cast<double>(), p.V.cast<double>()},
                                                by(way, precision)).R;
        EXPECT_TRUE(same_bits(call(p, by(way, precision)).R, Stored<float>(from_double.cast<float>()))) << way.name;
      }
}

TEST(Modify, NothingToAddReturnsTheFactor) {
  for (const Uplo uplo : uplos)
    for (const Way& way : ways) {
      Request request = by(way);
      request.uplo = uplo;
      const Problem<double> p = random_problem(Sign::update, 70, 3);
      const Problem<double> nothing{Sign::downdate, p.R, Stored<double>(70, 0)};
      Stored<double> expected = p.R;
      if (uplo == Uplo::lower) expected.transposeInPlace();
      EXPECT_TRUE(same_bits(call(with_uplo(nothing, uplo), request).R, expected)) << way.name;
      EXPECT_TRUE(same_bits(call(with_uplo(Problem<double>{p.sign, p.R, 0 * p.V}, uplo), request).R, expected));
    }
}

/// ||R2'R2 - R'R||_1 / ((n + k) eps (||R1'R1||_1 + ||VV'||_1)) < 2 * 30, R1 the updated, R2 the downdated factor.
TEST(Modify, DowndateUndoesUpdate) {
  const Problem<double> p = random_problem(Sign::update, 131, 5);
  for (const Precision precision : precisions)
    for (const Way& way : ways) {
      const Stored<double> R1 = call(p, by(way, precision)).R;
      const Result<double> back = call(Problem<double>{Sign::downdate, R1, p.V}, by(way, precision));
      ASSERT_EQ(back.outcome.pivot, -1);
      const Matrix V = p.V.cast<real>();
      const real scale = norm_1(gram(R1)) + norm_1(product(V, V.transpose()));
      EXPECT_LT(norm_1(gram(back.R) - gram(p.R)) / ((131 + 5) * real(epsilon(precision)) * scale), 60) << way.name;
    }
}

TEST(Modify, OrderOfColumnsOfVIsIrrelevant) {
  for (const Sign sign : signs)
    for (const Precision precision : precisions)
      for (const Way& way : ways) {
        const Problem<double> p = random_problem(sign, 70, 9);
        const Problem<double> reversed{sign, p.R, p.V.rowwise().reverse()};
        EXPECT_LT(Residual(p).ratio(call(reversed, by(way, precision)).R, epsilon(precision)), 30) << way.name;
      }
}

TEST(Modify, HonoursAnInterrupt) {
  struct Interrupt {};
  for (const Sign sign : signs) {
    const Problem<double> p = random_problem(sign, 200, 2);
    for (const Precision precision : precisions)
      for (const Way& way : ways) {
        int calls = 0;
        const auto third = [&](double) {
          if (++calls == 3) throw Interrupt();
        };
        EXPECT_THROW(call(p, by(way, precision), third), Interrupt) << way.name;
        EXPECT_EQ(calls, 3) << way.name;
      }
  }
}

TEST(Modify, TellsHowMuchIsDone) {
  const Problem<double> p = random_problem(Sign::update, 300, 2);
  for (const Way& way : ways) {
    std::vector<double> shares;
    call(p, by(way), [&](double done) { shares.push_back(done); });
    ASSERT_GE(shares.size(), 3u) << way.name;
    EXPECT_EQ(shares.front(), 0) << way.name;
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end())) << way.name;
    EXPECT_GT(shares.back(), 0.5) << way.name;
    EXPECT_LE(shares.back(), 1) << way.name;
  }
}

TEST(Modify, ReportsWhatItDid) {
  for (const Way& way : ways) {
    const Outcome outcome = call(random_problem(Sign::update, 70, 3), by(way, Precision::single)).outcome;
    EXPECT_EQ(outcome.pivot, -1);
    EXPECT_EQ(outcome.backend, Backend::cpu);
    EXPECT_EQ(outcome.method, way.method);
    EXPECT_EQ(outcome.precision, Precision::single);
    EXPECT_EQ(outcome.device, "");
    EXPECT_FALSE(outcome.pinned);
    EXPECT_GT(outcome.seconds, 0);
    EXPECT_EQ(outcome.threads > 0, way.method == Method::blocked);
    EXPECT_EQ(outcome.instructions, way.method == Method::blocked ? cpu::resolve(way.instructions)
                                                                  : Instructions::automatic);
    EXPECT_EQ(outcome.panels > 0, way.method == Method::panel);
    EXPECT_EQ(outcome.device_bytes > 0, way.method == Method::panel);
  }
}

TEST(Modify, RefusesInputItCannotUse) {
  const Problem<double> good = random_problem(Sign::update, 40, 3);
  Problem<double> not_finite = good, bad_diagonal = random_problem(Sign::downdate, 40, 3);
  not_finite.V(5, 2) = std::nan("");
  bad_diagonal.R(7, 7) = 0;
  Problem<double> both = bad_diagonal, late = bad_diagonal, failing = random_problem(Sign::downdate, 40, 3);
  both.R(3, 30) = std::numeric_limits<double>::infinity();
  late.R(39, 39) = std::nan("");
  failing.V *= 10;
  failing.R(39, 39) = 0;
  const auto code = [](const Problem<double>& p, const Way& way, bool before_computing) {
    const auto error = error_of([&] {
      call(p, by(way), [&](double) { EXPECT_FALSE(before_computing) << "already computing"; });
    });
    return error ? name(error->code()) : "none";
  };
  for (const Way& way : ways) {
    const bool first = way.method != Method::blocked;  // the blocked method finds the entry on the way
    EXPECT_STREQ(code(not_finite, way, true), "not_finite");
    EXPECT_STREQ(code(bad_diagonal, way, first), "bad_diagonal");
    EXPECT_STREQ(code(both, way, first), "not_finite");
    EXPECT_STREQ(code(late, way, first), "not_finite");
    EXPECT_STREQ(code(failing, way, first), "bad_diagonal") << "though the downdate fails before";
  }
}

}  // namespace
}  // namespace gpucholmod::test
