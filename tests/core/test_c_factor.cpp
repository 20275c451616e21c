#include <gpucholmod.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "padded.h"
#include "tests.h"

/// The C interface, of doubles and of floats alike: rows and columns that come and go, and factors with memory of their
/// own.
namespace gpucholmod::test {
namespace {

/// The functions that end in _d and _s.
template <class S>
struct Functions;
template <>
struct Functions<double> {
  static constexpr auto insert = gpucholmod_insert_d;
  static constexpr auto remove = gpucholmod_remove_d;
  static constexpr auto hold = gpucholmod_hold;
  static constexpr auto store = gpucholmod_store;
};
template <>
struct Functions<float> {
  static constexpr auto insert = gpucholmod_insert_s;
  static constexpr auto remove = gpucholmod_remove_s;
  static constexpr auto hold = gpucholmod_hold_s;
  static constexpr auto store = gpucholmod_store_s;
};

template <class S>
class CFactor : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CFactor, Scalars);

/// A, n + p x n + p, and the factor of what is left of it without rows and columns at .. at + p - 1.
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

/// ||R'R - A||_1 / (n eps ||A||_1), R upper.
template <class S>
double off(const Stored<S>& R, const Matrix& A) {
  return double(norm_1(gram(R) - A) / (norm_1(A) * real(std::numeric_limits<S>::epsilon()) * real(A.cols())));
}

struct Released {
  gpucholmod_factor* held = nullptr;
  ~Released() { gpucholmod_release(held); }
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
    ASSERT_EQ(Functions<S>::hold(lower, n, made.data.data(), made.ld, 0, GPUCHOLMOD_MEMORY, -1, &held.held, &status),
              GPUCHOLMOD_OK);
    ASSERT_EQ(gpucholmod_copy(held.held, &stays.held, &status), GPUCHOLMOD_OK);

