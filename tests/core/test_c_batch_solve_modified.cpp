#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// gpucholmod_batch_solve_modified(), compared with a copy of the batch that is updated.
namespace gpucholmod::test {
namespace {

template <class S>
class CBatchSolveModified : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CBatchSolveModified, Scalars);

constexpr index_t n = 9, k = 2, m = 3, count = 11, ld = n + 2;

/// A batch, a modification of it, right-hand sides, and room for results.
template <class S>
struct Given {
  gpucholmod_batch* held = nullptr;
  Stored<double> V;
  std::vector<double> weights, scales, quadratic, logdet;
  Padded<S> b, solution;
  std::vector<ptrdiff_t> pivots;

  Given()
      : quadratic(m * count, 5), logdet(count, 5), b(Stored<S>(n, 0), ld), solution(Stored<S>::Zero(n, m * count), ld),
        pivots(count, 5) {
    Random random(43);
    Stored<S> R(n, n * count);
    for (index_t j = 0; j < count; ++j)
      R.middleCols(j * n, n) =
          Matrix(well_conditioned(n, random).template triangularView<Eigen::Upper>()).template cast<S>();
    V = random.normal(n, k * count).template cast<double>() / 4;
    b = Padded<S>(random.normal(n, m * count).template cast<S>(), ld);
    for (index_t q = 0; q < k * count; ++q) weights.push_back(q % k == 1 ? -0.01 : 1 + 0.1 * double(q));
    for (index_t j = 0; j < count; ++j) scales.push_back(j % 2 ? 0.5 : 2);
    EXPECT_EQ(gpucholmod_batch_create(matrix(static_cast<const S*>(R.data()), n, n * count, n), count, nullptr, 0,
                                      nullptr, &held, nullptr),
              GPUCHOLMOD_OK);
  }
  Given(const Given&) = delete;
  ~Given() { gpucholmod_batch_destroy(held); }

  gpucholmod_batch_modification what() const {
    return {k, matrix(V.data(), n, k * count, n), weights.data(), k * count, scales.data(), 0, nullptr};
  }
  gpucholmod_batch_systems wanted(bool common_b = false) {
    return {m,
            matrix(static_cast<const S*>(b.data.data()), n, common_b ? m : m * count, ld),
            matrix(solution.data.data(), n, m * count, ld),
            quadratic.data(),
            logdet.data(),
            pivots.data()};
  }
  int solve(const gpucholmod_batch_systems& wanted, gpucholmod_status* status,
            const gpucholmod_options* options = nullptr) const {
    const gpucholmod_batch_modification changes = what();
    return gpucholmod_batch_solve_modified(held, &changes, &wanted, options, status);
  }
  std::vector<double> factors() const {
    std::vector<double> all(n * n * count);
    EXPECT_EQ(gpucholmod_batch_get(held, matrix(all.data(), n, n * count, n), nullptr, nullptr), GPUCHOLMOD_OK);
    return all;
  }
  std::vector<double> results() const {
    std::vector<double> all(solution.data.begin(), solution.data.end());
    for (const auto* part : {&quadratic, &logdet}) all.insert(all.end(), part->begin(), part->end());
    all.insert(all.end(), pivots.begin(), pivots.end());
    return all;
  }
};

/// The results of a copy that is updated: solutions for the right-hand sides, and determinants.
template <class S>
struct Updated {
  std::vector<S> X = std::vector<S>(n * m * count);
  std::vector<double> logdet = std::vector<double>(count);

