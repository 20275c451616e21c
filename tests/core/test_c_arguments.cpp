#include <gpucholmod.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "c/interface.h"
#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// The arguments of the C interface: sizes, and the numbers of right-hand sides.
namespace gpucholmod::test {
namespace {

constexpr ptrdiff_t huge = std::numeric_limits<ptrdiff_t>::max();
const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();

struct Held {
  gpucholmod_factor* factor = nullptr;
  Held() = default;
  explicit Held(const Stored<double>& R, index_t capacity = 0) {
    EXPECT_EQ(create(0, R.cols(), R.data(), R.cols(), capacity, &factor, nullptr),
              GPUCHOLMOD_OK);
  }
  ~Held() { gpucholmod_factor_destroy(factor); }
  Stored<double> upper() const {
    Stored<double> R(gpucholmod_factor_order(factor), gpucholmod_factor_order(factor));
    EXPECT_EQ(get(factor, 0, R.data(), R.cols(), nullptr), GPUCHOLMOD_OK);
    return R;
  }
};

/// Checks that sizes whose products overflow, and sizes of missing matrices, are errors before anything is read.
TEST(CArguments, SizesThatNoMemoryHas) {
  const double one = 1;
  gpucholmod_status status;
  for (const ptrdiff_t capacity : {ptrdiff_t(1) << 30, ptrdiff_t(1) << 31, (ptrdiff_t(1) << 32) - 1, ptrdiff_t(1) << 32,
                                   ptrdiff_t(1) << 61, huge}) {
    Held of_double, of_float;
    const float one_float = 1;
    EXPECT_EQ(create(0, 1, &one, 1, capacity, &of_double.factor, &status),
              GPUCHOLMOD_OUT_OF_MEMORY)
        << capacity;
    EXPECT_EQ(create(0, 1, &one_float, 1, capacity, &of_float.factor, &status),
              GPUCHOLMOD_OUT_OF_MEMORY)
        << capacity;
    EXPECT_EQ(of_double.factor, nullptr);
    EXPECT_EQ(of_float.factor, nullptr);
    try {
      const Factor made(View<const double>(&one, 1, 1), Triangle::upper, on_host, capacity);
      ADD_FAILURE();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), GPUCHOLMOD_OUT_OF_MEMORY);
    }
  }

