#pragma once

#include "growing_batch.h"

/// Checks of batches whose members gain and lose rows and columns, for batches in any memory.
namespace gpucholmod::test {

/// Checks sequences of insertions at the end and between rows, removals, and updates by V, in place and into a new
/// batch in turn.
inline void grow_and_shrink(const KeepGrowing& keep, Precision precision, const std::vector<index_t>& orders,
                            double most) {
  for (const index_t n : orders) {
    Random random(unsigned(7 + n));
    GrowingBatch batch(keep, precision, n, 19, n + 3, random);
    for (int step = 0; step < 14; ++step) {
      const index_t now = batch.held->order(), p = 1 + step % 3;
      const bool in_place = step % 4 != 1;
      std::vector<index_t> own;
      for (index_t m = 0; m < 19; ++m) own.push_back(index_t(random.uniform() * (now + 1)));
      if (step % 3 == 0) batch.insert(p, {}, {}, in_place, true, random);
      else if (step % 5 == 1) batch.insert(p, {now / 2}, {}, in_place, true, random);
      else if (step % 5 == 2) batch.insert(p, own, {}, in_place, true, random);
      else if (step % 5 == 3) batch.update(2, 0.9, random);
      else {
        BatchRemoval what{std::min<index_t>(p, now), {}};
        for (index_t m = 0; m < (step % 2 ? 1 : 19); ++m)
          for (const index_t gone : draw(what.p, now, random)) what.gone.push_back(gone);
        batch.remove(what, in_place);
      }
      EXPECT_LT(batch.units(), most) << "n = " << n << ", step " << step;
    }
  }
}

/// Checks moves of rows up and down, the same for all members or one for each, in place and into a new batch in turn.
/// Some rows stay.
inline void move_rows(const KeepGrowing& keep, Precision precision, const std::vector<index_t>& orders, double most) {
  for (const index_t n : orders) {
    Random random(unsigned(17 + n));
    GrowingBatch batch(keep, precision, n, 19, n, random);
    const auto any = [&] { return std::min(n - 1, index_t(random.uniform() * n)); };
    std::vector<BatchShift> moves{{{0}, {n - 1}}, {{n - 1}, {0}}, {{n / 2}, {n / 2}}, {{n / 3}, {n - 1}},
                                  {{n - 1}, {n / 3}}};
    for (int each = 0; each < 4; ++each) {
      BatchShift of_each;
      for (index_t m = 0; m < 19; ++m) {
        of_each.from.push_back(any());
        of_each.to.push_back(each % 2 ? any() : std::max<index_t>(0, of_each.from[m] - 1));
      }
      moves.push_back(of_each);
    }
    moves.push_back({{n / 2}, moves.back().to});
    for (std::size_t step = 0; step < moves.size(); ++step) {
      batch.shift(moves[step], step % 3 != 1);
      EXPECT_LT(batch.units(), most) << "n = " << n << ", step " << step;
    }
  }
}

/// Checks that members that fail stay as they are and all other members change. The orders of members differ from then
/// on.
inline void some_fail(const KeepGrowing& keep, Precision precision, index_t n, double most) {
  Random random(3);
  GrowingBatch batch(keep, precision, n, 19, n, random);
  std::vector<bool> fails(19), others(19);
  for (index_t m = 0; m < 19; ++m) fails[m] = m % 4 == 1, others[m] = m % 5 == 3;
  batch.insert(1, {}, fails, true, true, random);
  batch.insert(2, {}, fails, false, false, random);
  EXPECT_LT(batch.units(), most);
  batch.insert(1, {n / 3}, others, true, false, random);
  EXPECT_LT(batch.units(), most);
  for (int step = 0; step < 3; ++step) batch.update(1 + step, 0.5, random);
  EXPECT_LT(batch.units(), most);
  batch.insert(3, {}, others, true, false, random);
  batch.remove({2, {0, n - 1}}, true);
  EXPECT_LT(batch.units(), most);
  BatchShift to_the_end{{0}, {}};
  for (const index_t own : batch.held->orders()) to_the_end.to.push_back(own - 1);
  batch.shift(to_the_end, true);
  EXPECT_LT(batch.units(), most);
  const auto before = numbers(*batch.held);
  const index_t order = batch.held->order();
  std::vector<double> V(order * 19, 0.0), B(order * 19, 1.0);
  for (index_t m = 0; m < 19; ++m)
    if (batch.A[m].rows() < order) V[(m + 1) * order - 1] = 1;
  BatchTask task;
  task.k = 1;
  Pivots pivots;
  std::atomic<bool> begun{false};
  EXPECT_THROW(batch.held->modify(V.data(), task, nullptr, pivots, [](double) {}, begun), Error);
  EXPECT_FALSE(begun);
  EXPECT_TRUE(same(numbers(*batch.held), before));
  batch.held->solve(TriangularSolve::both, B.data(), 1);
  for (index_t m = 0; m < 19; ++m) {
    const index_t own = batch.A[m].rows();
    const Matrix x = Eigen::Map<const Doubles>(B.data() + m * order, own, 1).cast<real>();
    const Matrix rest = batch.A[m] * x - Matrix::Ones(own, 1);
    EXPECT_LT(double(rest.norm()), 1e5 * epsilon(precision)) << m;
  }
}

/// Checks that a member's numbers have the same bits in a batch of its own, beside members that gain rows at the same
/// place, and beside members that gain rows elsewhere or fail.
inline void grow_alone_and_beside(const KeepGrowing& keep, index_t n) {
  enum class Beside { nobody, alike, others };
  std::vector<double> alone;
  for (const Beside beside : {Beside::nobody, Beside::alike, Beside::others}) {
    const index_t count = beside == Beside::nobody ? 1 : 21, ld = n + 2;
    Random random(5);
    GrowingBatch batch(keep, Precision::double_, n, count, n, random);
    BatchInsertion what;
    what.p = 2;
    what.all_or_none = false;
    std::vector<double> X;
    Pivots expected(count, -1);
    for (index_t m = 0; m < count; ++m) {
      Random same_numbers(6);
      what.at.push_back(beside == Beside::others && m % 3 != 0 ? m % (n + 1) : n / 2);
      for (index_t i = 0; i < ld * 2; ++i) X.push_back(double(same_numbers.normal()) / 100);
      double* const own = X.data() + m * ld * 2 + what.at[m];
      own[0] = own[ld + 1] = 50;
      if (beside != Beside::others || m % 5 != 2) continue;
      own[0] = -1;
      expected[m] = what.at[m];
    }
    what.X = X.data();
    Pivots pivots;
    std::atomic<bool> begun{false};
    batch.held->insert(what, nullptr, pivots, begun);
    EXPECT_EQ(pivots, expected);
    batch.held->remove({1, {1}}, nullptr, begun);
    BatchShift move{{0}, {n / 2}};
    for (index_t m = 1; beside == Beside::others && m < count; ++m) {
      move.from.resize(m + 1, 0);
      move.to.resize(m + 1, m % (n - 1));
    }
    batch.held->shift(move, nullptr, begun);
    batch.held->shift({{n / 2}, {0}}, nullptr, begun);
    std::vector<double> first((n + 1) * (n + 1));
    batch.held->download(0, Uplo::upper, first.data());
    if (beside == Beside::nobody) alone = first;
    EXPECT_TRUE(same(first, alone)) << int(beside);
  }
}

/// Checks factors with numbers near the ends of the range, whose squares vanish or overflow.
inline void reshape_numbers_of_any_size(const KeepGrowing& keep, Precision precision) {
  const int most = precision == Precision::single ? 50 : 490;
  for (const int e : {-most, most}) {
    constexpr index_t n = 12, b = 9;
    Random random(unsigned(100 + e));
    GrowingBatch plain(keep, precision, n, b, n, random);
    std::vector<double> R = numbers(*plain.held);
    for (double& r : R) r = std::ldexp(r, e);
    GrowingBatch batch(keep, precision, 0, b, n, random);
    batch.hold(keep(R.data(), n, b, precision, {n, {}}), random);
    batch.insert(2, {5}, {}, true, true, random);
    EXPECT_LT(batch.units(), 10) << e;
    batch.remove({3, {0, 4, 9}}, true);
    EXPECT_LT(batch.units(), 10) << e;
    batch.remove({1, {0}}, false);
    EXPECT_LT(batch.units(), 10) << e;
    batch.shift({{1}, {8}}, true);
    batch.shift({{9}, {2}}, true);
    EXPECT_LT(batch.units(), 10) << e;
  }
}

/// Checks that a batch all of whose members fail keeps its order and numbers, and can be modified afterwards.
inline void all_fail(const KeepGrowing& keep, Precision precision) {
  for (const index_t b : {1, 9}) {
    Random random(13);
    GrowingBatch batch(keep, precision, 6, b, 6, random);
    const auto before = numbers(*batch.held);
    batch.insert(1, {}, std::vector<bool>(b, true), true, false, random);
    EXPECT_EQ(batch.held->order(), 6);
    EXPECT_TRUE(same(numbers(*batch.held), before));
    batch.update(3, 1, random);
    batch.update(2, 0.5, random);
    EXPECT_LT(batch.units(), 10);
  }
}

/// Checks that the order of a batch without members changes all the same.
inline void reshape_none(const KeepGrowing& keep) {
  const auto held = keep(nullptr, 3, 0, Precision::double_, {});
  BatchInsertion what;
  what.p = 2;
  Pivots pivots;
  std::atomic<bool> begun{false};
  held->insert(what, nullptr, pivots, begun);
  EXPECT_EQ(held->order(), 5);
  held->remove({4, {}}, nullptr, begun);
  held->shift({{0}, {0}}, nullptr, begun);
  EXPECT_EQ(held->order(), 1);
}

/// Checks that the insertion of a row is refused, and changes nothing, if the diagonal entry of the row behind it would
/// lose its digits.
inline void refuse_what_vanishes(const KeepGrowing& keep, Precision precision) {
  const double r = precision == Precision::single ? 0x1p-125 : 0x1p-1021;
  const std::vector<double> R(9, r), X{1, r * (1 - 1e-12)};
  for (const bool in_place : {true, false}) {
    const auto held = keep(R.data(), 1, 9, precision, {2, {}});
    const auto before = numbers(*held);
    BatchInsertion what;
    what.p = 1;
    what.X = X.data();
    what.common_X = true;
    what.at = {0};
    std::unique_ptr<HeldBatch> made;
    Pivots pivots;
    std::atomic<bool> begun{false};
    const auto error = error_of([&] { held->insert(what, in_place ? nullptr : &made, pivots, begun); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(std::get<double>(*field(*error, "member")), 1);
    EXPECT_FALSE(begun);
    EXPECT_TRUE(same(numbers(*held), before));
  }
}

/// Checks that a move is refused, and changes nothing, if two rows of A are nearly multiples of each other: the
/// diagonal entry of the second one would lose its digits.
inline void refuse_what_vanishes_when_moved(const KeepGrowing& keep, Precision precision) {
  const double r = precision == Precision::single ? 0x1p-125 : 0x1p-1021;
  for (const auto& [R, from, to] : {std::tuple{std::vector<double>{r, 0, 1, r}, 0, 1}, {{r, 0, 1, r}, 1, 0}})
    for (const bool in_place : {true, false}) {
      std::vector<double> all;
      for (int m = 0; m < 9; ++m) all.insert(all.end(), R.begin(), R.end());
      const auto held = keep(all.data(), 2, 9, precision, {2, {}});
      const auto before = numbers(*held);
      std::unique_ptr<HeldBatch> made;
      std::atomic<bool> begun{false};
      const BatchShift move{{from}, {to}};
      const auto error = error_of([&] { held->shift(move, in_place ? nullptr : &made, begun); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
      EXPECT_EQ(std::get<double>(*field(*error, "member")), 1);
      EXPECT_FALSE(begun);
      EXPECT_TRUE(same(numbers(*held), before));
    }
}

/// Checks that an insertion of numbers that are not finite or do not fit a float is refused, and changes nothing.
inline void refuse_bad_numbers(const KeepGrowing& keep) {
  Random random(9);
  GrowingBatch batch(keep, Precision::single, 4, 10, 4, random);
  const auto before = numbers(*batch.held);
  for (const double bad : {double(NAN), 1e100}) {
    std::vector<double> X(5 * 10, 0.0);
    for (index_t m = 0; m < 10; ++m) X[4 + m * 5] = 1;
    X[4 + 6 * 5] = bad;
    BatchInsertion what;
    what.p = 1;
    what.X = X.data();
    Pivots pivots;
    std::atomic<bool> begun{false};
    const auto error = error_of([&] { batch.held->insert(what, nullptr, pivots, begun); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), std::isnan(bad) ? ErrorCode::not_finite : ErrorCode::overflow);
    EXPECT_EQ(std::get<double>(*field(*error, "member")), 7);
    EXPECT_FALSE(begun);
    EXPECT_TRUE(same(numbers(*batch.held), before));
  }
}

}  // namespace gpucholmod::test
