#include "process_example.h"

/// Numbers near the ends of the range: a result is right, or an error says why there is none.
namespace gpucholmod::test {
namespace {

constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

/// A use of a held factor, in which every process that holds the factor takes part.
using Use = std::function<void(HeldFactor&)>;
struct Holder {
  const char* name;
  std::function<void(const Doubles& R, Precision precision, const Use& use)> with;
};
const Holder holders[] = {
    {"alone", [](const Doubles& R, Precision precision, const Use& use) {
       use(*cpu::hold(R.data(), R.cols(), Uplo::upper, precision, R.cols() + 3, allocate));
     }},
    {"over processes", [](const Doubles& R, Precision precision, const Use& use) {
       Threads all(2);
       expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
         use(*mpi::deal_out(team, team.rank() == 0 ? R.data() : nullptr, R.cols(), Uplo::upper, precision, allocate));
       }));
     }},
};

/// Returns the diagonal of f, which every process gets.
Doubles seen(const HeldFactor& f) {
  std::vector<double> diagonal(f.order());
  f.diagonal(diagonal.data());
  return Eigen::Map<Doubles>(diagonal.data(), f.order(), 1);
}

/// Runs f.insert() into f itself or into a new factor, and calls `then` with the result. Returns the pivot.
index_t inserted(HeldFactor& f, index_t at, const Doubles& X, bool in_place,
                 const std::function<void(HeldFactor&)>& then = {}) {
  std::atomic<bool> begun{false};
  std::unique_ptr<HeldFactor> made;
  const index_t pivot = f.insert(at, X.data(), X.cols(), task(f.order(), 0, 0, f.precision()),
                                 in_place ? nullptr : &made, no_poll, begun);
  if (pivot >= 0) { EXPECT_FALSE(begun); }
  if (pivot < 0 && then) then(in_place ? f : *made);
  return pivot;
}

/// Checks that insertions into a factor whose largest number is of another size lose no digits.
TEST(RangeEnds, InsertsBesideNumbersOfAnySize) {
  for (const Holder& holder : holders)
    for (const double size : {1.7e308, 1e200, 1e-200, 3e-308})
      for (const bool in_place : {false, true})
        for (const index_t at : {0, 1, 2}) {
          Doubles R(2, 2), X = Doubles::Zero(3, 1);
          R << size, 0, NaN, 1;
          X(at) = 9;
          if (at < 2) X(2) = 1.5;  // beside the second row of R
          else X(1) = 1.5;
          const Doubles x = X;
          holder.with(R, Precision::double_, [&](HeldFactor& f) {
            EXPECT_EQ(inserted(f, at, x, in_place, [&](HeldFactor& now) {
              const Doubles d = seen(now);
              const index_t huge = at == 0 ? 1 : 0, one = at == 2 ? 1 : 2;
              EXPECT_EQ(d(huge), size) << holder.name;
              EXPECT_NEAR(d(at) * d(at), at == 2 ? 9 - 2.25 : 9, 1e-14) << holder.name << ", " << size << ", at " << at;
              EXPECT_NEAR(d(one) * d(one), at == 2 ? 1 : 1 - 0.25, 1e-14)
                  << holder.name << ", " << size << ", at " << at;
            }), -1);
          });
        }
}

/// Checks that a factor that once held a huge number is as good as any other after that number is gone.
TEST(RangeEnds, WhatIsGoneCountsNoLonger) {
  for (const Holder& holder : holders) {
    Doubles R(2, 2);
    R << 1.7e308, 0, NaN, 1;
    holder.with(R, Precision::double_, [&](HeldFactor& f) {
      std::atomic<bool> begun{false};
      f.remove({0}, task(2, 0, 0, f.precision()), nullptr, no_poll, begun);
      const Doubles V = Doubles::Constant(1, 1, 1e-160), X = Doubles::Identity(2, 2).col(1) * 1e-300;
      begun = false;
      EXPECT_EQ(f.modify(V.data(), task(1, 1, 0, f.precision()), nullptr, no_poll, begun).pivot, -1);
      EXPECT_TRUE(begun) << "in place, by numbers as they are";
      EXPECT_EQ(inserted(f, 1, X, true), -1);
      EXPECT_EQ(seen(f)(0), 1);
      EXPECT_NEAR(seen(f)(1) / 1e-150, 1, 1e-14) << holder.name;
    });
  }
}

/// Checks x for which R'^-1 x, or its square, overflows: no matrix with numbers in the range has such a factor.
TEST(RangeEnds, WhatIsInsertedIsTooLargeBesideTheRest) {
  for (const Holder& holder : holders)
    for (const bool in_place : {false, true})
      for (const double x : {1e200, 1e10, 1e307, -1e307}) {
        Doubles R(2, 2), X(3, 1), two(4, 2);
        R << 1e-200, 1e-3, NaN, 1;
        X << x, 1, 1e300;
        two << 0, x, 0, 1, 4, 0, NaN, 1e300;
        holder.with(R, Precision::double_, [&](HeldFactor& f) {
          EXPECT_EQ(inserted(f, 2, X, in_place), 2) << holder.name << ", " << x;
          EXPECT_EQ(inserted(f, 2, two, in_place), 3) << holder.name << ", " << x;
          EXPECT_EQ(seen(f)(0), 1e-200);
          EXPECT_EQ(seen(f)(1), 1);
        });
      }
}