  Held held(Stored<double>(Stored<double>::Identity(1, 1)));
  double R[4] = {1, 1, 1, 1}, B[2] = {3, 4}, z[2] = {1, 1}, Y[2] = {1, 1};
  const ptrdiff_t gone = 0;
  const auto refused = [&](int code) {
    EXPECT_EQ(code, GPUCHOLMOD_BAD_ARGUMENT) << status.message;
    EXPECT_NE(status.message[0], 0);
  };
  Held none;
  for (const ptrdiff_t far : {huge, huge - 1, huge / 2, huge / 8 + 1, ptrdiff_t(1) << 60}) {
    const auto sides_of = [&](index_t rows) {
      return std::vector<gpucholmod_right_sides>{right_sides(z, rows, 1, far, Y, 1, 1, nullptr),
                                                 right_sides(z, rows, 1, 2, Y, 1, far, nullptr),
                                                 right_sides(z, rows, far, 2, Y, 1, 2, nullptr)};
    };
    SCOPED_TRACE(far);
    refused(create(0, 1, R, far, 1, &none.factor, &status));
    refused(create(0, far, R, far, 1, &none.factor, &status));
    refused(update(0, 1, 1, R, far, B, 1, nullptr, 1, nullptr, &status));
    refused(update(0, 1, 1, R, 1, B, far, nullptr, 1, nullptr, &status));
    refused(update(0, 1, far, R, 1, B, 1, B, 1, nullptr, &status));
    refused(update(held.factor, far, B, 1, B, 1, nullptr, &status));
    refused(update(held.factor, 1, B, far, nullptr, 1, nullptr, &status));
    refused(insert(held.factor, 0, far, B, far, nullptr, &status));
    refused(insert(held.factor, 0, far, nullptr, huge, nullptr, &status));
    refused(insert(held.factor, 0, 1, B, far, nullptr, &status));
    refused(insert(0, 1, 0, far, R, huge, B, huge, nullptr, &status));
    refused(insert(0, 1, 0, 1, R, far, B, 2, nullptr, &status));
    refused(insert(0, 1, 0, 1, R, 2, B, far, nullptr, &status));
    refused(remove(0, 1, 1, &gone, R, far, nullptr, &status));
    refused(remove(0, far, 1, &gone, R, far, nullptr, &status));
    refused(remove(held.factor, far, &gone, nullptr, &status));
    refused(solve(held.factor, GPUCHOLMOD_A, far, B, 1, &status));
    refused(solve(held.factor, GPUCHOLMOD_A, 1, B, far, &status));
    refused(get(held.factor, 0, R, far, &status));
    for (const gpucholmod_right_sides& sides : sides_of(1)) {
      refused(update(0, 1, 1, R, 1, B, 1, nullptr, 1, &sides, &status));
      refused(update(held.factor, 1, B, 1, nullptr, 1, &sides, &status));
    }
    for (const gpucholmod_right_sides& sides : sides_of(2))
      refused(insert(held.factor, 0, 1, B, 2, &sides, &status));
    // matrices without rows, with many columns
    const gpucholmod_right_sides empty = right_sides(nullptr, 0, far, 0, nullptr, 0, 0, nullptr);
    EXPECT_EQ(update<double>(0, 0, far, nullptr, 0, nullptr, 0, nullptr, 1, nullptr, &status), GPUCHOLMOD_OK);
    EXPECT_EQ(update<double>(0, 0, 0, nullptr, 0, nullptr, 0, nullptr, 1, &empty, &status), GPUCHOLMOD_OK);
    refused(update<double>(0, 0, far, nullptr, 0, nullptr, 0, B, 1, nullptr, &status));
    EXPECT_EQ(gpucholmod_workspace(far, far, GPUCHOLMOD_DOUBLE), SIZE_MAX);
    EXPECT_EQ(gpucholmod_workspace(4, far, GPUCHOLMOD_DOUBLE), SIZE_MAX);
  }
  const gpucholmod_right_sides no_sides{};
  EXPECT_EQ(update(held.factor, 0, nullptr, 1, nullptr, 1, &no_sides, &status), GPUCHOLMOD_OK);
  EXPECT_EQ(insert(held.factor, 0, 0, nullptr, 1, &no_sides, &status), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_workspace(-1, 1, GPUCHOLMOD_DOUBLE), 0u);
  EXPECT_EQ(gpucholmod_workspace(0, 0, GPUCHOLMOD_DOUBLE), 64u);
  EXPECT_EQ(gpucholmod_workspace(2, 3, GPUCHOLMOD_DOUBLE), 64u + 72u);
  refused(solve(held.factor, GPUCHOLMOD_A, ptrdiff_t(1) << 31, B, 1, &status));
  refused(insert<double>(0, 0, 0, 1, nullptr, 1, B, 1, nullptr, &status));
  const gpucholmod_right_sides no_room = right_sides(nullptr, 2, 1, 2, Y, 1, 1, nullptr);
  refused(insert(held.factor, 0, 1, B, 2, &no_room, &status));
  EXPECT_EQ(none.factor, nullptr);
  EXPECT_EQ(held.upper()(0, 0), 1);
  EXPECT_EQ(R[0], 1);
  EXPECT_THROW(View<double>(std::vector<double>(), ptrdiff_t(1) << 32, ptrdiff_t(1) << 32), Failure);
  EXPECT_THROW(View<double>(std::vector<double>(6), -2, -3), Failure);
  EXPECT_THROW(FactorView<double>(View<double>(R, 2, 2)).update(View<const double>(B, 2, huge)), Failure);
  EXPECT_THROW(Factor(View<const double>(R, 1, 1)).insert(0, View<const double>(B, 0, huge)), Failure);
}

