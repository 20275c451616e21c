#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/held_factor.h"
#include "call.h"

/// Insertions, removals and moves of rows and columns, with right-hand sides: the same checks for a factor in any
/// memory, against the matrix itself in long double.
namespace gpucholmod::test {

/// A function that keeps the factor R, with room for `capacity` rows and columns.
using Keep = std::function<std::unique_ptr<HeldFactor>(const Stored<double>& R, Precision precision, index_t capacity)>;

inline Matrix picked(const Matrix& A, const std::vector<index_t>& order) {
  Matrix out(order.size(), order.size());
  for (std::size_t j = 0; j < order.size(); ++j)
    for (std::size_t i = 0; i < order.size(); ++i) out(i, j) = A(order[i], order[j]);
  return out;
}
inline Matrix picked_rows(const Matrix& B, const std::vector<index_t>& order) {
  Matrix out(order.size(), B.cols());
  for (std::size_t i = 0; i < order.size(); ++i) out.row(i) = B.row(order[i]);
  return out;
}

inline std::vector<index_t> draw(index_t k, index_t n, Random& random) {
  std::set<index_t> drawn;
  while (index_t(drawn.size()) < k) drawn.insert(index_t(random.uniform() * n));
  return {drawn.begin(), drawn.end()};
}
inline std::vector<index_t> without(const std::vector<index_t>& gone, index_t n) {
  std::vector<index_t> keep;
  for (index_t j = 0; j < n; ++j)
    if (!std::count(gone.begin(), gone.end(), j)) keep.push_back(j);
  return keep;
}
inline std::vector<index_t> with_moved(index_t n, index_t from, index_t to) {
  std::vector<index_t> order = without({from}, n);
  order.insert(order.begin() + to, from);
  return order;
}

/// Returns A with p new rows and columns from `at` on, whose numbers are doubles. `last`: the last new diagonal entry,
/// as a multiple of the mean diagonal entry of A. The result is positive definite with `last` = 3, and not with -1.
inline Matrix enlarged(const Matrix& A, index_t at, index_t p, double last, Random& random) {
  const index_t n = A.rows();
  Matrix out = Matrix::Zero(n + p, n + p);
  std::vector<index_t> fresh;
  for (index_t q = at; q < at + p; ++q) fresh.push_back(q);
  const std::vector<index_t> places = without(fresh, n + p);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) out(places[i], places[j]) = A(i, j);
  const real size = n > 0 ? A.trace() / real(n) : 1;
  for (const index_t q : fresh)
    for (index_t i = 0; i < n + p; ++i)
      out(i, q) = out(q, i) = double(i == q ? 3 * size : size * random.normal() / (8 * std::sqrt(real(n + p))));
  out(at + p - 1, at + p - 1) = double(last * size);
  return out;
}

inline Stored<double> contents(const HeldFactor& f) {
  Stored<double> out(f.order(), f.order());
  f.download(Uplo::upper, out.data());
  return out;
}

/// Holds a factor of A, a right-hand side B with its z, and the `rest` that a change leaves over of B.
struct HeldSystem {
  std::unique_ptr<HeldFactor> f;
  Matrix A, B;
  Stored<double> z, rest;
  real sum_of_squares = 0;  ///< sum of squares of z and of all that has been left over

  Task task(const Stored<double>& Y, index_t order) {
    Task how;
    how.precision = f->precision();
    how.instructions = Instructions::plain;
    how.threads = 1;
    out_.resize(order, B.cols());
    rest.resize(B.cols(), std::max<index_t>(1, Y.cols()));
    how.right = sides_in(z, Y, out_, rest);
    return how;
  }

