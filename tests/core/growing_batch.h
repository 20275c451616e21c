#pragma once

#include "batch_call.h"
#include "modify/batch_sides.h"
#include "reshape_call.h"

/// A batch whose members gain and lose rows and columns, and the matrices themselves in long double.
namespace gpucholmod::test {

/// A function that keeps b upper factors R (n x n x b) as a batch, with the given room for rows and columns.
using KeepGrowing = std::function<std::unique_ptr<HeldBatch>(const double* R, index_t n, index_t b,
                                                             Precision precision, const BatchRoom& room)>;

/// Holds a batch, the matrix of each member, and right-hand sides z with R'z = b, which every change modifies along.
/// Checks each change against the state before it.
class GrowingBatch {
 public:
  static constexpr index_t sides = 2;

  GrowingBatch(const KeepGrowing& keep, Precision precision, index_t n, index_t b, index_t capacity, Random& random) {
    std::vector<double> all;
    for (index_t m = 0; m < b; ++m) {
      Doubles R = n > 0 ? Doubles(well_conditioned(n, random).cast<double>()) : Doubles(0, 0);
      if (precision == Precision::single) R = R.cast<float>().cast<double>();
      all.insert(all.end(), R.data(), R.data() + n * n);
    }
    hold(keep(all.data(), n, b, precision, {capacity, {}}), random);
  }
  /// Takes over a batch, computes the matrices of its members, and draws right-hand sides.
  void hold(std::unique_ptr<HeldBatch> batch, Random& random) {
    held = std::move(batch);
    A.clear();
    const auto all = numbers(*held);
    for (index_t m = 0; m < held->count(); ++m) A.push_back(gram(member(all, held->order(), m)));
    z = normal(held->order() * sides * held->count(), random);
    rss.assign(sides * held->count(), 1e4);
  }

  /// Inserts p rows and columns into every member's matrix. The last one makes the matrix indefinite if `fails` is true
  /// for the member. at: empty, one place for all members, or one for each.
  Pivots insert(index_t p, const std::vector<index_t>& at, const std::vector<bool>& fails, bool in_place,
                bool all_or_none, Random& random) {
    const index_t n = held->order(), b = held->count(), ld = n + p;
    const auto before = numbers(*held);
    BatchInsertion what;
    what.p = p;
    what.at = at;
    what.all_or_none = all_or_none;
    std::vector<double> X(ld * p * b, NAN);
    std::vector<Matrix> after(b);
    Pivots expected(b, -1);
    for (index_t m = 0; m < b; ++m) {
      const index_t own = A[m].rows(), place = what.place(m, own);
      after[m] = enlarged(A[m], place, p, !fails.empty() && fails[m] ? 1e-3 : 3, random);
      expected[m] = first_indefinite(after[m]);
      for (index_t q = 0; q < p; ++q)
        for (index_t i = 0; i < own + p; ++i)
          if (i < place || i >= place + p || i - place <= q) X[i + (q + m * p) * ld] = double(after[m](i, place + q));
    }
    what.X = X.data();
    std::vector<double> fresh = normal(p * sides * b, random);
    for (index_t m = 0; m < b; ++m)
      for (index_t i = 0; i < p * sides; ++i)
        fresh[i + m * p * sides] *= std::sqrt(double(after[m](what.place(m, A[m].rows()), what.place(m, A[m].rows()))));
    std::vector<Matrix> B = right_sides();
    for (index_t m = 0; m < b; ++m)
      if (expected[m] < 0) B[m] = with_rows(B[m], what.place(m, A[m].rows()), part(fresh, p, m));
    Carried carried(*this, ld);
    const ReshapedSides along(carried.given(fresh.data()), *held, what);
    std::unique_ptr<HeldBatch> made;
    std::atomic<bool> begun{false};
    Pivots pivots;
    held->insert(what, in_place ? nullptr : &made, pivots, begun);
    EXPECT_EQ(pivots, expected);
    const bool any = std::any_of(expected.begin(), expected.end(), [](index_t pivot) { return pivot >= 0; });
    if (any && all_or_none) {
      EXPECT_FALSE(begun);
      EXPECT_EQ(made, nullptr);
      EXPECT_TRUE(same(numbers(*held), before));
      return pivots;
    }
    if (!in_place) {
      EXPECT_FALSE(begun);
      EXPECT_TRUE(same(numbers(*held), before));
      held = std::move(made);
    }
    for (index_t m = 0; m < b; ++m)
      if (pivots[m] < 0) A[m] = after[m];
    along.settle(pivots);
    take(carried, B);
    return pivots;
  }

