#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// The C interface for doubles and floats alike: rows and columns that are inserted, deleted and moved, and factors
/// with memory of their own.
namespace gpucholmod::test {
namespace {

template <class S>
class CFactor : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CFactor, Scalars);

/// A (n + p x n + p), and the factor of A without rows and columns at .. at + p - 1.
template <class S>
struct Growing {
  static constexpr index_t n = 30, p = 2, at = 7;
  Matrix A;
  Stored<S> R;  ///< upper
  Stored<S> X;  ///< columns at .. at + p - 1 of A

  Growing() {
    Random random(11);
    const Matrix B = random.normal(50, n + p);
    const Stored<S> rounded = product(B.transpose(), B).cast<S>();
    A = rounded.template cast<real>();
    Matrix small(n, n);
    const auto kept = [](index_t i) { return i < at ? i : i + p; };
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) small(i, j) = A(kept(i), kept(j));
    R = factor(small).cast<S>();
    X = rounded.middleCols(at, p);
  }
};

/// Returns ||R'R - A||_1 / (n eps ||A||_1), R upper.
template <class S>
double off(const Stored<S>& R, const Matrix& A) {
  return double(norm_1(gram(R) - A) / (norm_1(A) * real(std::numeric_limits<S>::epsilon()) * real(A.cols())));
}

struct Released {
  gpucholmod_factor* held = nullptr;
  ~Released() { gpucholmod_factor_destroy(held); }
};

