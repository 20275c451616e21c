#include <gpucholmod.hpp>

#include <utility>
#include <vector>

#include "c_call.h"
#include "reshape_call.h"
#include "tests.h"

/// Batches of the C interface whose members get and lose rows and columns, compared with the matrices themselves.
namespace gpucholmod::test {
namespace {

constexpr index_t n = 5, count = 11;

/// Members of order n, and positive definite matrices of order n + 2 from which new columns are taken.
struct Given {
  std::vector<Matrix> A;
  std::vector<double> R;

  Given() {
    Random random(12);
    for (index_t m = 0; m < count; ++m) {
      A.push_back(gram(Stored<double>(well_conditioned(n + 2, random).cast<double>())));
      const Stored<double> first = factor(A[m].topLeftCorner(n, n)).cast<double>();
      R.insert(R.end(), first.data(), first.data() + n * n);
    }
  }
  /// Returns the rows and columns of member m in the order in which p new ones are inserted at `at`.
  static std::vector<index_t> order(index_t at, index_t p) {
    std::vector<index_t> all;
    for (index_t i = 0; i < n; ++i) all.push_back(i);
    for (index_t q = 0; q < p; ++q) all.insert(all.begin() + at + q, n + q);
    return all;
  }
  /// Returns the new columns of all members, n + p x p count.
  std::vector<double> columns(const std::vector<index_t>& at, index_t p) const {
    std::vector<double> X;
    for (index_t m = 0; m < count; ++m) {
      const Stored<double> all = picked(A[m], order(at[m], p)).cast<double>();
      X.insert(X.end(), all.data() + at[m] * (n + p), all.data() + (at[m] + p) * (n + p));
    }
    return X;
  }
};

struct Made {
  gpucholmod_batch* held = nullptr;
  gpucholmod_status status;

