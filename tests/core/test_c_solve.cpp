#include <cmath>
#include <limits>
#include <vector>

#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// The results that the C interface computes from a factor in the caller's memory: solutions, inverses, determinants
/// and conditions; and the computation of the factor itself.
namespace gpucholmod::test {
namespace {

template <class S>
class CSolve : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CSolve, Scalars);

template <class S>
constexpr real eps = real(std::numeric_limits<S>::epsilon());

/// A factor, stored with further rows below, some of whose rows may be multiplied by -1, and A.
template <class S>
struct Given {
  index_t n;
  bool lower;
  Stored<S> R;  ///< upper
  Matrix A;
  Padded<S> memory;
  gpucholmod_options options;

  Given(index_t n, bool lower, bool turned)
      : n(n), lower(lower), R(upper_factor(n, turned)), A(gram(R)), memory(stored(R, lower), n + 3),
        options(triangle(lower ? GPUCHOLMOD_LOWER : GPUCHOLMOD_UPPER)) {}

  gpucholmod_const_matrix matrix_of_R() const {
    return matrix(static_cast<const S*>(memory.data.data()), n, n, memory.ld);
  }
  /// Returns R as functions take it, with a positive diagonal.
  Matrix positive() const {
    Matrix P = R.template cast<real>();
    for (index_t i = 0; i < n; ++i)
      if (P(i, i) < 0) P.row(i) *= -1;
    return P;
  }