  void remove(BatchRemoval what, bool in_place) {
    const auto before = numbers(*held);
    std::vector<Matrix> B = right_sides();
    for (index_t m = 0; m < held->count(); ++m)
      B[m] = picked_rows(B[m], without({what.of(m), what.of(m) + what.p}, A[m].rows()));
    Carried carried(*this, held->order() - what.p);
    const ReshapedSides along(carried.given(nullptr), *held, what);
    std::unique_ptr<HeldBatch> made;
    std::atomic<bool> begun{false};
    held->remove(what, in_place ? nullptr : &made, begun);
    if (!in_place) {
      EXPECT_FALSE(begun);
      EXPECT_TRUE(same(numbers(*held), before));
      held = std::move(made);
    }
    for (index_t m = 0; m < held->count(); ++m) {
      const index_t n = A[m].rows();
      A[m] = picked(A[m], without({what.of(m), what.of(m) + what.p}, n));
    }
    along.settle({});
    take(carried, B);
  }

  void shift(BatchShift what, bool in_place) {
    const auto before = numbers(*held);
    std::vector<Matrix> B = right_sides();
    const auto moved = [&](index_t m) { return with_moved(A[m].rows(), what.from_of(m), what.to_of(m)); };
    for (index_t m = 0; m < held->count(); ++m)
      if (!what.stays(m)) B[m] = picked_rows(B[m], moved(m));
    Carried carried(*this, held->order());
    const ReshapedSides along(carried.given(nullptr), *held, what);
    std::unique_ptr<HeldBatch> made;
    std::atomic<bool> begun{false};
    held->shift(what, in_place ? nullptr : &made, begun);
    if (!in_place) {
      EXPECT_FALSE(begun);
      EXPECT_TRUE(same(numbers(*held), before));
      held = std::move(made);
    }
    for (index_t m = 0; m < held->count(); ++m)
      if (!what.stays(m)) A[m] = picked(A[m], moved(m));
    along.settle({});
    take(carried, B);
  }

  /// Replaces A by scale A + V V' with k random columns V, and draws new right-hand sides.
  void update(index_t k, double scale, Random& random) {
    const index_t n = held->order(), b = held->count();
    std::vector<double> V(n * k * b);
    for (index_t m = 0; m < b; ++m)
      for (index_t q = 0; q < k; ++q)
        for (index_t i = 0; i < A[m].rows(); ++i) V[i + (q + m * k) * n] = double(random.normal());
    BatchTask task;
    task.k = k;
    task.scale = scale == 1 ? nullptr : &scale;
    std::atomic<bool> begun{false};
    Pivots pivots;
    held->modify(V.data(), task, nullptr, pivots, [](double) {}, begun);
    for (index_t m = 0; m < b; ++m) {
      const Matrix own = Eigen::Map<const Doubles>(V.data() + m * n * k, n, k).topRows(A[m].rows()).cast<real>();
      A[m] = real(scale) * A[m] + own * own.transpose();
    }
    z = normal(n * sides * b, random);
    rss.assign(sides * b, 1e4);
  }

  /// Returns the largest ||R'R - A||_1 / (eps n ||A||_1) of a member. Expects the identity behind members of smaller
  /// order, and each member by itself to have the numbers that it has in the batch.
  double units() const {
    const index_t n = held->order(), b = held->count();
    const double eps = epsilon(held->precision());
    const auto all = numbers(*held);
    double worst = 0;
    for (index_t m = 0; m < b; ++m) {
      const index_t own = A[m].rows();
      EXPECT_EQ(held->orders()[m], own);
      const Doubles R = member(all, n, m);
      if (own == 0) continue;
      EXPECT_TRUE(R.bottomRightCorner(n - own, n - own) == Doubles::Identity(n - own, n - own));
      EXPECT_TRUE(R.topRightCorner(own, n - own) == Doubles::Zero(own, n - own));
      const Doubles top = R.topLeftCorner(own, own);
      EXPECT_TRUE((top.diagonal().array() > 0).all());
      Doubles alone(own, own);
      held->download(m, Uplo::upper, alone.data());
      EXPECT_TRUE(alone == top);
      worst = std::max(worst, double(norm_1(gram(top) - A[m]) / (real(eps) * real(own) * norm_1(A[m]))));
    }
    return worst;
  }

