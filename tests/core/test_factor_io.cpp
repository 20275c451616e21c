#include "base/factor_io.h"

#include <gtest/gtest.h>

#include "call.h"

namespace gpucholmod::test {
namespace {

constexpr double NaN = std::numeric_limits<double>::quiet_NaN(), Inf = std::numeric_limits<double>::infinity();

template <class S>
MatrixView<S> view(Stored<S>& M) {
  return {M.data(), M.rows(), M.cols(), M.rows()};
}
template <class S>
MatrixView<const S> read(const Stored<S>& M) {
  return {M.data(), M.rows(), M.cols(), M.rows()};
}

/// Returns an upper factor with NaN, Inf and rubbish in entries that nobody may read.
template <class S>
Stored<S> factor_with_rubbish(index_t n, real scale = 1) {
  Random random(11);
  Stored<S> R = (scale * well_conditioned(n, random)).template cast<S>();
  for (index_t j = 0; j < n; ++j)
    for (index_t i = j + 1; i < n; ++i) R(i, j) = i % 3 == 0 ? S(NaN) : i % 3 == 1 ? S(-Inf) : S(7);
  return R;
}
template <class S>
Stored<S> upper_part(const Stored<S>& R) {
  return R.template triangularView<Eigen::Upper>();
}
template <class S>
Stored<S> transpose(const Stored<S>& R) {
  return R.transpose();
}

template <class S>
std::optional<Error> error_of_check(const Stored<S>& R, const Stored<S>& V, Uplo uplo) {
  return error_of([&] { check_input(read(R), read(V), uplo); });
}

TEST(CheckInput, FindsWhatIsNotFinite) {
  const Stored<double> R = factor_with_rubbish<double>(40), V = Stored<double>::Ones(40, 3);
  for (const Uplo uplo : {Uplo::upper, Uplo::lower}) {
    const Stored<double> good = uplo == Uplo::upper ? R : transpose(R);
    ASSERT_FALSE(error_of_check(good, V, uplo));
    for (const double bad : {NaN, -NaN, Inf, -Inf}) {
      Stored<double> broken = good;
      const index_t row = uplo == Uplo::upper ? 4 : 36, col = 40 - row;
      broken(row, col) = bad;
      auto error = error_of_check(broken, V, uplo);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::not_finite);
      EXPECT_EQ(text(*error, "argument"), "R");
      EXPECT_EQ(number(*error, "row"), row + 1);
      EXPECT_EQ(number(*error, "col"), col + 1);

      broken = V;
      broken(39, 1) = bad;
      error = error_of_check(good, broken, uplo);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::not_finite);
      EXPECT_EQ(text(*error, "argument"), "V");
      EXPECT_EQ(number(*error, "row"), 40);
      EXPECT_EQ(number(*error, "col"), 2);
    }
  }
}

TEST(CheckInput, FindsABadDiagonal) {
  const Stored<float> V = Stored<float>::Ones(40, 1);
  for (const float bad : {0.0f, -0.0f, -1.0f})
    for (const index_t index : {0, 17, 39}) {
      Stored<float> R = factor_with_rubbish<float>(40);
      R(index, index) = bad;
      const auto error = error_of_check(R, V, Uplo::upper);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
      EXPECT_EQ(number(*error, "index"), index + 1);
      EXPECT_EQ(number(*error, "value"), bad);
    }
}

TEST(CheckInput, ReturnsTheLargestMagnitude) {
  Stored<double> R = Stored<double>::Identity(5, 5), V = Stored<double>::Zero(5, 2);
  R(1, 3) = -6;
  EXPECT_EQ(check_input(read(R), read(V), Uplo::upper), 6);
  EXPECT_EQ(check_input(read(R), read(V), Uplo::lower), 1);
  V(4, 1) = -9;
  EXPECT_EQ(check_input(read(R), read(V), Uplo::lower), 9);
}

/// Checks that 2^-e largest needs no scaling, is as far from 1 as that allows, and has a square in the range of T.
template <class T>
void check_scale_exponent() {
  using limits = std::numeric_limits<T>;
  EXPECT_EQ(scale_exponent<T>(0.0), 0);
  EXPECT_EQ(scale_exponent<T>(1.0), 0);
  for (int power = -1074; power < 1024; ++power) {
    const double largest = std::scalbn(1.0, power);
    const int e = scale_exponent<T>(largest);
    const int square = 2 * (power - e);
    EXPECT_LT(square, limits::max_exponent - 8) << power;
    EXPECT_GT(square, limits::min_exponent + 8) << power;
    EXPECT_EQ(scale_exponent<T>(std::scalbn(1.0, power - e)), 0) << power;
    if (e == 0) continue;
    EXPECT_NE(scale_exponent<T>(std::scalbn(1.0, power - e + (power > 0 ? 1 : -1))), 0) << power;
  }
}
TEST(ScaleExponent, KeepsSquaresInRange) {
  check_scale_exponent<double>();
  check_scale_exponent<float>();
}

/// Checks that a factor loaded into T and stored again is exact if T has S's precision, and that the other triangle is
/// not read.
template <class S, class T>
void round_trip(Uplo uplo, index_t n, real scale) {
  const Stored<S> upper = factor_with_rubbish<S>(n, scale), R = uplo == Uplo::upper ? upper : transpose(upper);
  const int e = scale_exponent<T>(check_input(read(R), {nullptr, n, 0, n}, uplo));
  Stored<T> W = Stored<T>::Constant(n, n, T(NaN));
  load_factor(read(R), uplo, e, view(W));
  ASSERT_TRUE(W.allFinite()) << "n " << n << ", scale " << scale;
  ASSERT_TRUE(W.isUpperTriangular(0)) << "n " << n;

  Stored<S> out = Stored<S>::Constant(n, n, S(NaN));
  store_factor(read(W), uplo, std::scalbn(1.0, e), view(out));
  const Stored<S> expected = upper_part(upper);
  ASSERT_TRUE(same_bits(out, uplo == Uplo::upper ? expected : transpose(expected))) << "n " << n << ", scale " << scale;
}