  /// Changes the factor by call(task, made, begun), and checks the result. Row i of the new A was row order[i] of
  /// `whole`, whose right-hand sides are `sides`.
  template <class F>
  void change(const Matrix& whole, const Matrix& sides, const std::vector<index_t>& order, const Stored<double>& Y,
              index_t left, bool shrinks, bool in_place, F&& call) {
    const Stored<double> before = contents(*f);
    Task how = task(Y, index_t(order.size()));
    rest.resize(B.cols(), left);
    how.right = sides_in(z, Y, out_, rest);
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    call(how, in_place ? nullptr : &made, begun);
    if (!in_place) {
      EXPECT_FALSE(begun);
      EXPECT_TRUE(same_bits(contents(*f), before));
      ASSERT_TRUE(made);
      f = std::move(made);
    }
    A = picked(whole, order);
    B = picked_rows(sides, order);
    const real eps = f->precision() == Precision::single ? real(std::numeric_limits<float>::epsilon())
                                                         : real(std::numeric_limits<double>::epsilon());
    const Stored<double> R = contents(*f);
    ASSERT_EQ(R.cols(), A.cols());
    if (A.cols() == 0) return;
    ASSERT_TRUE(R.allFinite());
    EXPECT_GT(R.diagonal().minCoeff(), 0);
    EXPECT_LT(double(norm_1(gram(R) - A) / (eps * norm_1(A))), 40);
    const Matrix X = R.cast<real>(), Z = out_.cast<real>();
    EXPECT_LT(
        double(norm_1(product(X.transpose(), Z) - B) / (eps * norm_1(product(X.transpose().cwiseAbs(), Z.cwiseAbs())))),
        80);
    const real before_all = z.cast<real>().squaredNorm(), now = Z.squaredNorm(), over = rest.cast<real>().squaredNorm();
    EXPECT_NEAR(double(shrinks ? now + over : now - over), double(before_all),
                1000 * double(eps) * double(before_all + now + over));
  }
  void accept() { z = out_; }

 private:
  Stored<double> out_;
};

inline HeldSystem held_system(const Keep& keep, index_t n, Precision precision, index_t capacity, Random& random) {
  HeldSystem s;
  const Stored<double> R = well_conditioned(n, random).cast<double>();
  s.f = keep(R, precision, capacity);
  const Stored<double> held = contents(*s.f);
  s.A = gram(held);
  s.z = random.normal(n, 2).cast<double>();
  s.B = product(held.cast<real>().transpose(), s.z.cast<real>());
  return s;
}

const Poll no_reshape_poll = [](double) {};

/// Checks a removal, an insertion and a move, at orders that end within a strip of a factor on a GPU or with it.
inline void expect_reshapes(const Keep& keep, const std::vector<index_t>& orders, const std::vector<index_t>& counts) {
  Random random(21);
  for (const Precision precision : precisions)
    for (const index_t n : orders)
      for (const index_t k : counts)
        for (const bool in_place : {false, true}) {
          if (k > n) continue;
          SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + (in_place ? " in place" : "") +
                       (precision == Precision::single ? ", single" : ""));
          HeldSystem s = held_system(keep, n, precision, in_place ? n + 3 : 0, random);
          const Matrix A = s.A, B = s.B;
          const std::vector<index_t> gone = draw(k, n, random), left = without(gone, n);
          s.change(A, B, left, Stored<double>(2, 0), k, true, in_place,
                   [&](const Task& how, auto* made, std::atomic<bool>& begun) {
                     const double taken = s.f->remove(gone, how, made, no_reshape_poll, begun);
                     real sum = 0;
                     for (const index_t j : gone) sum += A(j, j);
                     EXPECT_NEAR(taken, double(sum), 1e-4 * double(sum));
                   });
          s.accept();
          // The removed rows are inserted again, all in one place.
          const index_t m = n - k, at = random.uniform() < 0.3 ? m : index_t(random.uniform() * (m + 1));
          std::vector<index_t> order(left.begin(), left.begin() + at);
          order.insert(order.end(), gone.begin(), gone.end());
          order.insert(order.end(), left.begin() + at, left.end());
          Stored<double> X = picked(A, order).middleCols(at, k).cast<double>();
          for (index_t q = 0; q < k; ++q)
            X.col(q).segment(at, k).tail(k - q - 1).setConstant(std::numeric_limits<double>::quiet_NaN());
          const Stored<double> Y = picked_rows(B, gone).transpose().cast<double>();
          s.change(A, B, order, Y, k, false, in_place, [&](const Task& how, auto* made, std::atomic<bool>& begun) {
            EXPECT_EQ(s.f->insert(at, X.data(), k, how, made, no_reshape_poll, begun), -1);
          });
          s.accept();
          if (n < 2) continue;
          const index_t from = index_t(random.uniform() * n), to = index_t(random.uniform() * n);
          const Matrix now = s.A, sides = s.B;
          s.change(now, sides, with_moved(n, from, to), Stored<double>(2, 0), 0, true, in_place,
                   [&](const Task& how, auto* made, std::atomic<bool>& begun) {
                     s.f->shift(from, to, how, made, no_reshape_poll, begun);
                   });
        }
}