  explicit Made(const Given& given, index_t capacity = 0) {
    EXPECT_EQ(gpucholmod_batch_create(matrix(given.R.data(), n, n * count, n), count, nullptr, capacity, nullptr, &held,
                                      &status),
              GPUCHOLMOD_OK);
  }
  Made(const Made&) = delete;
  ~Made() { gpucholmod_batch_destroy(held); }
  std::vector<double> get() const {
    const index_t order = gpucholmod_batch_order(held);
    std::vector<double> all(order * order * count);
    EXPECT_EQ(gpucholmod_batch_get(held, matrix(all.data(), order, order * count, order), nullptr, nullptr),
              GPUCHOLMOD_OK);
    return all;
  }
  double error(index_t m, const Matrix& expected) const {
    const index_t order = gpucholmod_batch_order(held), own = expected.rows();
    const std::vector<double> all = get();
    const Stored<double> R = Eigen::Map<const Stored<double>>(all.data() + m * order * order, order, order);
    return double(norm_1(gram(Stored<double>(R.topLeftCorner(own, own))) - expected) / norm_1(expected));
  }
};

TEST(CBatchReshape, InsertsAtTheEndAndAtPlacesOfTheirOwn) {
  const Given given;
  for (const index_t p : {1, 2})
    for (const bool at_the_end : {true, false}) {
      std::vector<index_t> at(count);
      for (index_t m = 0; m < count; ++m) at[m] = at_the_end ? n : m % (n + 1);
      Made batch(given, 8);
      const std::vector<double> X = given.columns(at, p);
      const gpucholmod_batch_insertion what{p, matrix(X.data(), n + p, p * count, n + p),
                                            at_the_end ? nullptr : at.data(), at_the_end ? 0 : count, 0, nullptr};
      std::vector<ptrdiff_t> pivots(count, -7), orders(count);
      ASSERT_EQ(gpucholmod_batch_insert(batch.held, &what, pivots.data(), &batch.status), GPUCHOLMOD_OK)
          << batch.status.message;
      EXPECT_EQ(pivots, std::vector<ptrdiff_t>(count, 0));
      EXPECT_EQ(gpucholmod_batch_capacity(batch.held), 8);
      EXPECT_EQ(gpucholmod_batch_orders(batch.held, orders.data(), &batch.status), GPUCHOLMOD_OK);
      EXPECT_EQ(orders, std::vector<ptrdiff_t>(count, n + p));
      for (index_t m = 0; m < count; ++m) EXPECT_LT(batch.error(m, picked(given.A[m], Given::order(at[m], p))), 1e-14);
    }
}

TEST(CBatchReshape, DeletesTheSameRowsOrThoseOfEach) {
  const Given given;
  for (const bool same : {true, false}) {
    Made batch(given);
    std::vector<ptrdiff_t> rows;
    for (index_t m = 0; m < (same ? 1 : count); ++m) rows.insert(rows.end(), {m % 2, 2 + m % 3});
    ASSERT_EQ(gpucholmod_batch_delete(batch.held, 2, rows.data(), ptrdiff_t(rows.size()), nullptr, &batch.status),
              GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_batch_order(batch.held), n - 2);
    for (index_t m = 0; m < count; ++m) {
      const index_t of = same ? 0 : m;
      EXPECT_LT(batch.error(m, picked(given.A[m], without({of % 2, 2 + of % 3}, n))), 1e-14);
    }
  }
}

/// Checks a row and column that all members move, or one of each member, and their place afterwards.
TEST(CBatchReshape, MovesTheSameRowOrOneOfEach) {
  const Given given;
  for (const bool same : {true, false}) {
    Made batch(given);
    std::vector<ptrdiff_t> from, to;
    for (index_t m = 0; m < (same ? 1 : count); ++m) from.push_back(m % n), to.push_back((3 * m + 2) % n);
    ASSERT_EQ(gpucholmod_batch_shift(batch.held, from.data(), to.data(), ptrdiff_t(to.size()), nullptr, &batch.status),
              GPUCHOLMOD_OK);
    for (index_t m = 0; m < count; ++m) {
      const index_t of = same ? 0 : m;
      EXPECT_LT(batch.error(m, picked(given.A[m], with_moved(n, from[of], to[of]))), 1e-14);
    }
  }
}

/// Right-hand sides of the members, with a gap between columns, and room for a row that is inserted.
struct Sides {
  Stored<double> z, b;
  std::vector<double> rss = std::vector<double>(2 * count, 50);

