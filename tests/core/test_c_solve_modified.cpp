#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// gpucholmod_solve_modified(): solutions with many modifications of one matrix.
namespace gpucholmod::test {
namespace {

template <class S>
class CSolveModified : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CSolveModified, Scalars);

constexpr index_t n = 40, m = 2, count = 4;
constexpr index_t columns[count] = {1, 3, 0, 2};
constexpr index_t all_columns = 6;

/// Modifications of a factor of S, of which only the second has removed columns.
template <class S>
struct Given {
  Stored<S> R;
  Stored<double> V, b;  ///< b: right-hand sides of each modification
  std::vector<double> weights{1, 0.5, -0.01, 2, 1, 0.25}, scales{1, 0.5, 2, 1};
  std::vector<double> solution, quadratic, logdet;
  std::vector<ptrdiff_t> pivots;
  bool own_b;

  explicit Given(bool own_b)
      : solution(std::size_t(n * m * count), 5), quadratic(std::size_t(m * count), 5), logdet(std::size_t(count), 5),
        pivots(std::size_t(count), 5), own_b(own_b) {
    Random random(31);
    R = Matrix(well_conditioned(n, random).template triangularView<Eigen::Upper>()).cast<S>();
    V = random.normal(n, all_columns).template cast<double>() / 4;
    b = random.normal(n, m * count).template cast<double>();
  }
  gpucholmod_modifications what() {
    return {count,
            columns,
            matrix(static_cast<const double*>(V.data()), n, all_columns, n),
            weights.data(),
            scales.data(),
            m,
            matrix(static_cast<const double*>(b.data()), n, own_b ? m * count : m, n),
            matrix(solution.data(), n, m * count, n),
            quadratic.data(),
            logdet.data(),
            pivots.data()};
  }
  std::vector<double> results() const {
    std::vector<double> all = solution;
    for (const auto* part : {&quadratic, &logdet}) all.insert(all.end(), part->begin(), part->end());
    all.insert(all.end(), pivots.begin(), pivots.end());
    return all;
  }
  Matrix modified(index_t j) const {
    Matrix A = gram(R) * real(scales[size_t(j)]);
    index_t q = 0;
    for (index_t i = 0; i < j; ++i) q += columns[i];
    for (index_t c = 0; c < columns[j]; ++c, ++q) {
      const Matrix v = V.col(q).template cast<real>();
      A += real(weights[size_t(q)]) * product(v, v.transpose());
    }
    return A;
  }
};

template <class S>
int solve(Given<S>& given, int which, const gpucholmod_options* options, gpucholmod_status* status) {
  const gpucholmod_modifications what = given.what();
  const bool lower = which == 1;
  Padded<S> memory(stored(given.R, lower), which == 2 ? n : n + 1);
  gpucholmod_options chosen = options ? *options : triangle(GPUCHOLMOD_UPPER);
  const auto R = matrix(static_cast<const S*>(memory.data.data()), n, n, memory.ld);
  if (which < 3) {
    chosen.triangle = lower ? GPUCHOLMOD_LOWER : GPUCHOLMOD_UPPER;
    return gpucholmod_solve_modified(R, &what, &chosen, status);
  }
  gpucholmod_factor* held = nullptr;
  if (const int code = gpucholmod_factor_create(R, 0, nullptr, &held, status); code != GPUCHOLMOD_OK) return code;
  const int code = gpucholmod_factor_solve_modified(held, &what, &chosen, status);
  gpucholmod_factor_destroy(held);
  return code;
}

/// Checks ||b - A_j x||_1 / (n eps (||A_j||_1 ||x||_1 + ||b||_1)) < 40, b'x and log det A_j, for an upper factor, a
/// lower one, one without gaps, and a handle's.
TYPED_TEST(CSolveModified, SolvesWithAll) {
  using S = TypeParam;
  const double eps = double(std::numeric_limits<S>::epsilon());
  for (const bool own_b : {false, true})
    for (int which = 0; which < 4; ++which) {
      SCOPED_TRACE(which);
      Given<S> given(own_b);
      gpucholmod_status status;
      ASSERT_EQ(solve(given, which, nullptr, &status), GPUCHOLMOD_OK) << status.message;
      EXPECT_EQ(given.pivots, std::vector<ptrdiff_t>(count, 0));
      for (index_t j = 0; j < count; ++j) {
        const Matrix A = given.modified(j), U = factor(A);
        real log = 0;
        for (index_t i = 0; i < n; ++i) log += 2 * std::log(U(i, i));
        EXPECT_NEAR(given.logdet[size_t(j)], double(log), 1e3 * n * eps);
        for (index_t c = 0; c < m; ++c) {
          const Matrix x =
              Eigen::Map<const Stored<double>>(&given.solution[size_t(n * (m * j + c))], n, 1).template cast<real>();
          const Matrix b = given.b.col(own_b ? m * j + c : c).template cast<real>();
          const real size = norm_1(A) * norm_1(x) + norm_1(b);
          EXPECT_LT(double(norm_1(product(A, x) - b) / (real(n) * real(eps) * size)), 40);
          const double quadratic = double(product(b.transpose(), x)(0, 0));
          EXPECT_NEAR(given.quadratic[size_t(m * j + c)], quadratic, 1e3 * n * eps * std::abs(quadratic));
        }
      }
    }
}

/// Checks that, if some modifications are not positive definite, the other modifications have their results.
TYPED_TEST(CSolveModified, TellsWhichAreNotPositiveDefinite) {
  using S = TypeParam;
  for (int which = 0; which < 4; ++which) {
    SCOPED_TRACE(which);
    Given<S> good(true), bad(true);
    ASSERT_EQ(solve(good, which, nullptr, nullptr), GPUCHOLMOD_OK);
    bad.weights[2] = bad.weights[5] = -1e6;
    gpucholmod_status status;
    EXPECT_EQ(solve(bad, which, nullptr, &status), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    EXPECT_EQ(status.member, 2);
    EXPECT_EQ(status.pivot, bad.pivots[1]);
    for (index_t j = 0; j < count; ++j) {
      const bool failed = j == 1 || j == 3;
      EXPECT_EQ(bad.pivots[size_t(j)] > 0, failed);
      EXPECT_EQ(std::isnan(bad.logdet[size_t(j)]), failed);
      for (index_t i = n * m * j; i < n * m * (j + 1); ++i) EXPECT_EQ(std::isnan(bad.solution[size_t(i)]), failed);
      if (failed) continue;
      EXPECT_NEAR(bad.logdet[size_t(j)], good.logdet[size_t(j)], 1e-3);
      EXPECT_EQ(bad.pivots[size_t(j)], 0);
    }
  }
}

int stop(double, void*) { return 1; }

TYPED_TEST(CSolveModified, ChangesNothingIfItFails) {
  using S = TypeParam;
  Given<S> given(true);
  const std::vector<double> before = given.results();
  const auto refused = [&](int expected, auto&& set) {
    for (int which = 0; which < 4; ++which) {
      Given<S> other(true);
      set(other);
      gpucholmod_status status;
      EXPECT_EQ(solve(other, which, nullptr, &status), expected) << status.message;
      EXPECT_EQ(other.results(), before);
    }
  };
  refused(GPUCHOLMOD_NOT_FINITE, [](Given<S>& g) { g.V(3, 5) = std::numeric_limits<double>::quiet_NaN(); });
  refused(GPUCHOLMOD_NOT_FINITE, [](Given<S>& g) { g.b(3, 5) = std::numeric_limits<double>::infinity(); });
  refused(GPUCHOLMOD_BAD_ARGUMENT, [](Given<S>& g) { g.scales[3] = 0; });
  refused(GPUCHOLMOD_BAD_ARGUMENT, [](Given<S>& g) { g.weights[3] = std::numeric_limits<double>::infinity(); });
  refused(GPUCHOLMOD_BAD_DIAGONAL, [](Given<S>& g) { g.R(3, 3) = std::numeric_limits<S>::min() / 4; });
  for (int which = 0; which < 3; ++which) {
    gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
    options.progress = stop;
    EXPECT_EQ(solve(given, which, &options, nullptr), GPUCHOLMOD_STOPPED);
    EXPECT_EQ(given.results(), before);
  }
}

/// Modifications without any columns, A_j = scale_j A: their solutions and b'x are those of A, divided by scale_j.
TEST(CSolveModifiedArguments, HaveNoColumns) {
  constexpr ptrdiff_t none[count] = {0, 0, 0, 0};
  for (const bool own_b : {false, true}) {
    Given<double> given(own_b);
    gpucholmod_modifications what = given.what();
    what.columns = none;
    what.V.cols = 0;
    what.weights = nullptr;
    const auto R = matrix(static_cast<const double*>(given.R.data()), n, n, n);
    ASSERT_EQ(gpucholmod_solve_modified(R, &what, nullptr, nullptr), GPUCHOLMOD_OK);
    Stored<double> X = own_b ? given.b : given.b.leftCols(m);
    ASSERT_EQ(gpucholmod_solve(R, GPUCHOLMOD_A, matrix(X.data(), n, X.cols(), n), nullptr, nullptr), GPUCHOLMOD_OK);
    for (index_t j = 0; j < m * count; ++j) {
      const double scale = given.scales[size_t(j / m)];
      const index_t from = own_b ? j : j % m;
      const Eigen::Map<const Eigen::VectorXd> x(&given.solution[size_t(n * j)], n);
      EXPECT_LT((scale * x - X.col(from)).norm(), 1e-12 * X.col(from).norm());
      const double quadratic = given.b.col(from).dot(X.col(from)) / scale;
      EXPECT_NEAR(given.quadratic[size_t(j)], quadratic, 1e-12 * std::abs(quadratic));
    }
  }
}

/// Checks that sizes that do not fit, or that no memory has, are refused before anything is read.
TEST(CSolveModifiedArguments, DoNotFit) {
  Given<double> given(true);
  const std::vector<double> before = given.results();
  const auto R = matrix(static_cast<const double*>(given.R.data()), n, n, n);
  constexpr ptrdiff_t huge = std::numeric_limits<ptrdiff_t>::max();
  const auto refused = [&](auto&& set) {
    gpucholmod_modifications what = given.what();
    set(what);
    gpucholmod_status status;
    EXPECT_EQ(gpucholmod_solve_modified(R, &what, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT) << status.message;
    EXPECT_EQ(given.results(), before);
  };
  using What = gpucholmod_modifications;
  refused([](What& what) { what.count = -1; });
  refused([](What& what) { what.count = huge; });
  refused([](What& what) { what.columns = nullptr; });
  refused([](What& what) { what.V.cols -= 1; });
  refused([](What& what) { what.V.rows -= 1; });
  refused([](What& what) { what.V.data = nullptr; });
  refused([](What& what) { what.V.type = GPUCHOLMOD_FLOAT; });
  refused([](What& what) { what.m = -1; });
  refused([](What& what) { what.m = huge; });
  refused([](What& what) { what.m = 3; });
  refused([](What& what) { what.b.rows -= 1; });
  refused([](What& what) { what.b.cols -= 1; });
  refused([](What& what) { what.b.data = nullptr; });
  refused([](What& what) { what.solution.rows -= 1; });
  refused([](What& what) { what.solution.cols -= 1; });
  refused([](What& what) { what.solution.ld = huge; });
  for (const ptrdiff_t many : {ptrdiff_t(-1), huge}) {
    const ptrdiff_t wrong[count] = {1, many, 2, 3};
    refused([&](What& what) { what.columns = wrong; });
  }
  EXPECT_EQ(gpucholmod_solve_modified(R, nullptr, nullptr, nullptr), GPUCHOLMOD_BAD_ARGUMENT);
  const What nothing{0, nullptr, matrix(static_cast<const double*>(nullptr), n, 0, n), nullptr, nullptr, 0, {}, {},
                     nullptr, nullptr, nullptr};
  EXPECT_EQ(gpucholmod_solve_modified(R, &nothing, nullptr, nullptr), GPUCHOLMOD_OK);
}

}  // namespace
}  // namespace gpucholmod::test