    // what cannot be done changes nothing
    const std::vector<S> before = made.data;
    const auto refused = [&](int code, int expected) {
      EXPECT_EQ(code, expected) << status.message;
      EXPECT_EQ(std::memcmp(made.data.data(), before.data(), sizeof(S) * before.size()), 0);
    };
    Stored<S> bad = g.X;
    bad(g.at + 1, 1) = 0;
    refused(Functions<S>::insert(lower, n, g.at, p, made.data.data(), made.ld, bad.data(), n + p, nullptr, &status),
            GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    EXPECT_EQ(status.pivot, g.at + 2);
    bad(0, 0) = std::numeric_limits<S>::infinity();
    refused(Functions<S>::insert(lower, n, g.at, p, made.data.data(), made.ld, bad.data(), n + p, nullptr, &status),
            GPUCHOLMOD_NOT_FINITE);
    EXPECT_EQ(status.row, 1);
    refused(Functions<S>::insert(lower, n, n + 1, p, made.data.data(), made.ld, g.X.data(), n + p, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
    refused(Functions<S>::insert(lower, n, 0, p, made.data.data(), n, g.X.data(), n + p, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
    const ptrdiff_t gone[] = {g.at, g.at + 1}, twice[] = {g.at, g.at};
    refused(Functions<S>::remove(lower, n, 2, twice, made.data.data(), made.ld, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
    made.data[0] = 0;
    EXPECT_EQ(Functions<S>::remove(lower, n, 2, gone, made.data.data(), made.ld, nullptr, &status),
              GPUCHOLMOD_BAD_DIAGONAL);
    EXPECT_EQ(status.row, 1);
    made.data[0] = before[0];

    ASSERT_EQ(Functions<S>::insert(lower, n, g.at, p, made.data.data(), made.ld, g.X.data(), n + p, nullptr, &status),
              GPUCHOLMOD_OK);
    EXPECT_LT(off(upper(made.matrix(n + p), lower), g.A), 30);
    EXPECT_EQ(made.data[n + p], S(unused));

    // as a factor with memory of its own does it, to the last bit
    const Stored<double> X = g.X.template cast<double>();
    ASSERT_EQ(gpucholmod_insert(held.held, g.at, p, X.data(), n + p, nullptr, &status), GPUCHOLMOD_OK)
        << status.message;
    EXPECT_EQ(gpucholmod_order(held.held), n + p);
    EXPECT_GE(gpucholmod_capacity(held.held), n + p);
    Padded<S> out(Stored<S>(Stored<S>::Constant(n + p, n + p, S(1))), n + p + 1);
    ASSERT_EQ(Functions<S>::store(held.held, lower, out.data.data(), out.ld, &status), GPUCHOLMOD_OK);
    const Stored<S> in_place = upper(made.matrix(n + p), lower), whole = out.matrix(n + p);
    EXPECT_EQ(lower ? Stored<S>(whole.transpose()) : whole, in_place);

    ASSERT_EQ(Functions<S>::remove(lower, n + p, p, gone, made.data.data(), made.ld, nullptr, &status), GPUCHOLMOD_OK);
    ASSERT_EQ(gpucholmod_remove(held.held, p, gone, nullptr, &status), GPUCHOLMOD_OK);
    EXPECT_LT(off(upper(made.matrix(n), lower), gram(g.R)), 30);
    ASSERT_EQ(Functions<S>::store(held.held, GPUCHOLMOD_UPPER, out.data.data(), out.ld, &status), GPUCHOLMOD_OK);
    EXPECT_LT(off(out.matrix(n), gram(g.R)), 30);
    ASSERT_EQ(Functions<S>::store(stays.held, GPUCHOLMOD_UPPER, out.data.data(), out.ld, &status), GPUCHOLMOD_OK);
    EXPECT_EQ(out.matrix(n), Stored<S>(g.R.template triangularView<Eigen::Upper>()));
  }
}

/// Rows with a negative diagonal entry are turned, and rows of z with them.
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
        const gpucholmod_sides sides{m, z[i].data(), n + p, Y.data(), p, nullptr};
        S* const data = R[i].data.data();
        ASSERT_EQ(comes ? Functions<S>::insert(lower, n, g.at, p, data, R[i].ld, g.X.data(), n + p, &sides, nullptr)
                        : Functions<S>::remove(lower, n + p, p, gone, data, R[i].ld, &sides, nullptr),
                  GPUCHOLMOD_OK);
      }
      const index_t order = comes ? n + p : n;
      EXPECT_EQ(upper(R[1].matrix(order), lower), upper(R[0].matrix(order), lower));
      EXPECT_EQ(z[1].topRows(order), z[0].topRows(order));
    }
  }
}

TYPED_TEST(CFactor, TellsOfItself) {
  using S = TypeParam;
  const Growing<S> g;
  const index_t n = g.n;
  Released factor;
  gpucholmod_status status;
  ASSERT_EQ(Functions<S>::hold(0, n, g.R.data(), n, n + 5, GPUCHOLMOD_MEMORY, -1, &factor.held, &status),
            GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_home(factor.held), GPUCHOLMOD_MEMORY);
  EXPECT_EQ(gpucholmod_scalar(factor.held), sizeof(S));
  EXPECT_EQ(gpucholmod_capacity(factor.held), n + 5);
  std::vector<double> diagonal(n);
  ASSERT_EQ(gpucholmod_diagonal(factor.held, diagonal.data(), &status), GPUCHOLMOD_OK);
  real log = 0;
  for (index_t j = 0; j < n; ++j) {
    EXPECT_EQ(diagonal[j], double(g.R(j, j)));
    log += 2 * std::log(real(g.R(j, j)));
  }
  double found = 0;
  ASSERT_EQ(gpucholmod_logdet(factor.held, &found, &status), GPUCHOLMOD_OK);
  EXPECT_NEAR(found, double(log), 1e-13 * n * std::abs(double(log)));
  EXPECT_EQ(gpucholmod_logdet(factor.held, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(gpucholmod_diagonal(factor.held, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(gpucholmod_logdet(nullptr, &found, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(gpucholmod_scalar(nullptr), 0u);
  EXPECT_EQ(gpucholmod_capacity(nullptr), 0);

  // V of weights, as in the precision of R
  Random random(3);
  const Stored<double> V = random.normal(n, 2).template cast<double>();
  const double weights[] = {2, -1e-3};
  ASSERT_EQ(gpucholmod_modify(factor.held, 2, V.data(), n, weights, 0.5, nullptr, &status), GPUCHOLMOD_OK)
      << status.message;
  Stored<S> R(n, n);
  ASSERT_EQ(Functions<S>::store(factor.held, 0, R.data(), n, &status), GPUCHOLMOD_OK);
  Matrix A = gram(g.R) * real(0.5);
  for (const int q : {0, 1})
    A += real(weights[q]) * (V.col(q).template cast<real>() * V.col(q).template cast<real>().transpose());
  EXPECT_LT(off(R, A), 30);

  // no GPU in this build
  gpucholmod_factor* on_gpu = nullptr;
  EXPECT_EQ(Functions<S>::hold(0, n, g.R.data(), n, n, GPUCHOLMOD_GPU, -1, &on_gpu, &status), GPUCHOLMOD_NOT_BUILT);
  EXPECT_EQ(on_gpu, nullptr);
  EXPECT_EQ(gpucholmod_gpu(-1, &status), GPUCHOLMOD_NOT_BUILT);
  EXPECT_NE(status.message[0], 0);
}

/// Small factors go another way there, a block at once, to the same bits.
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
        ASSERT_EQ(gpucholmod_hold(0, n, R.data(), n, n, GPUCHOLMOD_MEMORY, -1, &held.held, &status), GPUCHOLMOD_OK);
        ASSERT_EQ(gpucholmod_modify(held.held, k, V.data(), n, weights.data(), 1, nullptr, &status), GPUCHOLMOD_OK)
            << status.message;
        ASSERT_EQ(
            gpucholmod_update_d(0, n, k, R.data(), n, V.data(), n, weights.data(), 1, nullptr, nullptr, 0, &status),
            GPUCHOLMOD_OK);
        Stored<double> out(n, n);
        ASSERT_EQ(gpucholmod_store(held.held, 0, out.data(), n, &status), GPUCHOLMOD_OK);
        EXPECT_EQ(out, Stored<double>(R.triangularView<Eigen::Upper>())) << n << ", " << k;
      }
}

TEST(CFactorOfDoubles, DoNotFitIntoFloats) {
  const double R = 1e100;
  float out = 7;
  Released factor;
  gpucholmod_status status;
  ASSERT_EQ(gpucholmod_hold(0, 1, &R, 1, 1, GPUCHOLMOD_MEMORY, -1, &factor.held, &status), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_store_s(factor.held, 0, &out, 1, &status), GPUCHOLMOD_OVERFLOW);
  EXPECT_EQ(out, 7);
}

}  // namespace
}  // namespace gpucholmod::test