  Sides() {
    Random random(4);
    z = random.normal(n + 3, 2 * count).cast<double>();
    b = random.normal(2, 2 * count).cast<double>();
  }
  gpucholmod_right_sides given(index_t rows, index_t p) {
    return {matrix(z.data(), rows, 2 * count, n + 3), matrix(std::as_const(b).data(), p, 2 * count, 2), rss.data()};
  }
  /// Returns R'z of member m.
  Matrix of(const std::vector<double>& R, index_t order, index_t m) const {
    const Matrix own = Eigen::Map<const Stored<double>>(R.data() + m * order * order, order, order).cast<real>();
    return own.transpose() * z.block(0, 2 * m, order, 2).cast<real>();
  }
};

TEST(CBatchReshape, RightHandSidesComeAlong) {
  const Given given;
  Sides sides;
  Made batch(given);
  const Stored<double> before = sides.z;
  const std::vector<double> X = given.columns(std::vector<index_t>(count, 2), 1);
  const gpucholmod_right_sides coming = sides.given(n + 1, 1);
  const ptrdiff_t at = 2;
  const gpucholmod_batch_insertion what{1, matrix(X.data(), n + 1, count, n + 1), &at, 1, 0, &coming};
  ASSERT_EQ(gpucholmod_batch_insert(batch.held, &what, nullptr, &batch.status), GPUCHOLMOD_OK) << batch.status.message;
  EXPECT_EQ(sides.z.bottomRows(2), before.bottomRows(2));
  const Sides old;
  std::vector<Matrix> B;
  for (index_t m = 0; m < count; ++m) {
    B.push_back(sides.of(batch.get(), n + 1, m));
    EXPECT_LT(double((B[m].row(2) - sides.b.block(0, 2 * m, 1, 2).cast<real>()).norm()), 1e-12);
    EXPECT_LT(double((picked_rows(B[m], without({2}, n + 1)) - old.of(given.R, n, m)).norm()), 1e-12);
    EXPECT_NEAR(sides.rss[2 * m + 1],
                50 + before.col(2 * m + 1).head(n).squaredNorm() - sides.z.col(2 * m + 1).head(n + 1).squaredNorm(),
                1e-12);
  }
  const std::vector<double> sums = sides.rss;
  const Stored<double> made = sides.z;
  const ptrdiff_t gone[] = {0, 2};
  const gpucholmod_right_sides going = sides.given(n + 1, 0);
  ASSERT_EQ(gpucholmod_batch_delete(batch.held, 2, gone, 2, &going, &batch.status), GPUCHOLMOD_OK);
  EXPECT_EQ(sides.z.bottomRows(4), made.bottomRows(4));
  for (index_t m = 0; m < count; ++m) {
    EXPECT_LT(double((sides.of(batch.get(), n - 1, m) - picked_rows(B[m], {1, 3, 4, 5})).norm()), 1e-12);
    EXPECT_NEAR(sides.rss[2 * m],
                sums[2 * m] + made.col(2 * m).head(n + 1).squaredNorm() - sides.z.col(2 * m).head(n - 1).squaredNorm(),
                1e-12);
  }
}

TEST(CBatchReshape, RightHandSidesMoveAlong) {
  const Given given;
  Sides sides;
  Made batch(given);
  const std::vector<double> before = batch.get(), rss = sides.rss;
  std::vector<Matrix> B;
  for (index_t m = 0; m < count; ++m) B.push_back(sides.of(before, n, m));
  const gpucholmod_right_sides along = sides.given(n, 0);
  const ptrdiff_t from = 1, to = n - 1;
  ASSERT_EQ(gpucholmod_batch_shift(batch.held, &from, &to, 1, &along, &batch.status), GPUCHOLMOD_OK);
  EXPECT_EQ(sides.rss, rss);
  for (index_t m = 0; m < count; ++m)
    EXPECT_LT(double(norm_1(sides.of(batch.get(), n, m) - picked_rows(B[m], with_moved(n, 1, n - 1)))), 1e-12) << m;
}

TEST(CBatchReshape, RightHandSidesThatDoNotFitAreRefused) {
  const Given given;
  Sides sides;
  Made batch(given);
  const std::vector<double> before = batch.get(), X = given.columns(std::vector<index_t>(count, n), 1);
  const auto refused = [&](const gpucholmod_right_sides& of, const char* argument, int code = GPUCHOLMOD_BAD_ARGUMENT) {
    const Stored<double> z = sides.z;
    const gpucholmod_batch_insertion what{1, matrix(X.data(), n + 1, count, n + 1), nullptr, 0, 0, &of};
    EXPECT_EQ(gpucholmod_batch_insert(batch.held, &what, nullptr, &batch.status), code);
    EXPECT_STREQ(batch.status.argument, argument);
    EXPECT_EQ(batch.get(), before);
    EXPECT_TRUE((z.array() == sides.z.array() || z.array() != z.array()).all());
  };
  refused(sides.given(n, 1), "sides->z");
  refused(sides.given(n + 1, 2), "sides->Y");
  gpucholmod_right_sides odd = sides.given(n + 1, 1);
  odd.z.cols -= 1;
  refused(odd, "sides->z");
  sides.rss[3] = -1;
  refused(sides.given(n + 1, 1), "sides->rss");
  sides.rss[3] = 0;
  sides.b(0, 5) = NAN;
  refused(sides.given(n + 1, 1), "sides->Y", GPUCHOLMOD_NOT_FINITE);
  EXPECT_EQ(batch.status.member, 3);
  sides.z(1, 8) = NAN;
  const gpucholmod_right_sides bad = sides.given(n, 0);
  const ptrdiff_t gone = 0;
  EXPECT_EQ(gpucholmod_batch_delete(batch.held, 1, &gone, 1, &bad, &batch.status), GPUCHOLMOD_NOT_FINITE);
  EXPECT_STREQ(batch.status.argument, "sides->z");
  EXPECT_EQ(batch.status.member, 5);
  EXPECT_EQ(batch.get(), before);
}

/// Checks that member 4 stays as it is: it gets a row that it has already, with less on the diagonal.
TEST(CBatchReshape, MembersThatFailStay) {
  const Given given;
  std::vector<double> X = given.columns(std::vector<index_t>(count, n), 1);
  for (index_t i = 0; i < n; ++i) X[3 * (n + 1) + i] = double(given.A[3](i, 2));
  X[3 * (n + 1) + n] = 0.9 * double(given.A[3](2, 2));
  Made batch(given);
  const std::vector<double> before = batch.get();
  gpucholmod_batch_insertion what{1, matrix(std::as_const(X).data(), n + 1, count, n + 1), nullptr, 0, 0, nullptr};
  std::vector<ptrdiff_t> pivots(count), expected(count, 0), orders(count);
  expected[3] = n + 1;
  EXPECT_EQ(gpucholmod_batch_insert(batch.held, &what, pivots.data(), &batch.status),
            GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(batch.status.member, 4);
  EXPECT_EQ(batch.status.pivot, n + 1);
  EXPECT_EQ(pivots, expected);
  EXPECT_EQ(batch.get(), before);
  what.independent = 1;
  EXPECT_EQ(gpucholmod_batch_insert(batch.held, &what, pivots.data(), &batch.status),
            GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(gpucholmod_batch_orders(batch.held, orders.data(), nullptr), GPUCHOLMOD_OK);
  for (index_t m = 0; m < count; ++m) {
    EXPECT_EQ(orders[m], m == 3 ? n : n + 1);
    EXPECT_LT(batch.error(m, given.A[m].topLeftCorner(orders[m], orders[m])), 1e-14);
  }
  const ptrdiff_t last = n;
  EXPECT_EQ(gpucholmod_batch_delete(batch.held, 1, &last, 1, nullptr, &batch.status), GPUCHOLMOD_BAD_ARGUMENT);

  gpucholmod_batch* again = nullptr;
  const std::vector<double> all = batch.get();
  ASSERT_EQ(gpucholmod_batch_create(matrix(all.data(), n + 1, (n + 1) * count, n + 1), count, orders.data(), 0, nullptr,
                                    &again, &batch.status),
            GPUCHOLMOD_OK);
  std::vector<ptrdiff_t> kept(count);
  EXPECT_EQ(gpucholmod_batch_orders(again, kept.data(), nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(kept, orders);
  gpucholmod_batch_destroy(again);
}

TEST(CBatchReshape, BadArgumentsChangeNothing) {
  const Given given;
  Made batch(given);
  const std::vector<double> before = batch.get();
  std::vector<double> X = given.columns(std::vector<index_t>(count, n), 1);
  const auto refused = [&](int code, int expected = GPUCHOLMOD_BAD_ARGUMENT) {
    EXPECT_EQ(code, expected) << batch.status.message;
    EXPECT_EQ(batch.get(), before);
  };
  const auto insert = [&](ptrdiff_t p, ptrdiff_t rows, ptrdiff_t cols, std::vector<ptrdiff_t> at, int independent = 0,
                          const gpucholmod_right_sides* sides = nullptr) {
    const gpucholmod_batch_insertion what{p, matrix(static_cast<const double*>(X.data()), rows, cols, rows),
                                          at.empty() ? nullptr : at.data(), ptrdiff_t(at.size()), independent, sides};
    return gpucholmod_batch_insert(batch.held, &what, nullptr, &batch.status);
  };
  refused(insert(-1, n - 1, count, {}));
  refused(insert(1, n, count, {}));
  refused(insert(1, n + 1, count - 1, {}));
  refused(insert(1, n + 1, count, {n + 1}));
  refused(insert(1, n + 1, count, {-1}));
  refused(insert(1, n + 1, count, {0, 0}));
  refused(insert(1, n + 1, count, {}, 2));
  refused(gpucholmod_batch_insert(batch.held, nullptr, nullptr, &batch.status));
  X[6 * (n + 1)] = NAN;
  refused(insert(1, n + 1, count, {}), GPUCHOLMOD_NOT_FINITE);
  EXPECT_EQ(batch.status.member, 7);
  const auto remove = [&](ptrdiff_t p, std::vector<ptrdiff_t> rows) {
    return gpucholmod_batch_delete(batch.held, p, rows.data(), ptrdiff_t(rows.size()), nullptr, &batch.status);
  };
  refused(remove(-1, {}));
  refused(remove(n + 1, {0, 1, 2, 3, 4, 5}));
  refused(remove(1, {n}));
  refused(remove(1, {-1}));
  refused(remove(2, {1, 1}));
  refused(remove(2, {2, 1}));
  refused(remove(2, {0}));
  refused(gpucholmod_batch_delete(batch.held, 1, nullptr, 1, nullptr, &batch.status));
  refused(gpucholmod_batch_orders(batch.held, nullptr, &batch.status));
  const auto shift = [&](ptrdiff_t from, ptrdiff_t to, ptrdiff_t places) {
    return gpucholmod_batch_shift(batch.held, &from, &to, places, nullptr, &batch.status);
  };
  refused(shift(-1, 0, 1));
  refused(shift(0, n, 1));
  refused(shift(0, 1, 2));
  const ptrdiff_t first = 0;
  refused(gpucholmod_batch_shift(batch.held, nullptr, &first, 1, nullptr, &batch.status));
  refused(gpucholmod_batch_shift(batch.held, &first, nullptr, 1, nullptr, &batch.status));
}

TEST(CppBatchReshape, GrowsAndShrinks) {
  const Given given;
  Batch batch(View<const double>(given.R.data(), n, n * count), count, Triangle::upper, on_host, n + 1);
  EXPECT_EQ(batch.capacity(), n + 1);
  std::vector<double> X = given.columns(std::vector<index_t>(count, 2), 1);
  batch.insert(1, View<const double>(X.data(), n + 1, count), 2);
  EXPECT_EQ(batch.order(), n + 1);
  const auto factors = [&] {
    std::vector<double> all((n + 1) * (n + 1) * count);
    batch.store(View<double>(all.data(), n + 1, (n + 1) * count));
    return all;
  };
  const std::vector<double> before = factors();
  batch.shift(2, n);
  const Stored<double> moved = Eigen::Map<const Stored<double>>(factors().data(), n + 1, n + 1);
  const Matrix first = gram(Stored<double>(Eigen::Map<const Stored<double>>(before.data(), n + 1, n + 1)));
  EXPECT_LT(double(norm_1(gram(moved) - picked(first, with_moved(n + 1, 2, n)))), 1e-12);
  batch.shift(n, 2);
  batch.remove({2});
  EXPECT_EQ(batch.orders(), std::vector<std::ptrdiff_t>(count, n));
  X[n] = -1;
  const std::vector<std::ptrdiff_t> pivots = batch.insert_each(1, View<const double>(X.data(), n + 1, count));
  EXPECT_EQ(pivots[0], n + 1);
  EXPECT_EQ(batch.orders()[0], n);
}

}  // namespace
}  // namespace gpucholmod::test