TYPED_TEST(CFactor, RowsAndColumnsComeAndGoInTheCallersMemory) {
  using S = TypeParam;
  const Growing<S> g;
  for (const bool lower : {false, true}) {
    const index_t n = g.n, p = g.p;
    Padded<S> made(stored(g.R, lower), n + p + 1);
    made.data.resize(made.ld * (n + p), S(unused));
    Released held, stays;
    gpucholmod_status status;
    ASSERT_EQ(create(lower, n, made.data.data(), made.ld, 0, &held.held, &status),
              GPUCHOLMOD_OK);
    ASSERT_EQ(gpucholmod_factor_copy(held.held, &stays.held, &status), GPUCHOLMOD_OK);

    // a call that fails changes nothing
    const std::vector<S> before = made.data;
    const auto refused = [&](int code, int expected) {
      EXPECT_EQ(code, expected) << status.message;
      EXPECT_EQ(std::memcmp(made.data.data(), before.data(), sizeof(S) * before.size()), 0);
    };
    Stored<S> bad = g.X;
    bad(g.at + 1, 1) = 0;
    refused(insert(lower, n, g.at, p, made.data.data(), made.ld, bad.data(), n + p, nullptr, &status),
            GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    EXPECT_EQ(status.pivot, g.at + 2);
    bad(0, 0) = std::numeric_limits<S>::infinity();
    refused(insert(lower, n, g.at, p, made.data.data(), made.ld, bad.data(), n + p, nullptr, &status),
            GPUCHOLMOD_NOT_FINITE);
    EXPECT_EQ(status.row, 1);
    refused(insert(lower, n, n + 1, p, made.data.data(), made.ld, g.X.data(), n + p, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
    refused(insert(lower, n, 0, p, made.data.data(), n, g.X.data(), n + p, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
    const ptrdiff_t gone[] = {g.at, g.at + 1}, twice[] = {g.at, g.at};
    refused(remove(lower, n, 2, twice, made.data.data(), made.ld, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
    made.data[0] = 0;
    EXPECT_EQ(remove(lower, n, 2, gone, made.data.data(), made.ld, nullptr, &status),
              GPUCHOLMOD_BAD_DIAGONAL);
    EXPECT_EQ(status.row, 1);
    made.data[0] = before[0];

    ASSERT_EQ(insert(lower, n, g.at, p, made.data.data(), made.ld, g.X.data(), n + p, nullptr, &status),
              GPUCHOLMOD_OK);
    EXPECT_LT(off(upper(made.matrix(n + p), lower), g.A), 30);
    EXPECT_EQ(made.data[n + p], S(unused));

    // a factor with memory of its own gets the same bits
    const Stored<double> X = g.X.template cast<double>();
    ASSERT_EQ(insert(held.held, g.at, p, X.data(), n + p, nullptr, &status), GPUCHOLMOD_OK)
        << status.message;
    EXPECT_EQ(gpucholmod_factor_order(held.held), n + p);
    EXPECT_GE(gpucholmod_factor_capacity(held.held), n + p);
    Padded<S> out(Stored<S>(Stored<S>::Constant(n + p, n + p, S(1))), n + p + 1);
    ASSERT_EQ(get(held.held, lower, out.data.data(), out.ld, &status), GPUCHOLMOD_OK);
    const Stored<S> in_place = upper(made.matrix(n + p), lower), whole = out.matrix(n + p);
    EXPECT_EQ(lower ? Stored<S>(whole.transpose()) : whole, in_place);

    ASSERT_EQ(remove(lower, n + p, p, gone, made.data.data(), made.ld, nullptr, &status), GPUCHOLMOD_OK);
    ASSERT_EQ(remove(held.held, p, gone, nullptr, &status), GPUCHOLMOD_OK);
    EXPECT_LT(off(upper(made.matrix(n), lower), gram(g.R)), 30);
    ASSERT_EQ(get(held.held, GPUCHOLMOD_UPPER, out.data.data(), out.ld, &status), GPUCHOLMOD_OK);
    EXPECT_LT(off(out.matrix(n), gram(g.R)), 30);
    ASSERT_EQ(get(stays.held, GPUCHOLMOD_UPPER, out.data.data(), out.ld, &status), GPUCHOLMOD_OK);
    EXPECT_EQ(out.matrix(n), Stored<S>(g.R.template triangularView<Eigen::Upper>()));
  }
}

/// Checks that rows with a negative diagonal entry are turned, and rows of z with them.
TYPED_TEST(CFactor, RowsAndColumnsComeAndGoWhereRowsAreNegative) {
  using S = TypeParam;
  const Growing<S> g;
  const index_t n = g.n, p = g.p, m = 2;
  for (const bool lower : {false, true}) {
    std::vector<Padded<S>> R;
    std::vector<Stored<double>> z(2, Stored<double>::Zero(n + p, m));
    const Stored<double> Y = Random(4).normal(p, m).cast<double>();
    z[0].topRows(n) = Random(3).normal(n, m).cast<double>();
    z[1] = z[0];
    Stored<S> negative = g.R;
    for (index_t i = 0; i < n; i += 4) {
      negative.row(i) *= -1;
      z[1].row(i) *= -1;
    }
    for (const Stored<S>& given : {g.R, negative}) {
      R.emplace_back(stored(given, lower), n + p + 1);
      R.back().data.resize(R.back().ld * (n + p), S(unused));
    }
    const ptrdiff_t gone[] = {g.at, g.at + 1};
    for (const bool comes : {true, false}) {
      for (int i = 0; i < 2; ++i) {
        const gpucholmod_right_sides sides =
            right_sides(z[i].data(), n + p, m, n + p, Y.data(), comes ? p : 0, p, nullptr);
        S* const data = R[i].data.data();
        ASSERT_EQ(comes ? insert(lower, n, g.at, p, data, R[i].ld, g.X.data(), n + p, &sides, nullptr)
                        : remove(lower, n + p, p, gone, data, R[i].ld, &sides, nullptr),
                  GPUCHOLMOD_OK);
      }
      const index_t order = comes ? n + p : n;
      EXPECT_EQ(upper(R[1].matrix(order), lower), upper(R[0].matrix(order), lower));
      EXPECT_EQ(z[1].topRows(order), z[0].topRows(order));
    }
  }
}

/// Rows and columns that move, also of factors with rows that are negative: the residual against A after the same move,
/// and right-hand sides by R'z = b.
TYPED_TEST(CFactor, RowsAndColumnsMove) {
  using S = TypeParam;
  const Growing<S> g;
  constexpr index_t n = g.n, m = 2;
  for (const bool lower : {false, true})
    for (const bool negative : {false, true})
      for (const auto& [from, to] : {std::pair<index_t, index_t>{0, n - 1}, {n - 1, 0}, {5, 9}, {9, 5}, {4, 4}}) {
        Stored<S> R = g.R.template triangularView<Eigen::Upper>();
        if (negative) R.row(5) *= -1;
        std::vector<index_t> order;
        for (index_t i = 0; i < n; ++i)
          if (i != from) order.push_back(i);
        order.insert(order.begin() + to, from);
        const Matrix A = gram(R), z = Random(3).normal(n, m).template cast<double>().template cast<real>(),
                     b = product(R.transpose().template cast<real>(), z);
        Matrix moved(n, n), moved_b(n, m);
        for (index_t j = 0; j < n; ++j) {
          for (index_t i = 0; i < n; ++i) moved(i, j) = A(order[size_t(i)], order[size_t(j)]);
          moved_b.row(j) = b.row(order[size_t(j)]);
        }

        Padded<S> memory(stored(R, lower), n + 3);
        Stored<double> z_memory = z.template cast<double>(), z_held = z_memory;
        if (negative) z_held.row(5) *= -1;  // for the handle, whose factor has been turned already
        std::vector<double> rss{3, 4};
        Released held;
        gpucholmod_status status;
        ASSERT_EQ(create(lower, n, memory.data.data(), memory.ld, 0, &held.held, &status), GPUCHOLMOD_OK);
        const gpucholmod_options options = triangle(lower);
        const gpucholmod_right_sides of_memory = right_sides(z_memory.data(), n, m, n, nullptr, 0, 0, rss.data()),
                                     of_held = right_sides(z_held.data(), n, m, n, nullptr, 0, 0, nullptr);
        const gpucholmod_matrix place = matrix(memory.data.data(), n, n, memory.ld);
        ASSERT_EQ(gpucholmod_shift(place, from, to, &of_memory, &options, &status), GPUCHOLMOD_OK)
            << status.message;
        ASSERT_EQ(gpucholmod_factor_shift(held.held, from, to, &of_held, nullptr, &status), GPUCHOLMOD_OK);
        const Stored<S> made = upper(memory.matrix(n), lower);
        Stored<S> out(n, n);
        ASSERT_EQ(get(held.held, 0, out.data(), n, &status), GPUCHOLMOD_OK);
        EXPECT_EQ(out, made);
        EXPECT_LT(off(made, moved), 30);
        EXPECT_EQ(z_memory, z_held);
        EXPECT_EQ(rss, (std::vector<double>{3, 4}));
        const Matrix left = product(made.transpose().template cast<real>(), z_memory.template cast<real>()) - moved_b;
        EXPECT_LT(double(norm_1(left) / (norm_1(moved_b) * real(std::numeric_limits<S>::epsilon()) * n)), 30);
      }
}

/// Checks that numbers that have to be scaled give the bits of a handle. An upper factor in the caller's memory is then
/// changed by way of a second factor.
TYPED_TEST(CFactor, NumbersNearTheEndsOfTheRange) {
  using S = TypeParam;
  const Growing<S> g;
  constexpr index_t n = g.n, p = g.p;
  const int most = std::numeric_limits<S>::max_exponent / 2 - 10;
  for (const int e : {-most, 0, most})
    for (const bool lower : {false, true}) {
      const S by = std::scalbn(S(1), e), squared = by * by;
      Padded<S> memory(stored(Stored<S>(g.R * by), lower), n + p);
      memory.data.resize(size_t(memory.ld * (n + p)), S(unused));
      const Stored<S> X = g.X * squared;
      const Stored<double> wide = X.template cast<double>();
      Released held;
      ASSERT_EQ(create(lower, n, memory.data.data(), memory.ld, 0, &held.held, nullptr), GPUCHOLMOD_OK);
      const auto same = [&](index_t order, int of_memory, int of_held) {
        EXPECT_EQ(of_memory, GPUCHOLMOD_OK);
        EXPECT_EQ(of_held, GPUCHOLMOD_OK);
        Stored<S> out(order, order);
        EXPECT_EQ(get(held.held, 0, out.data(), order, nullptr), GPUCHOLMOD_OK);
        EXPECT_EQ(upper(memory.matrix(order), lower), out) << e;
      };
      const gpucholmod_options options = triangle(lower);
      const ptrdiff_t gone[] = {3, 8};
      S* const R = memory.data.data();
      same(n + p, insert(lower, n, g.at, p, R, memory.ld, X.data(), n + p, nullptr, nullptr),
           insert(held.held, g.at, p, wide.data(), n + p, nullptr, nullptr));
      same(n + p, gpucholmod_shift(matrix(R, n + p, n + p, memory.ld), 2, 20, nullptr, &options, nullptr),
           gpucholmod_factor_shift(held.held, 2, 20, nullptr, nullptr, nullptr));
      same(n, remove(lower, n + p, p, gone, R, memory.ld, nullptr, nullptr),
           remove(held.held, p, gone, nullptr, nullptr));
      same(n, gpucholmod_shift(matrix(R, n, n, memory.ld), 20, 1, nullptr, &options, nullptr),
           gpucholmod_factor_shift(held.held, 20, 1, nullptr, nullptr, nullptr));
    }
}

TYPED_TEST(CFactor, RowsThatAreNotThereDoNotMove) {
  using S = TypeParam;
  const Growing<S> g;
  constexpr index_t n = g.n;
  Stored<S> R = g.R;
  Released held;
  ASSERT_EQ(create(0, n, R.data(), n, 0, &held.held, nullptr), GPUCHOLMOD_OK);
  for (const auto& [from, to] : {std::pair<index_t, index_t>{0, n}, {n, 0}, {-1, 0}, {0, -1}}) {
    EXPECT_EQ(gpucholmod_shift(matrix(R.data(), n, n, n), from, to, nullptr, nullptr, nullptr),
              GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(gpucholmod_factor_shift(held.held, from, to, nullptr, nullptr, nullptr), GPUCHOLMOD_BAD_ARGUMENT);
  }
  R(1, 1) = 0;
  const Stored<S> before = R;
  gpucholmod_status status;
  EXPECT_EQ(gpucholmod_shift(matrix(R.data(), n, n, n), 0, 2, nullptr, nullptr, &status), GPUCHOLMOD_BAD_DIAGONAL);
  EXPECT_EQ(status.row, 2);
  EXPECT_EQ(R, before);
}

TYPED_TEST(CFactor, TellsOfItself) {
  using S = TypeParam;
  const Growing<S> g;
  const index_t n = g.n;
  Released factor;
  gpucholmod_status status;
  ASSERT_EQ(create(0, n, g.R.data(), n, n + 5, &factor.held, &status),
            GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_factor_on_gpu(factor.held), 0);
  EXPECT_EQ(gpucholmod_factor_type(factor.held), sizeof(S) == 8 ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT);
  EXPECT_EQ(gpucholmod_factor_capacity(factor.held), n + 5);
  std::vector<double> diagonal(n);
  ASSERT_EQ(gpucholmod_factor_diagonal(factor.held, diagonal.data(), &status), GPUCHOLMOD_OK);
  real log = 0;
  for (index_t j = 0; j < n; ++j) {
    EXPECT_EQ(diagonal[j], double(g.R(j, j)));
    log += 2 * std::log(real(g.R(j, j)));
  }
  double found = 0;
  ASSERT_EQ(gpucholmod_factor_logdet(factor.held, &found, &status), GPUCHOLMOD_OK);
  EXPECT_NEAR(found, double(log), 1e-13 * n * std::abs(double(log)));
  EXPECT_EQ(gpucholmod_factor_logdet(factor.held, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(gpucholmod_factor_diagonal(factor.held, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(gpucholmod_factor_logdet(nullptr, &found, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(gpucholmod_factor_type(nullptr), 0);
  EXPECT_EQ(gpucholmod_factor_capacity(nullptr), 0);

  // V of doubles, with weights, for R of doubles and of floats
  Random random(3);
  const Stored<double> V = random.normal(n, 2).template cast<double>();
  const double weights[] = {2, -1e-3};
  ASSERT_EQ(update(factor.held, 2, V.data(), n, weights, 0.5, nullptr, &status), GPUCHOLMOD_OK)
      << status.message;
  Stored<S> R(n, n);
  ASSERT_EQ(get(factor.held, 0, R.data(), n, &status), GPUCHOLMOD_OK);
  Matrix A = gram(g.R) * real(0.5);
  for (const int q : {0, 1})
    A += real(weights[q]) * (V.col(q).template cast<real>() * V.col(q).template cast<real>().transpose());
  EXPECT_LT(off(R, A), 30);

  // no GPU in this build
  gpucholmod_factor* on_gpu = nullptr;
  EXPECT_EQ(create(0, n, g.R.data(), n, n, &on_gpu, &status, GPUCHOLMOD_ANY_GPU), GPUCHOLMOD_NOT_BUILT);
  EXPECT_EQ(on_gpu, nullptr);
  EXPECT_EQ(gpucholmod_gpu(GPUCHOLMOD_ANY_GPU, &status), GPUCHOLMOD_NOT_BUILT);
  EXPECT_NE(status.message[0], 0);
}

/// Checks that handles give the bits of small factors in the caller's memory, which are modified a block at once.
TEST(CFactorOfDoubles, AreModifiedAsInTheCallersMemory) {
  for (index_t n = 1; n <= 12; ++n)
    for (const index_t k : {1, 2, 6})
      for (const double weight : {1., -1.}) {
        Random random(unsigned(10 * n + k));
        Stored<double> R = Stored<double>(well_conditioned(n, random).cast<double>());
        const Stored<double> V = (random.normal(n, k) / (20 * real(n))).cast<double>();
        const std::vector<double> weights(size_t(k), weight);
        Released held;
        gpucholmod_status status;
        ASSERT_EQ(create(0, n, R.data(), n, n, &held.held, &status), GPUCHOLMOD_OK);
        ASSERT_EQ(update(held.held, k, V.data(), n, weights.data(), 1, nullptr, &status), GPUCHOLMOD_OK)
            << status.message;
        ASSERT_EQ(
            update(0, n, k, R.data(), n, V.data(), n, weights.data(), 1, nullptr, &status),
            GPUCHOLMOD_OK);
        Stored<double> out(n, n);
        ASSERT_EQ(get(held.held, 0, out.data(), n, &status), GPUCHOLMOD_OK);
        EXPECT_EQ(out, Stored<double>(R.triangularView<Eigen::Upper>())) << n << ", " << k;
      }
}

TEST(CFactorOfDoubles, DoNotFitIntoFloats) {
  const double R = 1e100;
  float out = 7;
  Released factor;
  gpucholmod_status status;
  ASSERT_EQ(create(0, 1, &R, 1, 1, &factor.held, &status), GPUCHOLMOD_OK);
  EXPECT_EQ(get(factor.held, 0, &out, 1, &status), GPUCHOLMOD_OVERFLOW);
  EXPECT_EQ(out, 7);
}

}  // namespace
}  // namespace gpucholmod::test
