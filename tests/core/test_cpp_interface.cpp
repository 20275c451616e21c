// Included along with the core's headers: no name of gpucholmod.hpp may be a name of the core.
#include <gpucholmod.hpp>

#include "base/held_batch.h"
#include "base/held_factor.h"
#include "base/right_hand_sides.h"
#include "block_columns/segment.h"
#include "cpu/host_factor.h"
#include "cuda/device_factor.h"
#include "modify/modify.h"
#include "modify/solve_modified.h"
#include "paper/host_executor.h"
#include "stream/run.h"
#include "tests.h"

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "c_call.h"
#include "cpp_numbers.h"
#include "matrices.h"

/// gpucholmod.hpp: its results are those of the C functions beneath, and a call that fails throws and changes nothing.
namespace gpucholmod::test {
namespace {

template <class S>
class CppInterface : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CppInterface, Scalars);

constexpr index_t n = Numbers<double>::n, k = Numbers<double>::k;

TYPED_TEST(CppInterface, HoldsAFactor) {
  using S = TypeParam;
  const Numbers<S> given;
  const double eps = double(std::numeric_limits<S>::epsilon());
  Factor F(View(given.R, n, n));
  EXPECT_EQ(F.order(), n);
  EXPECT_EQ(F.type(), sizeof(S) == 8 ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT);
  EXPECT_FALSE(F.on_gpu());
  const View<const double> V(given.wide, n, k);
  F.update(V);
  EXPECT_LT(off(F.numbers(), given.A + given.VV, eps), 30);
  F.update(V, 0.5);
  EXPECT_LT(off(F.numbers(), 0.5L * given.A + 1.5L * given.VV, eps), 30);
  F.downdate(V);
  EXPECT_LT(off(F.numbers(), 0.5L * (given.A + given.VV), eps), 60);
  F.modify(V, std::array<double, k>{-0.5, -0.5, -0.5}, 1);
  EXPECT_LT(off(F.numbers(), 0.5L * given.A, eps), 90);

  // a copy is a factor of its own, and a factor that has been moved from is empty
  Factor other = F, moved = std::move(F);
  other.update(V);
  EXPECT_LT(off(moved.numbers(), 0.5L * given.A, eps), 90);
  EXPECT_EQ(F.order(), 0);
  EXPECT_EQ(code_of([&] { F.log_determinant(); }), GPUCHOLMOD_BAD_ARGUMENT);
  Factor empty, of_empty = empty;
  EXPECT_EQ(of_empty.order(), 0);
  F = other;
  EXPECT_EQ(F.numbers(), other.numbers());
  F = std::move(moved);

  std::vector<S> lower(n * n);
  const std::vector<double> upper = F.numbers();
  F.store(View(lower, n, n), Triangle::lower);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) EXPECT_EQ(double(lower[size_t(i + j * n)]), upper[size_t(j + i * n)]);
  const Factor again(View(lower, n, n), Triangle::lower, on_host, n + 4);
  EXPECT_EQ(again.numbers(), upper);
  EXPECT_EQ(again.capacity(), n + 4);
}

TYPED_TEST(CppInterface, SolvesAndTellsTheDeterminant) {
  using S = TypeParam;
  const Numbers<S> given;
  const Factor F(View(given.R, n, n));
  double log = 0;
  const std::vector<double> diagonal = F.diagonal();
  for (index_t j = 0; j < n; ++j) {
    EXPECT_EQ(diagonal[size_t(j)], double(given.R[size_t(j * (n + 1))]));
    log += 2 * std::log(diagonal[size_t(j)]);
  }
  EXPECT_NEAR(F.log_determinant(), log, 1e-13 * std::abs(log));
  std::vector<double> b(2 * n, 1.5), x = b;
  F.solve(View(x, n, 2));
  const Stored<double> left = given.A.template cast<double>() * Eigen::Map<const Stored<double>>(x.data(), n, 2);
  for (index_t i = 0; i < 2 * n; ++i)
    EXPECT_NEAR(left.data()[i], 1.5, 1e-4 * double(std::numeric_limits<S>::epsilon() / 0x1p-23) + 1e-11);
  F.solve_forward(View(b, n, 2));
  F.solve_back(View(b, n, 2));
  EXPECT_EQ(b, x);
}