TEST(LoadAndStore, AreExactInverses) {
  for (const Uplo uplo : {Uplo::upper, Uplo::lower})
    for (const index_t n : {1, 2, 31, 32, 33, 64, 65, 100}) {
      for (const real scale : {1.0L, 1e170L, 1e-170L, 1e300L, 1e-290L}) round_trip<double, double>(uplo, n, scale);
      for (const real scale : {1.0L, 1e3L, 1e35L, 1e-30L}) {
        round_trip<float, float>(uplo, n, scale);
        round_trip<float, double>(uplo, n, scale);
      }
    }
}

/// Checks subnormal numbers. Off the diagonal they come and go exactly. On the diagonal they can be loaded, where
/// scaling makes them normal, but not stored.
template <class T>
void subnormals_come_and_go() {
  const T least = std::numeric_limits<T>::min();
  Stored<T> R = Stored<T>::Identity(5, 5) * (8 * least), W(5, 5), out(5, 5);
  R(0, 3) = least / 64;
  R(2, 4) = -least / 16 * T(1.5);
  const int e = scale_exponent<T>(check_input(read(R), {nullptr, 5, 0, 5}, Uplo::upper));
  load_factor(read(R), Uplo::upper, e, view(W));
  store_factor(read(W), Uplo::upper, std::scalbn(1.0, e), view(out));
  EXPECT_TRUE(same_bits(out, R));
  R(4, 4) = least / 2;
  load_factor(read(R), Uplo::upper, e, view(W));
  const auto error = error_of([&] { store_factor(read(W), Uplo::upper, std::scalbn(1.0, e), view(out)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
  EXPECT_EQ(number(*error, "index"), 5);
  EXPECT_EQ(number(*error, "value"), least / 2);
}
TEST(LoadAndStore, AreExactForSubnormals) {
  subnormals_come_and_go<double>();
  subnormals_come_and_go<float>();
}

TEST(LoadAndStore, RoundOnceToTheOtherPrecision) {
  const Stored<double> R = upper_part(factor_with_rubbish<double>(33));
  Stored<float> W(33, 33);
  load_factor(read(R), Uplo::upper, 0, view(W));
  EXPECT_TRUE(same_bits(W, Stored<float>(R.cast<float>())));
  Stored<double> out(33, 33);
  store_factor(read(W), Uplo::lower, 1, view(out));
  EXPECT_TRUE(same_bits(out, transpose(Stored<double>(W.cast<double>()))));
}

TEST(LoadAndStore, ADiagonalThatVanishesIsAnError) {
  Stored<double> R = Stored<double>::Identity(3, 3);
  R(1, 1) = 1e-60;
  Stored<float> W(3, 3);
  const auto error = error_of([&] { load_factor(read(R), Uplo::upper, 0, view(W)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
  EXPECT_EQ(number(*error, "index"), 2);
  EXPECT_EQ(number(*error, "value"), 1e-60);
}

/// Checks a result of sqrt(2) / 4 * 3 times the largest number of S.
template <class S>
void overflow(Precision precision) {
  const S large = std::numeric_limits<S>::max() / 4 * 3;
  Stored<S> R = Stored<S>::Identity(3, 3) * large, V = Stored<S>::Zero(3, 1);
  V(1, 0) = large;
  for (const Way& way : ways) {
    const auto error = error_of([&] { call(Problem<S>{Sign::update, R, V}, by(way, precision)); });
    ASSERT_TRUE(error) << way.name;
    EXPECT_EQ(error->code(), ErrorCode::overflow);
    EXPECT_EQ(number(*error, "row"), 2);
    EXPECT_EQ(number(*error, "col"), 2);
  }
}
/// Checks an overflow off the diagonal: (R_12 + V_2) / sqrt(2).
TEST(Overflow, IsFoundWhereTheFactorIsStored) {
  Stored<double> R = Stored<double>::Identity(3, 3), V = Stored<double>::Zero(3, 1);
  V(0, 0) = 1;
  R(0, 1) = V(1, 0) = 1.5e308;
  for (const Uplo uplo : {Uplo::upper, Uplo::lower})
    for (const Method method : {Method::reference, Method::blocked, Method::panel, Method::stream}) {
      Request request;
      request.backend = Backend::cpu;
      request.method = method;
      request.uplo = uplo;
      const Stored<double> stored = uplo == Uplo::upper ? R : Stored<double>(R.transpose());
      const auto error = error_of([&] { call(Problem<double>{Sign::update, stored, V}, request); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::overflow);
      EXPECT_EQ(number(*error, "row"), uplo == Uplo::upper ? 1 : 2);
      EXPECT_EQ(number(*error, "col"), uplo == Uplo::upper ? 2 : 1);
    }
}

TEST(Overflow, OfDoubleIsAnError) { overflow<double>(Precision::double_); }
TEST(Overflow, OfDoubleThroughSingleIsAnError) { overflow<double>(Precision::single); }
TEST(Overflow, OfFloatIsAnError) { overflow<float>(Precision::single); }
TEST(Overflow, OfFloatThroughDoubleIsAnError) { overflow<float>(Precision::double_); }

}  // namespace
}  // namespace gpucholmod::test