 private:
  static Stored<S> upper_factor(index_t n, bool turned) {
    Random random{unsigned(n)};
    Stored<S> R = Matrix(well_conditioned(n, random).template triangularView<Eigen::Upper>()).cast<S>();
    for (index_t i = 1; turned && i < n; i += 2) R.row(i) *= -1;
    return R;
  }
};

template <class S, class F>
void for_each_factor(F&& f) {
  for (const index_t n : {1, 2, 17, 300})
    for (const bool lower : {false, true})
      for (const bool turned : {false, true}) {
        SCOPED_TRACE(std::to_string(n) + (lower ? ", lower" : "") + (turned ? ", turned" : ""));
        f(Given<S>(n, lower, turned));
      }
}

///   ratio = ||B - M X||_1 / (n eps (||M||_1 ||X||_1 + ||B||_1)) < 30
TYPED_TEST(CSolve, Systems) {
  using S = TypeParam;
  for_each_factor<S>([](const Given<S>& given) {
    const index_t n = given.n;
    const Matrix R = given.positive();
    const Matrix of_system[] = {given.A, R.transpose(), R};
    for (const index_t m : {0, 1, 5, 40})
      for (const int system : {GPUCHOLMOD_A, GPUCHOLMOD_R_TRANSPOSED, GPUCHOLMOD_R}) {
        Random random(9);
        const Stored<S> B = random.normal(n, m).template cast<S>();
        Padded<S> X(B, n + 2);
        gpucholmod_status status;
        ASSERT_EQ(gpucholmod_solve(given.matrix_of_R(), system, matrix(X.data.data(), n, m, X.ld), &given.options,
                                   &status),
                  GPUCHOLMOD_OK)
            << status.message;
        Matrix solution(n, m);
        for (index_t j = 0; j < m; ++j)
          for (index_t i = 0; i < n; ++i) solution(i, j) = real(X.data[size_t(i + j * X.ld)]);
        if (m == 0) continue;
        EXPECT_EQ(X.data[size_t(n)], S(unused));
        const Matrix& M = of_system[system];
        const Matrix wide = B.template cast<real>();
        const real size = norm_1(M) * norm_1(solution) + norm_1(wide);
        EXPECT_LT(double(norm_1(product(M, solution) - wide) / (real(n) * eps<S> * size)), 30);
      }
  });
}

///   ratio = ||I - A X||_1 / (n eps ||A||_1 ||X||_1) < 30
TYPED_TEST(CSolve, Inverses) {
  using S = TypeParam;
  for_each_factor<S>([](const Given<S>& given) {
    const index_t n = given.n;
    Padded<S> out(Stored<S>::Zero(n, n), n + 1);
    gpucholmod_factor* held = nullptr;
    ASSERT_EQ(gpucholmod_factor_create(given.matrix_of_R(), 0, &given.options, &held, nullptr), GPUCHOLMOD_OK);
    for (const bool by_handle : {false, true}) {
      const gpucholmod_matrix to = matrix(out.data.data(), n, n, out.ld);
      ASSERT_EQ(by_handle ? gpucholmod_factor_inverse(held, to, nullptr)
                          : gpucholmod_inverse(given.matrix_of_R(), to, &given.options, nullptr),
                GPUCHOLMOD_OK);
      const Stored<S> X = out.matrix(n);
      EXPECT_EQ(X, Stored<S>(X.transpose()));
      const Matrix wide = X.template cast<real>(), left = product(given.A, wide) - Matrix::Identity(n, n);
      EXPECT_LT(double(norm_1(left) / (real(n) * eps<S> * norm_1(given.A) * norm_1(wide))), 30);
    }
    gpucholmod_factor_destroy(held);
  });
}

TYPED_TEST(CSolve, DeterminantsAndConditions) {
  using S = TypeParam;
  for_each_factor<S>([](const Given<S>& given) {
    const index_t n = given.n;
    gpucholmod_factor* held = nullptr;
    ASSERT_EQ(gpucholmod_factor_create(given.matrix_of_R(), 0, &given.options, &held, nullptr), GPUCHOLMOD_OK);
    double logdet[2], rcond[2];
    ASSERT_EQ(gpucholmod_logdet(given.matrix_of_R(), &logdet[0], &given.options, nullptr), GPUCHOLMOD_OK);
    ASSERT_EQ(gpucholmod_factor_logdet(held, &logdet[1], nullptr), GPUCHOLMOD_OK);
    ASSERT_EQ(gpucholmod_rcond(given.matrix_of_R(), &rcond[0], &given.options, nullptr), GPUCHOLMOD_OK);
    ASSERT_EQ(gpucholmod_factor_rcond(held, &rcond[1], nullptr), GPUCHOLMOD_OK);
    gpucholmod_factor_destroy(held);
    real log = 0;
    for (index_t j = 0; j < n; ++j) log += 2 * std::log(std::abs(real(given.R(j, j))));
    const Matrix R = given.positive(), half = R.triangularView<Eigen::Upper>().solve(Matrix::Identity(n, n));
    const double condition = double(norm_1(given.A) * norm_1(product(half, half.transpose())));
    for (const int i : {0, 1}) {
      EXPECT_NEAR(logdet[i], double(log), 1e-13 * double(n) * std::max(1.0, std::abs(double(log))));
      EXPECT_GE(rcond[i], (1 - 1e-8) / condition);  // an estimate of a norm is not above the norm
      EXPECT_LE(rcond[i], 3 / condition);
    }
  });
}

/// Conditions of matrices whose squares are far beyond the range, and of a singular matrix.
TEST(CConditions, AtTheEndsOfTheRange) {
  const auto rcond = [](std::vector<double> R) {
    double out = -1;
    EXPECT_EQ(gpucholmod_rcond(matrix(static_cast<const double*>(R.data()), 2, 2, 2), &out, nullptr, nullptr),
              GPUCHOLMOD_OK);
    return out;
  };
  EXPECT_NEAR(rcond({1e200, 0, 0, 1e200}), 1, 1e-12);
  EXPECT_NEAR(rcond({1e-200, 0, 0, 2e-200}), 0.25, 1e-12);
  EXPECT_EQ(rcond({1e150, 0, 0, 1e-150}), 0);
  EXPECT_EQ(rcond({1, 0, 1, 0}), 0);
  double out = -1;
  EXPECT_EQ(gpucholmod_rcond(matrix(static_cast<const double*>(nullptr), 0, 0, 0), &out, nullptr, nullptr),
            GPUCHOLMOD_OK);
  EXPECT_EQ(out, 1);
}

TYPED_TEST(CSolve, Factorises) {
  using S = TypeParam;
  for_each_factor<S>([](const Given<S>& given) {
    const index_t n = given.n;
    const Stored<S> A = given.A.template cast<S>();
    Padded<S> memory(stored(Stored<S>(A.template triangularView<Eigen::Upper>()), given.lower), n + 3);
    gpucholmod_status status;
    ASSERT_EQ(gpucholmod_factorise(matrix(memory.data.data(), n, n, memory.ld), &given.options, &status),
              GPUCHOLMOD_OK)
        << status.message;
    const Matrix made = gram(upper(memory.matrix(n), given.lower)), wide = A.template cast<real>();
    EXPECT_LT(double(norm_1(made - wide) / (real(n + 1) * eps<S> * norm_1(wide))), 30);

    // a matrix that is not positive definite stays as it is
    const index_t at = n / 2;
    memory.data[size_t(at * (memory.ld + 1))] = -1;
    const std::vector<S> before = memory.data;
    EXPECT_EQ(gpucholmod_factorise(matrix(memory.data.data(), n, n, memory.ld), &given.options, &status),
              GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    EXPECT_LE(status.pivot, at + 1);
    EXPECT_GE(status.pivot, 1);
    EXPECT_EQ(memory.data, before);
    memory.data[size_t(at * (memory.ld + 1))] = std::numeric_limits<S>::quiet_NaN();
    EXPECT_EQ(gpucholmod_factorise(matrix(memory.data.data(), n, n, memory.ld), &given.options, &status),
              GPUCHOLMOD_NOT_FINITE);
    EXPECT_EQ(status.row, at + 1);
    EXPECT_EQ(status.col, at + 1);
  });
}

/// Checks that factors that cannot be used, and arguments that do not fit, are refused, and nothing is written.
TYPED_TEST(CSolve, RefusesWhatItCannotUse) {
  using S = TypeParam;
  const Given<S> good(5, false, false);
  std::vector<S> B(10, S(1.5)), out(25, S(2));
  double number = 7;
  const std::vector<S> B_before = B, out_before = out;
  const auto every = [&](const Padded<S>& memory, int code, bool of_diagonal) {
    const gpucholmod_const_matrix R = matrix(static_cast<const S*>(memory.data.data()), 5, 5, memory.ld);
    gpucholmod_status status;
    EXPECT_EQ(gpucholmod_solve(R, GPUCHOLMOD_A, matrix(B.data(), 5, 2, 5), nullptr, &status), code);
    EXPECT_EQ(gpucholmod_inverse(R, matrix(out.data(), 5, 5, 5), nullptr, &status), code);
    EXPECT_EQ(status.row, 3);
    if (!of_diagonal) {
      EXPECT_EQ(gpucholmod_rcond(R, &number, nullptr, &status), code);
    }
    EXPECT_EQ(B, B_before);
    EXPECT_EQ(out, out_before);
    EXPECT_EQ(number, 7);
  };
  Padded<S> memory = good.memory;
  memory.data[size_t(2 + 3 * memory.ld)] = std::numeric_limits<S>::infinity();
  every(memory, GPUCHOLMOD_NOT_FINITE, false);
  memory = good.memory;
  memory.data[size_t(2 + 2 * memory.ld)] = 0;
  every(memory, GPUCHOLMOD_BAD_DIAGONAL, true);
  EXPECT_EQ(gpucholmod_logdet(matrix(static_cast<const S*>(memory.data.data()), 5, 5, memory.ld), &number, nullptr,
                              nullptr),
            GPUCHOLMOD_OK);
  EXPECT_EQ(number, -std::numeric_limits<double>::infinity());
  number = 7;
  memory.data[size_t(2 + 2 * memory.ld)] = std::numeric_limits<S>::min() / 4;
  every(memory, GPUCHOLMOD_BAD_DIAGONAL, false);

  const gpucholmod_const_matrix R = good.matrix_of_R();
  gpucholmod_const_matrix wide = R;
  wide.cols = 4;
  const auto refused = [](int code) { EXPECT_EQ(code, GPUCHOLMOD_BAD_ARGUMENT); };
  refused(gpucholmod_solve(R, 3, matrix(B.data(), 5, 2, 5), nullptr, nullptr));
  refused(gpucholmod_solve(R, GPUCHOLMOD_A, matrix(B.data(), 4, 2, 5), nullptr, nullptr));
  refused(gpucholmod_solve(R, GPUCHOLMOD_A, matrix(B.data(), 5, index_t(1) << 31, 5), nullptr, nullptr));
  refused(gpucholmod_solve(wide, GPUCHOLMOD_A, matrix(B.data(), 5, 2, 5), nullptr, nullptr));
  const S* const one = good.memory.data.data();
  constexpr index_t far = index_t(1) << 31;  // a size that no BLAS can count
  refused(gpucholmod_solve(matrix(one, 1, 1, far), GPUCHOLMOD_A, matrix(B.data(), 1, 1, 1), nullptr, nullptr));
  refused(gpucholmod_solve(matrix(one, 1, 1, 1), GPUCHOLMOD_A, matrix(B.data(), 1, 1, far), nullptr, nullptr));
  refused(gpucholmod_inverse(matrix(one, 1, 1, 1), matrix(out.data(), 1, 1, far), nullptr, nullptr));
  gpucholmod_matrix other_type = matrix(B.data(), 5, 2, 5);
  other_type.type = GPUCHOLMOD_DOUBLE + GPUCHOLMOD_FLOAT - other_type.type;
  refused(gpucholmod_solve(R, GPUCHOLMOD_A, other_type, nullptr, nullptr));
  other_type.type = 0;
  refused(gpucholmod_factorise(other_type, nullptr, nullptr));
  refused(gpucholmod_factorise(matrix(B.data(), 5, 2, 5), nullptr, nullptr));
  refused(gpucholmod_inverse(R, matrix(out.data(), 5, 4, 5), nullptr, nullptr));
  refused(gpucholmod_inverse(R, matrix(static_cast<S*>(nullptr), 5, 5, 5), nullptr, nullptr));
  refused(gpucholmod_logdet(R, nullptr, nullptr, nullptr));
  refused(gpucholmod_logdet(wide, &number, nullptr, nullptr));
  refused(gpucholmod_rcond(R, nullptr, nullptr, nullptr));
  refused(gpucholmod_rcond(wide, &number, nullptr, nullptr));
  EXPECT_EQ(B, B_before);
  EXPECT_EQ(out, out_before);
}

TEST(CSolveOfFloats, TellsOfSolutionsThatAreNoFloats) {
  const float R = 1e-30f;
  float b = 1, out = 3;
  gpucholmod_status status;
  EXPECT_EQ(gpucholmod_solve(matrix(&R, 1, 1, 1), GPUCHOLMOD_A, matrix(&b, 1, 1, 1), nullptr, &status),
            GPUCHOLMOD_OVERFLOW);
  EXPECT_EQ(b, 1);
  EXPECT_EQ(gpucholmod_inverse(matrix(&R, 1, 1, 1), matrix(&out, 1, 1, 1), nullptr, &status), GPUCHOLMOD_OVERFLOW);
  EXPECT_EQ(out, 3);
}

}  // namespace
}  // namespace gpucholmod::test