TYPED_TEST(CppInterface, ModifiesTheCallersMemory) {
  using S = TypeParam;
  const Numbers<S> given;
  for (const bool lower : {false, true}) {
    constexpr index_t ld = n + 5;
    std::vector<S> memory(ld * (n + 1), S(-3));
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i <= j; ++i) memory[size_t(lower ? j + i * ld : i + j * ld)] = given.R[size_t(i + j * n)];
    const auto upper = [&](index_t m) {
      std::vector<S> R(size_t(m * m));
      for (index_t j = 0; j < m; ++j)
        for (index_t i = 0; i <= j; ++i) R[size_t(i + j * m)] = memory[size_t(lower ? j + i * ld : i + j * ld)];
      return R;
    };
    FactorView<S> F(View<S>(memory.data(), n + 1, n + 1, ld), n, lower ? Triangle::lower : Triangle::upper);
    EXPECT_EQ(F.capacity(), n + 1);
    const View<const S> V(given.V, n, k);
    F.update(V);
    EXPECT_LT(off(upper(n), given.A + given.VV), 30);
    F.downdate(V, 2);
    EXPECT_LT(off(upper(n), 2.0L * given.A + given.VV), 60);
    F.modify(View<const S>(given.V.data(), n, 1), std::array<double, 1>{-1e-3}, 0.5);
    const std::vector<S> before = upper(n);
    std::vector<S> x(n + 1);
    x[2] = 3;
    F.insert(2, x);
    EXPECT_EQ(F.order(), n + 1);
    EXPECT_EQ(F.view().rows(), n + 1);
    EXPECT_NEAR(double(upper(n + 1)[2 + 2 * (n + 1)]), std::sqrt(3), 1e-6);
    EXPECT_EQ(code_of([&] { F.insert(0, std::vector<S>(n + 2, S(1))); }), GPUCHOLMOD_BAD_ARGUMENT);  // no room
    F.remove({2});
    EXPECT_EQ(F.order(), n);
    EXPECT_LT(off(upper(n), gram(Stored<S>(Eigen::Map<const Stored<S>>(before.data(), n, n)))), 30);
    EXPECT_EQ(memory[size_t(lower ? 3 * ld : 3)], S(-3));

    const std::vector<S> all = memory;
    std::vector<S> much = given.V;
    for (S& v : much) v *= 1e4f;
    EXPECT_THROW(F.downdate(View<const S>(much, n, k)), NotPositiveDefinite);
    much[7] = std::numeric_limits<S>::quiet_NaN();
    EXPECT_EQ(code_of([&] { F.update(View<const S>(much, n, k)); }), GPUCHOLMOD_NOT_FINITE);
    EXPECT_EQ(code_of([&] { F.update(View<const S>(much.data(), n - 1, k)); }), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(code_of([&] { F.update(V, -1); }), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(code_of([&] { F.modify(V, std::vector<double>(k + 1)); }), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(code_of([&] { F.remove({n}); }), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(memory, all);
    EXPECT_EQ(F.order(), n);

    std::vector<S> to = memory;
    const std::vector<double> weights(k, 0.5);
    F.modify_into(View<S>(to.data(), n, n, ld), V, weights, 2);
    EXPECT_EQ(memory, all);
    EXPECT_EQ(code_of([&] { F.modify_into(View<S>(to.data(), n, n - 1, ld), V, weights); }), GPUCHOLMOD_BAD_ARGUMENT);
    F.modify(V, weights, 2);
    EXPECT_EQ(to, memory);
  }
  std::vector<S> R = given.R;
  EXPECT_EQ(code_of([&] { FactorView<S>(View(R, n, n), n + 1); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { FactorView<S>(View<S>(R.data(), n, n - 1, n)); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { View(R, n, n - 1); }), GPUCHOLMOD_BAD_ARGUMENT);
  FactorView<S> trusted(View(R, n, n), Triangle::upper, true);
  trusted.update(View<const S>(given.V, n, k));
  EXPECT_LT(off(R, given.A + given.VV), 30);
}

/// Checks that every function of a Factor that fails leaves the factor and right-hand sides as they were.
TYPED_TEST(CppInterface, ThrowsAndChangesNothing) {
  using S = TypeParam;
  const Numbers<S> given;
  Factor F(View(given.R, n, n));
  const std::vector<double> before = F.numbers();
  std::vector<double> z(n + 1, 1), Y(k, 2), rss{5}, nan(n, 0), much = given.wide, b(n - 1), far(n + 1, 0.0);
  const std::vector<double> z_before = z;
  const RightHandSides sides{{z.data(), n, 1, n + 1}, Y, rss};
  for (double& v : much) v *= 1e4;
  nan[3] = std::numeric_limits<double>::quiet_NaN();
  const View<const double> V(given.wide, n, k);
  try {
    F.downdate(View(much, n, k), 1, &sides);
    ADD_FAILURE();
  } catch (const NotPositiveDefinite& failure) {
    EXPECT_GE(failure.pivot(), 1);
    EXPECT_EQ(failure.code(), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  }
  try {
    F.update(nan);
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), GPUCHOLMOD_NOT_FINITE);
    EXPECT_EQ(failure.row(), 4);
    EXPECT_EQ(failure.col(), 1);
  }
  EXPECT_EQ(code_of([&] { F.update(View<const double>(given.wide.data(), n - 1, k)); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.update(View<const double>(given.wide.data(), n, k, n - 1)); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.update(V, 0); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.modify(V, std::vector<double>(k - 1)); }), GPUCHOLMOD_BAD_ARGUMENT);
  const RightHandSides other{View<double>(z.data(), n - 1, 1), Y, rss},
      no_room{View<double>(z.data(), n, 1), View<const double>(Y.data(), 1, 1), rss};
  EXPECT_EQ(code_of([&] { F.update(V, 1, &other); }), GPUCHOLMOD_BAD_ARGUMENT);
  far[0] = -1;
  EXPECT_THROW(F.insert(0, far), NotPositiveDefinite);
  far[0] = 2;
  EXPECT_EQ(code_of([&] { F.insert(n + 1, far); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.insert(0, nan); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.insert(0, far, &no_room); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.remove({3, 2}); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.solve(b); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { F.store(b); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(F.numbers(), before);
  EXPECT_EQ(F.order(), n);
  EXPECT_EQ(z, z_before);
  EXPECT_EQ(rss[0], 5);

  std::vector<S> bad = given.R;
  bad[size_t(4 * (n + 1))] = std::numeric_limits<S>::min() / 4;
  EXPECT_EQ(code_of([&] { Factor(View(bad, n, n)); }), GPUCHOLMOD_BAD_DIAGONAL);
  EXPECT_EQ(code_of([&] { Factor(View(bad, n * n, 1)); }), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(code_of([&] { Factor(View(given.R, n, n), Triangle::upper, any_gpu); }), GPUCHOLMOD_NOT_BUILT);
  EXPECT_EQ(code_of([] { gpu_name(); }), GPUCHOLMOD_NOT_BUILT);
}

/// Checks that rows come and go with the right-hand sides of a regression as by the C functions.
TEST(CppRightHandSides, ComeAlong) {
  const Numbers<double> given;
  Random random(6);
  std::vector<double> z(2 * (n + 1)), Y(2 * k), rss{3, 4};
  for (double& x : z) x = double(random.normal());
  for (double& x : Y) x = double(random.normal());
  std::vector<double> R = given.R, z_c = z, rss_c = rss, z_view = z, rss_view = rss;
  const gpucholmod_right_sides sides = right_sides(z_c.data(), n, 2, n + 1, Y.data(), k, k, rss_c.data());
  ASSERT_EQ(update(0, n, k, R.data(), n, given.V.data(), n, nullptr, 1, &sides, nullptr),
            GPUCHOLMOD_OK);
  Factor F(View(given.R, n, n));
  const RightHandSides with{{z.data(), n, 2, n + 1}, View(Y, k, 2), rss};
  F.update(View(given.V, n, k), 1, &with);
  EXPECT_EQ(z, z_c);
  EXPECT_EQ(rss, rss_c);
  std::vector<double> place = given.R;
  const RightHandSides of_view{{z_view.data(), n, 2, n + 1}, View(Y, k, 2), rss_view};
  FactorView<double>(View(place, n, n)).update(View(given.V, n, k), 1, &of_view);
  EXPECT_EQ(z_view, z_c);
  EXPECT_EQ(place, R);

  std::vector<double> x(n + 1), y{1, 2};
  x[5] = 4;
  const RightHandSides coming{{z.data(), n + 1, 2, n + 1}, View(y, 1, 2), {}};
  F.insert(5, x, &coming);
  EXPECT_EQ(z[5], 0.5);
  EXPECT_EQ(z[n + 6], 1);
  const RightHandSides going{{z.data(), n + 1, 2, n + 1}, {}, {}};
  F.remove({5}, &going);
  for (index_t j = 0; j < 2; ++j)
    for (index_t i = 0; i < n; ++i) EXPECT_NEAR(z[size_t(i + j * (n + 1))], z_c[size_t(i + j * (n + 1))], 1e-13);
}

static_assert(!std::is_convertible_v<std::vector<float>&, View<double>>);
static_assert(!std::is_convertible_v<const std::vector<double>&, View<double>>);
static_assert(std::is_convertible_v<const std::array<double, 3>&, View<const double>>);
static_assert(std::is_convertible_v<View<double>, View<const double>> &&
              !std::is_convertible_v<View<const double>, View<double>>);
static_assert(std::is_nothrow_move_constructible_v<Factor> && std::is_nothrow_swappable_v<Factor>);

}  // namespace
}  // namespace gpucholmod::test