/// Matrices without rows, whose columns may be null, whatever the leading dimension.
TEST(CArguments, HaveNoRows) {
  const Held held(Stored<double>(0, 0));
  double* const nowhere = nullptr;
  const gpucholmod_matrix two = matrix(nowhere, 0, 2, 3);
  const gpucholmod_const_matrix V = gpucholmod_as_const(two);
  const double Y[] = {1, 2, 3, 4};
  const gpucholmod_right_sides sides = {two, matrix(Y, 2, 2, 2), nullptr};
  const gpucholmod_matrix R = matrix(nowhere, 0, 0, 3);
  EXPECT_EQ(gpucholmod_update(R, V, nullptr, 1, &sides, nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_factor_update(held.factor, V, nullptr, 1, &sides, nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_solve(gpucholmod_as_const(R), GPUCHOLMOD_A, two, nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_factor_solve(held.factor, GPUCHOLMOD_A, two, nullptr), GPUCHOLMOD_OK);
  const auto view = c::view<double>("V", V);
  EXPECT_EQ(view.col(1), nowhere);
}

/// Sizes that a matrix may well have, but that do not fit the other sizes: errors, before anything is read.
TEST(CArguments, SizesThatDoNotFit) {
  constexpr ptrdiff_t far = 100000000, one = 1;
  double R[] = {2, 0, 1, 3}, w[] = {1, 1}, bad[] = {nan};
  const gpucholmod_const_matrix of_R = gpucholmod_as_const(matrix(R, 2, 2, 2)),
                                v = gpucholmod_as_const(matrix(w, 2, 1, 2)),
                                tall = gpucholmod_as_const(matrix(w, far, 1, far)),
                                wide = gpucholmod_as_const(matrix(w, 2, far, 2));
  const Held held(Eigen::Map<const Stored<double>>(R, 2, 2));
  gpucholmod_batch *batch = nullptr, *made = nullptr;
  ASSERT_EQ(gpucholmod_batch_create(of_R, 1, nullptr, 0, nullptr, &batch, nullptr), GPUCHOLMOD_OK);
  gpucholmod_status status;
  const auto refused = [&](int code) { EXPECT_EQ(code, GPUCHOLMOD_BAD_ARGUMENT) << status.message; };
  refused(gpucholmod_factor_insert(held.factor, 0, tall, nullptr, nullptr, &status));
  refused(gpucholmod_insert(matrix(R, 2, 2, 2), 0, tall, nullptr, nullptr, &status));
  refused(gpucholmod_batch_create(wide, 1, nullptr, 0, nullptr, &made, &status));
  refused(gpucholmod_batch_solve(batch, GPUCHOLMOD_A, matrix(w, far, 1, far), &status));
  for (const gpucholmod_const_matrix& V : {tall, wide}) {
    const gpucholmod_batch_modification what{1, V, nullptr, 0, nullptr, 0, nullptr};
    refused(gpucholmod_batch_update(batch, &what, nullptr, nullptr, &status));
    double logdet;
    gpucholmod_modifications several{1, &one, V, w, nullptr, 0, {}, {}, nullptr, &logdet, nullptr};
    refused(gpucholmod_solve_modified(of_R, &several, nullptr, &status));
    several.V = v;
    several.m = 1;
    several.b = V;
    refused(gpucholmod_factor_solve_modified(held.factor, &several, nullptr, &status));
  }
  // sizes of right-hand sides are checked before weights and R
  const gpucholmod_right_sides sides = right_sides(w, 2, 1, 2, w, 7, 7, nullptr);
  refused(gpucholmod_update(matrix(R, 2, 2, 2), v, bad, 1, &sides, nullptr, &status));
  EXPECT_NE(std::string(status.message).find("sides->Y"), std::string::npos);
  double X[] = {1, 1, 1}, unsound[] = {nan, 0, 0, 1, 3, 0, 1, 1, 1};
  refused(gpucholmod_insert(matrix(unsound, 3, 3, 3), 0, gpucholmod_as_const(matrix(X, 3, 1, 3)), &sides, nullptr,
                            &status));
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(held.upper()(1, 1), 3);
  EXPECT_EQ(R[3], 3);
  gpucholmod_batch_destroy(batch);
}

/// Checks that solutions that are too large for doubles are not finite, as gpucholmod.h says.
TEST(CArguments, SolutionsBeyondDoubles) {
  const double tiny[] = {1e-160};
  double b[] = {1e300}, inverse[] = {0};
  const gpucholmod_const_matrix R = matrix(tiny, 1, 1, 1);
  EXPECT_EQ(gpucholmod_solve(R, GPUCHOLMOD_A, matrix(b, 1, 1, 1), nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_inverse(R, matrix(inverse, 1, 1, 1), nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_FALSE(std::isfinite(b[0]));
  EXPECT_FALSE(std::isfinite(inverse[0]));
}

/// A function that modifies right-hand sides along with a factor of order 3. z has room for one more row.
struct WithSides {
  const char* name;
  index_t k;     ///< rows of Y
  index_t rows;  ///< rows of z
  int (*call)(gpucholmod_factor* held, double* memory, const gpucholmod_right_sides* sides, gpucholmod_status* status);

  /// Returns m right-hand sides; z has columns of 4 numbers, Y of 2.
  gpucholmod_right_sides sides(std::vector<double>& z, index_t m, const std::vector<double>& Y, double* rss) const {
    return right_sides(z.data(), rows, m, 4, Y.data(), k, 2, rss);
  }
};
constexpr double some_V[] = {0.5, 0.25, -0.5, 0.125, 1, 0.5}, some_X[] = {0.1, 9, 0.2, 0.3};
constexpr ptrdiff_t second = 1;
const std::vector<WithSides> with_sides{
    {"update, memory", 2, 3,
     [](gpucholmod_factor*, double* R, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return update(0, 3, 2, R, 4, some_V, 3, nullptr, 1, sides, status);
     }},
    {"insert, memory", 1, 4,
     [](gpucholmod_factor*, double* R, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return insert(0, 3, 1, 1, R, 4, some_X, 4, sides, status);
     }},
    {"insert, no rows", 0, 3,
     [](gpucholmod_factor*, double* R, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return insert(0, 3, 1, 0, R, 4, nullptr, 4, sides, status);
     }},
    {"remove, memory", 0, 3,
     [](gpucholmod_factor*, double* R, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return remove(0, 3, 1, &second, R, 4, sides, status);
     }},
    {"modify", 2, 3,
     [](gpucholmod_factor* held, double*, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return update(held, 2, some_V, 3, nullptr, 1, sides, status);
     }},
    {"modify, no columns", 0, 3,
     [](gpucholmod_factor* held, double*, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return update(held, 0, nullptr, 3, nullptr, 0.5, sides, status);
     }},
    {"insert", 1, 4,
     [](gpucholmod_factor* held, double*, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return insert(held, 1, 1, some_X, 4, sides, status);
     }},
    {"remove", 0, 3,
     [](gpucholmod_factor* held, double*, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
       return remove(held, 1, &second, sides, status);
     }}};

/// Checks that every function refuses z and Y that are not finite.
TEST(CArguments, RightHandSidesAreFinite) {
  const std::vector<double> memory{4, 9, 9, 9, 0.1, 5, 9, 9, 0.2, 0.3, 6, 9, 9, 9, 9, 9};
  const Stored<double> R =
      Eigen::Map<const Stored<double>>(memory.data(), 4, 4).topLeftCorner(3, 3).triangularView<Eigen::Upper>();
  for (const WithSides& function : with_sides)
    for (const double bad : {nan, infinite, -infinite})
      for (const bool in_z : {true, false}) {
        if (!in_z && function.k == 0) continue;
        SCOPED_TRACE(function.name);
        std::vector<double> here = memory, z(8, 2), Y(4, 1), rss{3, 4};
        (in_z ? z[6] : Y[size_t(2 + function.k - 1)]) = bad;
        const std::vector<double> z_before = z;
        const gpucholmod_right_sides sides = function.sides(z, 2, Y, rss.data());
        const Held held(R);
        gpucholmod_status status;
        EXPECT_EQ(function.call(held.factor, here.data(), &sides, &status), GPUCHOLMOD_NOT_FINITE) << status.message;
        EXPECT_EQ(status.row, in_z ? 3 : function.k);
        EXPECT_EQ(status.col, 2);
        EXPECT_EQ(here, memory);
        EXPECT_EQ(std::memcmp(z.data(), z_before.data(), sizeof(double) * z.size()), 0);
        EXPECT_EQ(rss, (std::vector<double>{3, 4}));
        EXPECT_TRUE(same_bits(held.upper(), R));
      }
}

/// Checks a z that is finite, but not in floats, in every function that takes a factor of floats.
TEST(CArguments, RightHandSidesFitTheFactor) {
  const float R[] = {2, 0, 0, 0.5f, 2, 0, 0.5f, 0.5f, 2};
  for (const WithSides& function : with_sides) {
    Held held;
    ASSERT_EQ(create(0, 3, R, 3, 4, &held.factor, nullptr), GPUCHOLMOD_OK);
    if (std::string(function.name).find("memory") != std::string::npos ||
        std::string(function.name).find("no ") != std::string::npos)
      continue;
    SCOPED_TRACE(function.name);
    std::vector<double> z{1, 1, 1e100, 1}, Y(2, 1);
    const gpucholmod_right_sides sides = function.sides(z, 1, Y, nullptr);
    gpucholmod_status status;
    EXPECT_EQ(function.call(held.factor, nullptr, &sides, &status), GPUCHOLMOD_OVERFLOW) << status.message;
    EXPECT_EQ(status.row, 3);
    EXPECT_EQ(z[2], 1e100);
  }
}

/// Checks that a residual sum of squares that is NaN, as a call may leave it, stays NaN and changes no other result.
TEST(CArguments, TakesAResidualSumThatIsNaN) {
  const std::vector<double> memory{4, 9, 9, 9, 0.1, 5, 9, 9, 0.2, 0.3, 6, 9, 9, 9, 9, 9};
  const Stored<double> R =
      Eigen::Map<const Stored<double>>(memory.data(), 4, 4).topLeftCorner(3, 3).triangularView<Eigen::Upper>();
  for (const WithSides& function : with_sides) {
    SCOPED_TRACE(function.name);
    std::vector<double> z(8, 2), Y(4, 1), rss{30, 40}, here = memory;
    std::vector<double> other_z = z, other_rss{nan, 40}, other_here = memory;
    const gpucholmod_right_sides sides = function.sides(z, 2, Y, rss.data()),
                                 other = function.sides(other_z, 2, Y, other_rss.data());
    const Held held(R), other_held(R);
    gpucholmod_status status;
    EXPECT_EQ(function.call(held.factor, here.data(), &sides, &status), GPUCHOLMOD_OK) << status.message;
    EXPECT_EQ(function.call(other_held.factor, other_here.data(), &other, &status), GPUCHOLMOD_OK) << status.message;
    EXPECT_TRUE(std::isnan(other_rss[0]));
    EXPECT_EQ(other_rss[1], rss[1]);
    EXPECT_EQ(other_z, z);
    EXPECT_EQ(other_here, here);
    EXPECT_TRUE(same_bits(other_held.upper(), held.upper()));
    rss[0] = -1;
    EXPECT_EQ(function.call(held.factor, here.data(), &sides, &status), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(rss[0], -1);
  }
  // a sum that would become negative is left as NaN, which the next call takes
  Held held(R);
  std::vector<double> z(3, 0), Y{1000}, rss{1};
  const double weight = -1e-4;
  const gpucholmod_right_sides sides = right_sides(z.data(), 3, 1, 3, Y.data(), 1, 1, rss.data());
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(update(held.factor, 1, some_V, 3, &weight, 1, &sides, nullptr), GPUCHOLMOD_OK);
    EXPECT_TRUE(std::isnan(rss[0]));
  }
}

}  // namespace
}  // namespace gpucholmod::test