  std::unique_ptr<HeldBatch> held;
  std::vector<Matrix> A;
  std::vector<double> z, rss;  ///< right-hand sides (n x sides x b) and residual sums of squares (sides x b)

 private:
  /// Holds the right-hand sides that a change makes.
  struct Carried {
    const GrowingBatch& of;
    index_t rows;
    std::vector<double> z, rss;
    std::vector<real> totals;  ///< sums of squares before the change: z'z + rss

    Carried(const GrowingBatch& of, index_t rows)
        : of(of), rows(rows), z(rows * sides * of.held->count(), NAN), rss(of.rss.size(), NAN) {
      for (index_t m = 0; m < of.held->count(); ++m)
        for (index_t s = 0; s < sides; ++s)
          totals.push_back(real(of.rss[s + m * sides]) +
                           part(of.z, of.held->order(), m).col(s).head(of.held->orders()[m]).squaredNorm());
    }
    GivenBatchSides given(const double* fresh) {
      return {sides, of.z.data(), fresh, of.rss.data(), z.data(), rss.data()};
    }
  };

  static std::vector<double> normal(index_t count, Random& random) {
    const Doubles all = random.normal(count, 1).cast<float>().cast<double>();
    return {all.data(), all.data() + count};
  }
  static Matrix part(const std::vector<double>& all, index_t rows, index_t m) {
    return Eigen::Map<const Doubles>(all.data() + m * rows * sides, rows, sides).cast<real>();
  }
  static Matrix with_rows(const Matrix& B, index_t at, const Matrix& fresh) {
    Matrix all(B.rows() + fresh.rows(), B.cols());
    all << B.topRows(at), fresh, B.bottomRows(B.rows() - at);
    return all;
  }
  Matrix factor_of(const std::vector<double>& all, index_t m) const {
    const index_t own = held->orders()[m];
    return member(all, held->order(), m).topLeftCorner(own, own).template cast<real>();
  }
  /// Returns R'z of each member.
  std::vector<Matrix> right_sides() const {
    const auto all = numbers(*held);
    std::vector<Matrix> B;
    for (index_t m = 0; m < held->count(); ++m)
      B.push_back(product(factor_of(all, m).transpose(), part(z, held->order(), m).topRows(held->orders()[m])));
    return B;
  }
  /// Takes over the right-hand sides of a change. Expects R'z = B, and z'z + rss to be the same as before the change.
  void take(const Carried& carried, const std::vector<Matrix>& B) {
    const index_t n = held->order(), rows = carried.rows;
    const real eps = epsilon(held->precision());
    const auto all = numbers(*held);
    z.assign(n * sides * held->count(), 0);
    for (index_t m = 0; m < held->count(); ++m) {
      const index_t own = B[m].rows();
      const Matrix made = part(carried.z, rows, m), R = factor_of(all, m), now = made.topRows(own);
      ASSERT_EQ(R.rows(), own);
      EXPECT_TRUE((made.bottomRows(rows - own).array() == 0).all());
      for (index_t at = m * sides; at < (m + 1) * sides; ++at) {
        std::copy_n(carried.z.data() + at * rows, n, z.data() + at * n);
        EXPECT_NEAR(double(now.col(at % sides).squaredNorm() + real(carried.rss[at])), double(carried.totals[at]),
                    1000 * double(eps * carried.totals[at]));
      }
      if (own == 0) continue;
      const real size = norm_1(product(R.transpose().cwiseAbs(), now.cwiseAbs()));
      EXPECT_LT(double(norm_1(product(R.transpose(), now) - B[m]) / (eps * size)), 80) << m;
    }
    rss = carried.rss;
  }
};

}  // namespace gpucholmod::test