/// Entries off the diagonal of X that no positive definite matrix has, and that overflow when they are subtracted.
TEST(RangeEnds, WhatIsInsertedIsNoCovariance) {
  const Doubles R = Doubles::Identity(1, 1);
  Doubles X(4, 3);
  X << 1, -1e150, 0, 2, 1.7e308, 0, NaN, 1.7e308, 1e308, NaN, NaN, 1.7e308;
  for (const Holder& holder : holders)
    holder.with(R, Precision::double_, [&](HeldFactor& f) {
      EXPECT_EQ(inserted(f, 1, X, true), 2) << holder.name;
      EXPECT_EQ(seen(f)(0), 1);
    });
}

/// A diagonal entry that would vanish in the precision of the factor.
TEST(RangeEnds, WhatIsInsertedVanishes) {
  for (const Holder& holder : holders)
    for (const bool in_place : {false, true})
      for (const index_t at : {0, 2}) {
        const Doubles R = Doubles::Identity(2, 2);
        Doubles X = Doubles::Zero(3, 1);
        X(at) = 1e-100;
        holder.with(R, Precision::single, [&](HeldFactor& f) {
          const auto error = error_of([&] { inserted(f, at, X, in_place); });
          ASSERT_TRUE(error) << holder.name;
          EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
          EXPECT_EQ(number(*error, "index"), double(at + 1));
          EXPECT_NEAR(number(*error, "value") / 1e-50, 1, 1e-14);
          EXPECT_EQ(f.order(), 2);
          EXPECT_EQ(seen(f)(0), 1);
        });
        X(at) = 1e-70;
        holder.with(R, Precision::single, [&](HeldFactor& f) {
          EXPECT_EQ(inserted(f, at, X, in_place, [&](HeldFactor& now) { EXPECT_NEAR(seen(now)(at) / 1e-35, 1, 1e-6); }),
                    -1);
        });
      }
}

/// An insertion by which the last diagonal entry nearly vanishes; in place, R stays as it was.
TEST(RangeEnds, WhatIsBehindAnInsertionVanishes) {
  for (const Holder& holder : holders)
    for (const bool in_place : {false, true}) {
      Doubles R = Doubles::Identity(2, 2), X(3, 1);
      R(1, 1) = 1e-304;
      X << 0, 1, 1e-304 * (1 - 1e-15);
      holder.with(R, Precision::double_, [&](HeldFactor& f) {
        const auto error = error_of([&] { inserted(f, 1, X, in_place); });
        ASSERT_TRUE(error) << holder.name;
        EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
        EXPECT_EQ(number(*error, "index"), 3);
        EXPECT_EQ(seen(f)(1), 1e-304);
        X(2) = 1e-305;
        EXPECT_EQ(inserted(f, 1, X, true), -1);
      });
      X << 0, 1, 1e-304 * (1 - 1e-15);
    }
}

/// Checks shifts that make an entry vanish: the product of the diagonal stays, and most of it may move into one entry.
TEST(RangeEnds, WhatMovesVanishes) {
  const index_t n = 140;
  Doubles left = Doubles::Identity(n, n) * 1e-3, right = Doubles::Identity(3, 3);
  for (index_t j = 1; j < n; ++j) left(j - 1, j) = 1;
  right(2, 2) = right(1, 1) = 1e-200;
  right(0, 2) = right(1, 2) = 1;
  for (const Holder& holder : holders)
    for (const bool in_place : {false, true})
      for (const bool back : {false, true}) {
        const Doubles& R = back ? right : left;
        const index_t m = R.cols();
        holder.with(R, Precision::double_, [&](HeldFactor& f) {
          std::atomic<bool> begun{false};
          std::unique_ptr<HeldFactor> made;
          auto* const to = in_place ? nullptr : &made;
          const auto shift = [&](index_t a, index_t b) {
            f.shift(a, b, task(m, 0, 0, f.precision()), to, no_poll, begun);
          };
          const auto error = error_of([&] { back ? shift(2, 0) : shift(0, m - 1); });
          ASSERT_TRUE(error) << holder.name;
          EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
          EXPECT_EQ(number(*error, "index"), double(back ? 3 : m));
          EXPECT_FALSE(begun);
          EXPECT_TRUE(seen(f) == R.diagonal()) << holder.name;
          if (!back) { EXPECT_FALSE(error_of([&] { shift(0, 90); })) << "what stays within the range is done"; }
        });
      }
}

/// An entry far from the diagonal that a scale above 1 takes beyond the range, for every number of columns of either
/// sign and way of storing.
TEST(RangeEnds, AScaleOverflows) {
  for (const Way& way : ways)
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const index_t n : {2, 70})
        for (const auto& [k, removed] : {std::pair<index_t, index_t>{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {1, 1},
                                         {5, 5}, {2, 1}, {6, 3}, {5, 1}, {9, 5}, {6, 1}, {6, 5}}) {
          Doubles R = Doubles::Identity(n, n), V = Doubles::Zero(n, k), out(n, n);
          V.row(n - 1).setConstant(0.1);
          R(0, n - 1) = 1.5e308;
          if (uplo == Uplo::lower) R.transposeInPlace();
          Request request = by(way);
          request.n = n;
          request.k = k;
          request.removed = removed;
          request.scale = 2;
          request.uplo = uplo;
          const auto error =
              error_of([&] { modify(Place<double>::memory(R.data(), out.data()), V.data(), request, no_poll); });
          ASSERT_TRUE(error) << way.name << ", k " << k << ", removed " << removed;
          EXPECT_EQ(error->code(), ErrorCode::overflow);
          EXPECT_EQ(number(*error, uplo == Uplo::upper ? "col" : "row"), double(n));
        }
}

}  // namespace
}  // namespace gpucholmod::test
