#include <gpucholmod.hpp>

#include <array>
#include <limits>
#include <vector>

#include "cpp_numbers.h"
#include "tests.h"

/// gpucholmod.hpp: the results of a FactorView, and batches.
namespace gpucholmod::test {
namespace {

template <class S>
class CppMemory : public testing::Test {};
template <class S>
class CppBatch : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CppMemory, Scalars);
TYPED_TEST_SUITE(CppBatch, Scalars);

constexpr index_t n = Numbers<double>::n, k = Numbers<double>::k;

/// Checks that a FactorView computes the results of a Factor of the same numbers; and that A is factorised and shifted.
TYPED_TEST(CppMemory, ComputesInTheCallersMemory) {
  using S = TypeParam;
  const Numbers<S> given;
  const double eps = double(std::numeric_limits<S>::epsilon());
  Factor F(View(given.R, n, n));
  for (const Triangle triangle : {Triangle::upper, Triangle::lower}) {
    std::vector<S> R(n * n), b(2 * n, S(1.5)), inverse(n * n);
    F.store(View(R, n, n), triangle);
    FactorView<S> view(View(R, n, n), triangle, true);
    view.set_threads(all_threads);
    EXPECT_NEAR(view.log_determinant(), F.log_determinant(), 1e-12);
    EXPECT_NEAR(view.rcond(), F.rcond(), 1e-12);
    std::vector<S> x = b;
    view.solve(View(x, n, 2));
    view.solve_forward(View(b, n, 2));
    view.solve_back(View(b, n, 2));
    view.inverse(View(inverse, n, n));
    std::vector<double> of_F(2 * n, 1.5);
    F.solve(View(of_F, n, 2));
    const std::vector<double> inverse_of_F = F.inverse();
    for (size_t i = 0; i < size_t(2 * n); ++i) {
      EXPECT_NEAR(double(x[i]), of_F[i], 1e3 * eps);
      EXPECT_NEAR(double(b[i]), of_F[i], 1e3 * eps);
    }
    for (size_t i = 0; i < size_t(n * n); ++i) EXPECT_NEAR(double(inverse[i]), inverse_of_F[i], 1e3 * eps);

    Factor shifted = F;
    shifted.shift(2, 9);
    view.shift(2, 9);
    std::vector<S> of_shifted(n * n);
    shifted.store(View(of_shifted, n, n), triangle);
    EXPECT_EQ(R, of_shifted);
    view.shift(9, 2);
    const Stored<S> A = given.A.template cast<S>();
    std::vector<S> made(A.data(), A.data() + n * n);
    factorise(View(made, n, n), triangle);
    Stored<S> U = Eigen::Map<const Stored<S>>(made.data(), n, n);
    if (triangle == Triangle::lower) U.transposeInPlace();
    EXPECT_LT(off(std::vector<S>(U.data(), U.data() + n * n), A.template cast<real>(), eps), 30);
    made[0] = -1;
    EXPECT_EQ(code_of([&] { factorise(View(made, n, n), triangle); }), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  }
}

/// Checks calls without right-hand sides, for a V that is wider than that of the call before.
TYPED_TEST(CppMemory, TakesNoRightHandSides) {
  using S = TypeParam;
  const Numbers<S> given;
  std::vector<S> R = given.R, expected = given.R;
  FactorView<S> F(View(R, n, n)), other(View(expected, n, n));
  const std::vector<double> Y(k);
  const RightHandSides sides{View<double>(nullptr, n, 0), View<const double>(Y.data(), k, 0), {}};
  for (const index_t columns : {index_t(1), k}) {
    const View<const S> V(given.V.data(), n, columns);
    F.update(V, 1, columns == k ? &sides : nullptr);
    other.update(V);
  }
  EXPECT_EQ(R, expected);
}

/// Members of a batch, compared with factors that are modified alone.
TYPED_TEST(CppBatch, ModifiesABatch) {
  using S = TypeParam;
  const Numbers<S> given;
  const double eps = double(std::numeric_limits<S>::epsilon());
  constexpr index_t count = 3;
  std::vector<S> all;
  for (index_t j = 0; j < count; ++j) all.insert(all.end(), given.R.begin(), given.R.end());
  Batch batch(View(all, n, n * count), count), empty;
  EXPECT_EQ(batch.count(), count);
  EXPECT_EQ(batch.order(), n);
  EXPECT_FALSE(batch.on_gpu());
  EXPECT_EQ(empty.count(), 0);
  EXPECT_EQ(code_of([&] { empty.log_determinants(); }), GPUCHOLMOD_BAD_ARGUMENT);
  batch.set_threads(2);
  const View<const double> V(given.wide, n, k);
  batch.modify(k, V, {}, std::array<double, count>{1, 0.5, 2});
  std::vector<S> made(all.size());
  batch.store(View(made, n, n * count));
  const std::vector<double> logdet = batch.log_determinants();
  for (index_t j = 0; j < count; ++j) {
    const Matrix A = given.A * std::array<real, count>{1, 0.5L, 2}[size_t(j)] + given.VV;
    const std::vector<S> R(made.begin() + j * n * n, made.begin() + (j + 1) * n * n);
    EXPECT_LT(off(R, A, eps), 30);
    EXPECT_NEAR(logdet[size_t(j)], Factor(View(R, n, n)).log_determinant(), 1e-12);
  }

  // weights by which the second member fails
  std::vector<double> weights(k * count, 0.25);
  weights[k] = -1e9;
  std::vector<double> wide;
  for (index_t j = 0; j < count; ++j) wide.insert(wide.end(), given.wide.begin(), given.wide.end());
  const View<const double> of_each(wide, n, k * count);
  Batch copy = batch;
  try {
    batch.modify(k, of_each, weights);
    ADD_FAILURE();
  } catch (const NotPositiveDefinite& failure) {
    EXPECT_EQ(failure.member(), 2);
    EXPECT_GE(failure.pivot(), 1);
  }
  EXPECT_EQ(batch.log_determinants(), logdet);
  const std::vector<std::ptrdiff_t> pivots = copy.modify_each(k, of_each, weights);
  const std::vector<double> changed = copy.log_determinants();
  for (const size_t j : {0, 1, 2}) {
    EXPECT_EQ(pivots[j] > 0, j == 1);
    EXPECT_EQ(changed[j] == logdet[j], j == 1);
  }
  // weights of each member as columns of a matrix, and views of weights that a call cannot read
  Batch by_matrix = batch;
  EXPECT_EQ(by_matrix.modify_each(k, of_each, View<const double>(weights, k, count)), pivots);
  EXPECT_EQ(by_matrix.log_determinants(), changed);
  const std::vector<double> gaps((k + 1) * count, 0.25);
  for (const View<const double>& wrong :
       {View<const double>(gaps.data(), k, count, k + 1), View<const double>(gaps.data(), k, 2),
        View<const double>(gaps.data(), 1, k)})
    EXPECT_EQ(code_of([&] { by_matrix.modify(k, of_each, wrong); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(by_matrix.log_determinants(), changed);
  std::vector<double> b(n * count, 1.5), alone(n, 1.5);
  batch.solve(View(b, n, count));
  Factor(View(std::vector<S>(made.begin(), made.begin() + n * n), n, n)).solve(alone);
  for (size_t i = 0; i < size_t(n); ++i) EXPECT_NEAR(b[i], alone[i], 1e3 * eps);
  EXPECT_EQ(code_of([&] { batch.modify(k, V, {}, std::vector<double>{1}); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { Batch(View(all, n, n * count), count + 1); }), GPUCHOLMOD_BAD_ARGUMENT);
}

/// Solutions, compared with those of a copy that is modified.
TYPED_TEST(CppBatch, SolvesWithModifiedMembers) {
  using S = TypeParam;
  const Numbers<S> given;
  const double eps = 1e3 * double(std::numeric_limits<S>::epsilon());
  constexpr index_t count = 3, m = 2;
  std::vector<S> all;
  std::vector<double> weights;
  for (index_t j = 0; j < count; ++j) {
    all.insert(all.end(), given.R.begin(), given.R.end());
    weights.insert(weights.end(), {1, j == 1 ? -1e9 : 0.5, 2});
  }
  const Batch batch(View(all, n, n * count), count);
  const View<const double> V(given.wide, n, k);
  const std::vector<double> b(n * m * count, 1.5), scales{1, 0.5, 2}, before = batch.log_determinants();
  for (const index_t cols : {m, m * count}) {
    Batch copy = batch;
    const std::vector<std::ptrdiff_t> pivots = copy.modify_each(k, V, weights, scales);
    std::vector<double> expected(b);
    copy.solve(View(expected, n, m * count));
    const std::vector<double> logdet = copy.log_determinants();
    const BatchSolutions made = batch.solve_modified(k, V, m, View(b.data(), n, cols), weights, scales);
    EXPECT_EQ(made.pivots, pivots);
    EXPECT_GT(pivots[1], 0);
    for (size_t j = 0; j < size_t(count); ++j) {
      EXPECT_EQ(std::isnan(made.logdet[j]), j == 1);
      if (j != 1) { EXPECT_NEAR(made.logdet[j], logdet[j], eps); }
      for (size_t s = m * j; s < size_t(m) * (j + 1); ++s) {
        double quadratic = 0;
        for (size_t i = s * n; i < (s + 1) * size_t(n); ++i) {
          quadratic += 1.5 * expected[i];
          EXPECT_EQ(std::isnan(made.solution[i]), j == 1);
          if (j != 1) { EXPECT_NEAR(made.solution[i], expected[i], eps); }
        }
        EXPECT_EQ(std::isnan(made.quadratic[s]), j == 1);
        if (j != 1) { EXPECT_NEAR(made.quadratic[s], quadratic, eps * std::abs(quadratic)); }
      }
    }
  }
  EXPECT_EQ(batch.log_determinants(), before);
  EXPECT_EQ(batch.solve_modified(k, V, 0, {}).logdet.size(), size_t(count));
  for (const index_t wrong : {-1, 3})
    EXPECT_EQ(code_of([&] { batch.solve_modified(k, V, wrong, View(b.data(), n, m)); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { batch.solve_modified(k, V, 1, View(b.data(), n, m)); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { batch.solve_modified(k, V, m, View(b.data(), n - 1, m)); }), GPUCHOLMOD_BAD_ARGUMENT);
}

}  // namespace
}  // namespace gpucholmod::test