/// Checks insertions within the capacity and beyond. Numbers from before the factor shrank must not appear again.
inline void expect_growth(const Keep& keep, index_t n, index_t step) {
  Random random(22);
  const Stored<double> whole = well_conditioned(n, random).cast<double>();
  const Matrix A = gram(whole);
  const auto f = keep(whole.topLeftCorner(1, 1), Precision::double_, n / 2);
  Task how;
  how.instructions = Instructions::plain;
  how.threads = 1;
  std::atomic<bool> begun{false};
  for (int round = 0; round < 2; ++round) {
    for (index_t m = f->order(); m < n; m = f->order()) {
      const index_t p = std::min(step, n - m);
      const Stored<double> X = A.block(0, m, m + p, p).cast<double>();
      const index_t capacity = f->capacity();
      ASSERT_EQ(f->insert(m, X.data(), p, how, nullptr, no_reshape_poll, begun), -1);
      EXPECT_EQ(f->capacity(), m + p <= capacity ? capacity : std::max(m + p, capacity + capacity / 2));
    }
    EXPECT_LT(double(norm_1(gram(contents(*f)) - A) / (std::numeric_limits<double>::epsilon() * norm_1(A))), 40);
    std::vector<index_t> gone;
    for (index_t j = n / 5; j < n; ++j) gone.push_back(j);
    f->remove(gone, how, nullptr, no_reshape_poll, begun);
    const Stored<double> V = Stored<double>::Constant(f->order(), 1, 0.5);
    Task update = how;
    update.n = f->order();
    update.k = 1;
    update.algorithm = Algorithm::unscaled;
    f->modify(V.data(), update, nullptr, no_reshape_poll, begun);
    update.removed = 1;
    EXPECT_EQ(f->modify(V.data(), update, nullptr, no_reshape_poll, begun).pivot, -1);
  }
}

/// Checks that an insertion that fails returns the pivot, in the new order, and changes nothing.
inline void expect_pivots(const Keep& keep) {
  Random random(23);
  Task how;
  how.instructions = Instructions::plain;
  how.threads = 1;
  const index_t n = 300;
  for (const index_t p : {3, 40})
    for (const bool in_place : {false, true}) {
      const Stored<double> R = well_conditioned(n, random).cast<double>();
      const Matrix A = gram(R);
      const auto f = keep(R, Precision::double_, n + p);
      const Stored<double> before = contents(*f);
      const auto pivot = [&](index_t at, const Matrix& X) {
        std::atomic<bool> begun{false};
        std::unique_ptr<HeldFactor> made;
        const Stored<double> columns = X.cast<double>();
        const index_t found = f->insert(at, columns.data(), p, how, in_place ? nullptr : &made, no_reshape_poll, begun);
        EXPECT_FALSE(begun);
        EXPECT_FALSE(made);
        EXPECT_TRUE(same_bits(contents(*f), before));
        return found;
      };
      for (const index_t at : {index_t(0), index_t(70), n})
        for (const index_t bad : {index_t(0), p - 1}) {
          Matrix X = Matrix::Zero(n + p, p);
          for (index_t q = 0; q < p; ++q) X(at + q, q) = q == bad ? -1 : 1;
          EXPECT_EQ(pivot(at, X), at + bad);
        }
      // A copy of row 200 but for its diagonal entry: row 200, which is behind it, fails.
      Matrix X = Matrix::Zero(n + p, p);
      for (index_t q = 1; q < p; ++q) X(40 + q, q) = 1;
      X.col(0).head(40) = A.col(200).head(40);
      X(40, 0) = A(200, 200) * (1 - real(1e-10));
      X.col(0).tail(n - 40) = A.col(200).tail(n - 40);
      EXPECT_EQ(pivot(40, X), 200 + p);
    }
}

}  // namespace gpucholmod::test
