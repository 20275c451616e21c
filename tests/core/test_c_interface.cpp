#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "c_call.h"
#include "families.h"
#include "padded.h"
#include "random_problem.h"
#include "tests.h"

/// The C interface: every function, for both triangles, with leading dimensions above the order, and the errors of
/// calls that fail.
namespace gpucholmod::test {
namespace {

template <class S>
double ratio_of(const Problem<S>& p, bool lower) {
  const index_t n = p.R.cols(), k = p.V.cols();
  Padded<S> R(stored(p.R, lower), n + 3), V(p.V, n + 1);
  const std::vector<double> minus(k, -1);
  gpucholmod_status status;
  EXPECT_EQ(update(lower, n, k, R.data.data(), R.ld, V.data.data(), V.ld,
                   p.sign == Sign::downdate ? minus.data() : nullptr, 1, nullptr, &status),
            GPUCHOLMOD_OK)
      << status.message;
  EXPECT_EQ(R.data[n + 1 + (n - 1) * R.ld], S(unused));
  return Residual(p).ratio(upper(R.matrix(n), lower), sizeof(S) == 8 ? 0x1p-52 : 0x1p-23);
}

TEST(CInterface, UpdatesAllFamilies) {
  for (const Family& family : families)
    for (const index_t n : {1, 2, 7, 40})
      for (const index_t k : {1, 3, 9})
        for (const Sign sign : {Sign::update, Sign::downdate})
          for (const bool lower : {false, true}) {
            Random random(3);
            const Level level{0x1p-52}, coarse{0x1p-23};
            EXPECT_LT(ratio_of(family.make(sign, family.factor(n, level, random), k, level, random), lower), 30)
                << family.name;
            const Problem<double> p = family.make(sign, family.factor(n, coarse, random), k, coarse, random);
            const Problem<float> single{sign, p.R.cast<float>(), p.V.cast<float>()};
            EXPECT_LT(sign == Sign::update ? ratio_of(single, lower) : 0, 30) << family.name;
          }
}

TEST(CInterface, LargeFactorsWeightsScalesAndWorkspaces) {
  for (const index_t n : {5, 60, 530}) {
    Random random(8);
    const index_t k = 6;
    const Stored<double> R = well_conditioned(n, random).cast<double>(),
                         V = (random.normal(n, k) / (4 * std::sqrt(real(n)))).cast<double>();
    const std::vector<double> weights{1, -0.5, 0, 3, -1, 0.25};
    for (const double scale : {1.0, 0.9, 1e-14})
      for (const bool own : {false, true}) {
        Padded<double> made(R, n);
        std::vector<char> workspace(gpucholmod_workspace(n, k, GPUCHOLMOD_DOUBLE));
        std::vector<double> w = weights;
        if (scale < 0.5)
          for (double& x : w) x = std::abs(x);
        gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
        if (own) options.workspace = workspace.data();
        if (own) options.workspace_size = workspace.size();
        const int code = gpucholmod_update(matrix(made.data.data(), n, n, n), matrix(V.data(), n, k, n), w.data(),
                                           scale, nullptr, &options, nullptr);
        ASSERT_EQ(code, GPUCHOLMOD_OK);
        Matrix weighted = V.cast<real>();
        for (index_t q = 0; q < k; ++q) weighted.col(q) *= real(w[size_t(q)]);
        const Matrix A = gram(R) * real(scale), change = product(weighted, V.cast<real>().transpose());
        Stored<double> X = made.matrix(n);
        X = X.triangularView<Eigen::Upper>();
        EXPECT_LT(double(norm_1(gram(X) - (A + change)) / (norm_1(A) + norm_1(change))), 40 * 0x1p-52 * double(n))
            << n << ", " << scale;
      }
    gpucholmod_status status;
    Padded<double> made(R, n);
    char little[64];
    gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
    options.workspace = little;
    options.workspace_size = sizeof little;
    EXPECT_EQ(gpucholmod_update(matrix(made.data.data(), n, n, n), matrix(V.data(), n, k, n), nullptr, 1, nullptr,
                                &options, &status),
              GPUCHOLMOD_BAD_ARGUMENT);
  }
}

TEST(CInterface, TrustsAFactorToTheSameBits) {
  for (const index_t n : {1, 30, 300})
    for (const int lower : {0, 1})
      for (const double weight : {1., -0.01}) {
        Random random(13);
        const Stored<double> R = stored(Stored<double>(well_conditioned(n, random).cast<double>()), lower),
                             V = random.normal(n, 1).cast<double>() * 0.1;
        Stored<double> looked_at = R, trusted = R;
        ASSERT_EQ(update(lower, n, 1, looked_at.data(), n, V.data(), n, &weight, 1, nullptr, nullptr), GPUCHOLMOD_OK);
        ASSERT_EQ(
            update(lower | trusted_form, n, 1, trusted.data(), n, V.data(), n, &weight, 1, nullptr, nullptr),
            GPUCHOLMOD_OK);
        EXPECT_EQ(looked_at, trusted);
      }
  double far = 1e-200, v = 1;  // too far apart for the way of trusted factors
  EXPECT_EQ(update(trusted_form, 1, 1, &far, 1, &v, 1, nullptr, 1, nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(far, 1);
}

TEST(CInterface, LeavesWhatItCannotChange) {
  for (const index_t n : {4, 50, 256, 257, 600, 1024, 1025})
    for (const bool lower : {false, true}) {
      Random random(9);
      const Stored<double> R = stored(Stored<double>(well_conditioned(n, random).cast<double>()), lower);
      const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
      Stored<double> v = Stored<double>::Zero(n, 1);
      const double minus = -1;
      gpucholmod_status status;
      const auto changed = [&](Stored<double> A, const Stored<double>& V, const double* weight, int code) {
        Stored<double> made = A;
        EXPECT_EQ(update(lower, n, 1, made.data(), n, V.data(), n, weight, 1, nullptr, &status), code)
            << status.message;
        EXPECT_EQ(status.code, code);
        EXPECT_EQ(std::memcmp(made.data(), A.data(), sizeof(double) * n * n), 0);
      };
      v(n - 2) = 2 * R(n - 2, n - 2);
      changed(R, v, &minus, GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
      EXPECT_EQ(status.pivot, n - 1);
      v(n - 2) = nan;
      changed(R, v, nullptr, GPUCHOLMOD_NOT_FINITE);
      EXPECT_EQ(status.row, n - 1);
      EXPECT_EQ(status.col, 1);
      Stored<double> bad = R;
      bad(n - 1, n - 1) = 1.7e308;
      Stored<double> large = Stored<double>::Zero(n, 1);
      large(n - 1) = 1.7e308;
      changed(bad, large, nullptr, GPUCHOLMOD_OVERFLOW);
      bad(n - 1, n - 1) = 0;
      v(n - 2) = 1;
      changed(bad, v, &minus, GPUCHOLMOD_BAD_DIAGONAL);
      EXPECT_EQ(status.row, n);
      bad = R;
      (lower ? bad(2, 1) : bad(1, 2)) = infinite;
      changed(bad, v, nullptr, GPUCHOLMOD_NOT_FINITE);
      EXPECT_EQ(status.row, lower ? 3 : 2);
      EXPECT_EQ(status.col, lower ? 2 : 3);
    }
  gpucholmod_status status;
  double x = 2;
  EXPECT_EQ(update(4, 1, 1, &x, 1, &x, 1, nullptr, 1, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(update(0, 1, 1, &x, 0, &x, 1, nullptr, 1, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(update(0, 1, 1, &x, 1, nullptr, 1, nullptr, 1, nullptr, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(update(0, 1, 1, &x, 1, &x, 1, nullptr, 0, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(update(0, -1, 1, &x, 1, &x, 1, nullptr, 1, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_NE(std::string(status.message), "");
  EXPECT_EQ(
      update<double>(0, 0, 3, nullptr, 0, nullptr, 0, nullptr, 1, nullptr, &status),
      GPUCHOLMOD_OK);
  EXPECT_EQ(update(0, 1, 0, &x, 1, nullptr, 1, nullptr, 4, nullptr, &status), GPUCHOLMOD_OK);
  EXPECT_EQ(x, 4);
}

TEST(CInterface, PutsAFactorBackToTheLastBit) {
  for (const index_t n : {1, 9, 100, 256, 300})
    for (const int form : {0, 1, 2, 3}) {
      Random random(14);
      const Stored<float> R = stored(Stored<float>(well_conditioned(n, random).cast<float>()), form & GPUCHOLMOD_LOWER);
      Padded<float> made(R, n + 2);
      const std::vector<float> before = made.data;
      Stored<float> V = (random.normal(n, 6) / (100 * real(n))).cast<float>();
      V(n / 2, 3) = 3 * R(n / 2, n / 2);  // added columns come first, and change every row before the downdate fails
      const double weights[] = {1, -1, 1, -1, 0.5, -2};
      gpucholmod_status status;
      EXPECT_EQ(update(form, n, 6, made.data.data(), made.ld, V.data(), n, weights, 1, nullptr, &status),
                GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
      EXPECT_EQ(status.pivot, n / 2 + 1);
      EXPECT_EQ(made.data, before);
    }
}

/// A regression: weighted rows of X and y are added, and the result is compared with the factor of all rows.
TEST(CInterface, CarriesRightHandSides) {
  Random random(10);
  const index_t n = 6, k = 4, rows = 20;
  const Matrix X = random.normal(rows + k, n), y = random.normal(rows + k, 2);
  const auto fit = [&](const Matrix& of_X, const Matrix& of_y, Stored<double>& R, Stored<double>& z,
                       std::vector<double>& rss) {
    const Matrix U = factor(product(of_X.transpose(), of_X)), b = product(of_X.transpose(), of_y);
    const Matrix half = U.transpose().triangularView<Eigen::Lower>().solve(b);
    R = U.cast<double>();
    z = half.cast<double>();
    for (index_t j = 0; j < 2; ++j) rss.push_back(double(of_y.col(j).squaredNorm() - half.col(j).squaredNorm()));
  };
  Stored<double> R, z, R_all, z_all;
  std::vector<double> rss, rss_all;
  fit(X.topRows(rows), y.topRows(rows), R, z, rss);
  fit(X, y, R_all, z_all, rss_all);
  const Stored<double> V = X.bottomRows(k).transpose().cast<double>(), Y = y.bottomRows(k).cast<double>();
  const gpucholmod_right_sides sides = right_sides(z.data(), n, 2, n, Y.data(), k, k, rss.data());
  gpucholmod_status status;
  gpucholmod_factor* held = nullptr;
  ASSERT_EQ(create(0, n, R.data(), n, n, &held, &status), GPUCHOLMOD_OK);
  Stored<double> z_held = z;
  std::vector<double> rss_held = rss;
  const gpucholmod_right_sides sides_held = right_sides(z_held.data(), n, 2, n, Y.data(), k, k, rss_held.data());
  ASSERT_EQ(update(0, n, k, R.data(), n, V.data(), n, nullptr, 1, &sides, &status), GPUCHOLMOD_OK) << status.message;
  ASSERT_EQ(update(held, k, V.data(), n, nullptr, 1, &sides_held, &status), GPUCHOLMOD_OK) << status.message;
  Stored<double> stored(n, n);
  ASSERT_EQ(get(held, 0, stored.data(), n, &status), GPUCHOLMOD_OK);
  const double size = z_all.norm() + R_all.norm();
  EXPECT_LT((z - z_all).norm(), 1e-13 * size);
  EXPECT_LT((R.triangularView<Eigen::Upper>().toDenseMatrix() - R_all).norm(), 1e-13 * size);
  EXPECT_LT(std::abs(rss[0] - rss_all[0]) + std::abs(rss[1] - rss_all[1]), 1e-12 * size);
  EXPECT_EQ(z_held, z);
  EXPECT_EQ(rss_held, rss);
  EXPECT_EQ(stored, R.triangularView<Eigen::Upper>().toDenseMatrix());
  const std::vector<double> weights(k, -1e9);
  const Stored<double> before = z;
  EXPECT_EQ(update(0, n, k, R.data(), n, V.data(), n, weights.data(), 1, &sides, &status),
            GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(z, before);
  gpucholmod_factor_destroy(held);
}

TEST(CInterface, RowsAndColumnsComeAndGo) {
  for (const bool lower : {false, true}) {
    Random random(11);
    const index_t n = 30, p = 2, at = 7;
    const Matrix B = random.normal(50, n + p), A = product(B.transpose(), B);
    std::vector<index_t> kept, come{at, at + 1};
    for (index_t i = 0; i < n + p; ++i)
      if (i != at && i != at + 1) kept.push_back(i);
    Matrix small(n, n);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) small(i, j) = A(kept[i], kept[j]);
    const Stored<double> R = stored(Stored<double>(factor(small).cast<double>()), lower),
                         all = factor(A).cast<double>();
    const Stored<double> X = A.middleCols(at, p).cast<double>();
    Padded<double> made(R, n + p);
    made.data.resize(made.ld * (n + p), unused);
    gpucholmod_status status;
    ASSERT_EQ(insert(lower, n, at, p, made.data.data(), made.ld, X.data(), n + p, nullptr, &status),
              GPUCHOLMOD_OK)
        << status.message;
    gpucholmod_factor *held = nullptr, *other = nullptr;
    ASSERT_EQ(create(lower, n, R.data(), n, n, &held, &status), GPUCHOLMOD_OK)
        << status.message;
    ASSERT_EQ(gpucholmod_factor_copy(held, &other, &status), GPUCHOLMOD_OK);
    ASSERT_EQ(insert(other, at, p, X.data(), n + p, nullptr, &status), GPUCHOLMOD_OK) << status.message;
    EXPECT_EQ(gpucholmod_factor_order(held), n);
    EXPECT_EQ(gpucholmod_factor_order(other), n + p);
    Stored<double> out(n + p, n + p);
    ASSERT_EQ(get(other, lower, out.data(), n + p, &status), GPUCHOLMOD_OK);
    const Stored<double> given = lower ? Stored<double>(out.transpose()) : out;
    EXPECT_LT((given - all).norm(), 1e-12 * all.norm());
    Stored<double> in_place = made.matrix(n + p);
    in_place = lower ? Stored<double>(in_place.transpose()) : in_place;
    EXPECT_EQ(Stored<double>(in_place.triangularView<Eigen::Upper>()), given);

    Stored<double> b = random.normal(n + p, 3).cast<double>(), x = b;
    ASSERT_EQ(solve(other, GPUCHOLMOD_A, 3, x.data(), n + p, &status), GPUCHOLMOD_OK);
    EXPECT_LT((A.cast<double>() * x - b).norm(), 1e-9 * b.norm());
    ASSERT_EQ(solve(other, GPUCHOLMOD_R_TRANSPOSED, 3, b.data(), n + p, &status), GPUCHOLMOD_OK);
    ASSERT_EQ(solve(other, GPUCHOLMOD_R, 3, b.data(), n + p, &status), GPUCHOLMOD_OK);
    EXPECT_EQ(b, x);

    const std::vector<ptrdiff_t> gone{at, at + 1}, twice{at, at};
    EXPECT_EQ(remove(other, 2, twice.data(), nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
    ASSERT_EQ(remove(other, 2, gone.data(), nullptr, &status), GPUCHOLMOD_OK);
    ASSERT_EQ(remove(lower, n + p, 2, gone.data(), made.data.data(), made.ld, nullptr, &status),
              GPUCHOLMOD_OK);
    Stored<double> again = made.matrix(n);
    again = lower ? Stored<double>(again.transpose()) : again;
    Stored<double> first = lower ? Stored<double>(R.transpose()) : R;
    EXPECT_LT((again - first).triangularView<Eigen::Upper>().toDenseMatrix().norm(), 1e-12 * all.norm());
    EXPECT_EQ(insert(held, n + 1, p, X.data(), n + p, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(insert(lower, n, at, p, made.data.data(), n, X.data(), n + p, nullptr, &status),
              GPUCHOLMOD_BAD_ARGUMENT);
    Stored<double> bad = X;
    bad(at + 1, 1) = 0;
    EXPECT_EQ(insert(held, at, p, bad.data(), n + p, nullptr, &status), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    gpucholmod_factor* on_gpu = nullptr;
    EXPECT_EQ(create(lower, n, R.data(), n, n, &on_gpu, &status, GPUCHOLMOD_ANY_GPU), GPUCHOLMOD_NOT_BUILT);
    gpucholmod_factor_destroy(held);
    gpucholmod_factor_destroy(other);
  }
  gpucholmod_factor_destroy(nullptr);
  EXPECT_EQ(gpucholmod_abi(), GPUCHOLMOD_ABI);
  EXPECT_EQ(gpucholmod_factor_copy(nullptr, nullptr, nullptr), GPUCHOLMOD_BAD_ARGUMENT);
}

TEST(CInterface, IsCalledByManyThreadsAtOnce) {
  Random random(12);
  const index_t n = 40;
  const Stored<double> R = well_conditioned(n, random).cast<double>(), V = random.normal(n, 2).cast<double>();
  Stored<double> alone = R;
  ASSERT_EQ(update(0, n, 2, alone.data(), n, V.data(), n, nullptr, 1, nullptr, nullptr), GPUCHOLMOD_OK);
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int turn = 0; turn < 50; ++turn) {
        Stored<double> mine = R;
        const double weights[] = {1, 1};
        if (update(0, n, 2, mine.data(), n, V.data(), n, weights, 1, nullptr, nullptr) != GPUCHOLMOD_OK ||
            mine != alone)
          ++wrong[t];
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

/// Checks that an update into another matrix gives the bits of an update of a copy in place, and leaves R as it is.
TEST(CInterface, UpdatesIntoAnotherMatrix) {
  const index_t n = 30;
  for (const int form : {GPUCHOLMOD_UPPER, GPUCHOLMOD_LOWER}) {
    const Problem<double>& p = random_problem(Sign::update, n, 4);
    const Stored<double> R = stored(p.R, form == GPUCHOLMOD_LOWER);
    const Padded<double> before(R, n + 3);
    Padded<double> out(Stored<double>::Constant(n, n, unused), n + 1), expected(R, n + 1);
    const gpucholmod_options chosen = triangle(form);
    const auto into = [&](const double* weights, gpucholmod_status* status) {
      return gpucholmod_update_into(matrix(before.data.data(), n, n, n + 3), matrix(out.data.data(), n, n, n + 1),
                                    matrix(p.V.data(), n, 4, n), weights, 1, nullptr, &chosen, status);
    };
    EXPECT_EQ(into(nullptr, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(update(form, n, 4, expected.data.data(), n + 1, p.V.data(), n, nullptr, 1, nullptr, nullptr),
              GPUCHOLMOD_OK);
    EXPECT_EQ(out.data, expected.data);
    EXPECT_EQ(before.data, Padded<double>(R, n + 3).data);
    const double too_much[] = {-1e6, -1e6, -1e6, -1e6};
    EXPECT_EQ(into(too_much, nullptr), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    EXPECT_EQ(before.data, Padded<double>(R, n + 3).data);
    gpucholmod_status status;
    EXPECT_EQ(gpucholmod_update_into(matrix(before.data.data(), n, n, n + 3), matrix(out.data.data(), n - 1, n - 1, n),
                                     matrix(p.V.data(), n, 4, n), nullptr, 1, nullptr, &chosen, &status),
              GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_NE(std::string(status.message).find("'out'"), std::string::npos) << status.message;
  }
}

}  // namespace
}  // namespace gpucholmod::test