  Updated(const Given<S>& given, bool common_b) {
    gpucholmod_batch* copy = nullptr;
    EXPECT_EQ(gpucholmod_batch_copy(given.held, &copy, nullptr), GPUCHOLMOD_OK);
    gpucholmod_batch_modification what = given.what();
    what.independent = 1;
    gpucholmod_batch_update(copy, &what, nullptr, nullptr, nullptr);
    for (index_t c = 0; c < m * count; ++c)
      std::copy_n(given.b.data.data() + (common_b ? c % m : c) * ld, n, X.data() + c * n);
    EXPECT_EQ(gpucholmod_batch_solve(copy, GPUCHOLMOD_A, matrix(X.data(), n, m * count, n), nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_batch_logdet(copy, logdet.data(), nullptr), GPUCHOLMOD_OK);
    gpucholmod_batch_destroy(copy);
  }
};

template <class S>
void expect_results(const Given<S>& given, bool common_b, index_t member) {
  const double eps = 1e3 * double(std::numeric_limits<S>::epsilon());
  const Updated<S> expected(given, common_b);
  EXPECT_NEAR(given.logdet[member], expected.logdet[member], eps);
  for (index_t c = member * m; c < (member + 1) * m; ++c) {
    double quadratic = 0;
    for (index_t i = 0; i < n; ++i) {
      EXPECT_NEAR(double(given.solution.data[i + c * ld]), double(expected.X[i + c * n]), eps);
      quadratic += double(given.b.data[i + (common_b ? c % m : c) * ld]) * double(expected.X[i + c * n]);
    }
    EXPECT_EQ(double(given.solution.data[n + c * ld]), unused);
    EXPECT_NEAR(given.quadratic[c], quadratic, eps * (1 + std::abs(quadratic)));
  }
}

TYPED_TEST(CBatchSolveModified, SolvesAsAnUpdatedCopyDoes) {
  for (const bool common_b : {false, true}) {
    Given<TypeParam> given;
    const std::vector<double> before = given.factors();
    gpucholmod_status status;
    ASSERT_EQ(given.solve(given.wanted(common_b), &status), GPUCHOLMOD_OK) << status.message;
    EXPECT_EQ(given.pivots, std::vector<ptrdiff_t>(count, 0));
    for (index_t j = 0; j < count; ++j) expect_results(given, common_b, j);
    EXPECT_EQ(given.factors(), before);

    const std::vector<double> all = given.results();
    gpucholmod_batch_systems some = given.wanted(common_b);
    some.solution = {};
    some.pivots = nullptr;
    std::fill(given.quadratic.begin(), given.quadratic.end(), 5);
    ASSERT_EQ(given.solve(some, &status), GPUCHOLMOD_OK) << status.message;
    gpucholmod_options threads = GPUCHOLMOD_OPTIONS_INIT;
    threads.threads = 2;
    std::fill(given.logdet.begin(), given.logdet.end(), 5);
    const gpucholmod_batch_systems determinants{0, {}, {}, nullptr, given.logdet.data(), nullptr};
    ASSERT_EQ(given.solve(determinants, &status, &threads), GPUCHOLMOD_OK) << status.message;
    EXPECT_EQ(given.results(), all);
  }
}

TYPED_TEST(CBatchSolveModified, MembersThatFailAreNaN) {
  Given<TypeParam> given;
  for (const index_t j : {3, 7}) given.V.col(j * k + 1).setConstant(100);
  const std::vector<double> before = given.factors();
  gpucholmod_status status;
  EXPECT_EQ(given.solve(given.wanted(), &status), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(status.member, 4);
  EXPECT_EQ(status.pivot, given.pivots[3]);
  for (index_t j = 0; j < count; ++j) {
    const bool failed = j == 3 || j == 7;
    EXPECT_EQ(given.pivots[j] > 0, failed);
    EXPECT_EQ(std::isnan(given.logdet[j]), failed);
    for (index_t c = j * m; c < (j + 1) * m; ++c) {
      EXPECT_EQ(std::isnan(given.quadratic[c]), failed);
      for (index_t i = 0; i < n; ++i) EXPECT_EQ(std::isnan(given.solution.data[i + c * ld]), failed);
    }
    if (!failed) expect_results(given, false, j);
  }
  EXPECT_EQ(given.factors(), before);
}

TYPED_TEST(CBatchSolveModified, RefusesWhatItCannotUse) {
  constexpr ptrdiff_t huge = std::numeric_limits<ptrdiff_t>::max();
  Given<TypeParam> given;
  const std::vector<double> before = given.factors(), untold = given.results();
  gpucholmod_status status;
  const auto refused = [&](int code, const std::string& argument, int expected = GPUCHOLMOD_BAD_ARGUMENT) {
    EXPECT_EQ(code, expected) << status.message;
    EXPECT_EQ(status.argument, argument);
    EXPECT_EQ(given.factors(), before);
    EXPECT_EQ(given.results(), untold);
  };
  using Wanted = gpucholmod_batch_systems;
  const auto solve = [&](auto&& set) {
    Wanted wanted = given.wanted();
    set(wanted);
    return given.solve(wanted, &status);
  };
  const gpucholmod_batch_modification what = given.what();
  const Wanted wanted = given.wanted();
  refused(gpucholmod_batch_solve_modified(nullptr, &what, &wanted, nullptr, &status), "batch");
  refused(gpucholmod_batch_solve_modified(given.held, nullptr, &wanted, nullptr, &status), "what");
  refused(gpucholmod_batch_solve_modified(given.held, &what, nullptr, nullptr, &status), "wanted");
  for (const ptrdiff_t far : {ptrdiff_t(-1), huge}) {
    refused(solve([&](Wanted& w) { w.m = far; }), "wanted->m");
    refused(solve([&](Wanted& w) { w.b.cols = far; }), "wanted->b");
    refused(solve([&](Wanted& w) { w.solution.cols = far; }), "wanted->solution");
    refused(solve([&](Wanted& w) { w.solution.rows = far; }), "wanted->solution");
  }
  refused(solve([&](Wanted& w) { w.m = m - 1; }), "wanted->b");
  refused(solve([&](Wanted& w) { w.b.rows = n - 1; }), "wanted->b");
  refused(solve([&](Wanted& w) { w.b.data = nullptr; }), "wanted->b");
  refused(solve([&](Wanted& w) { w.solution.cols = m; }), "wanted->solution");
  refused(solve([&](Wanted& w) { w.solution.data = nullptr; }), "wanted->solution");
  gpucholmod_options other = GPUCHOLMOD_OPTIONS_INIT;
  other.triangle = GPUCHOLMOD_LOWER;
  EXPECT_EQ(given.solve(wanted, &status, &other), GPUCHOLMOD_BAD_ARGUMENT);
  given.b.data[size_t(4 * ld + 2)] = std::numeric_limits<TypeParam>::infinity();
  refused(given.solve(wanted, &status), "wanted->b", GPUCHOLMOD_NOT_FINITE);
  EXPECT_EQ(status.member, 2);
  EXPECT_EQ(status.row, 3);
  EXPECT_EQ(status.col, 2);
  given.b.data[size_t(4 * ld + 2)] = 1;
  given.V(1, 5) = std::numeric_limits<double>::quiet_NaN();
  refused(given.solve(wanted, &status), "what->V", GPUCHOLMOD_NOT_FINITE);
  EXPECT_EQ(status.member, 3);
}

}  // namespace
}  // namespace gpucholmod::test
