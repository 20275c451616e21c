#include <cmath>
#include <vector>

#include "c_call.h"
#include "tests.h"

/// Right-hand sides that are modified along with a batch of the C interface.
namespace gpucholmod::test {
namespace {

constexpr index_t n = 5, k = 2, m = 3, count = 4;

/// A batch whose members are the identity times j + 1, of doubles or floats.
class CBatchSides : public testing::TestWithParam<int> {
 protected:
  CBatchSides() {
    Random random(3);
    Stored<double> R(n, n * count);
    for (index_t j = 0; j < count; ++j) R.middleCols(n * j, n) = Stored<double>::Identity(n, n) * double(j + 1);
    const Stored<float> single = R.cast<float>();
    const auto given = GetParam() == GPUCHOLMOD_DOUBLE ? matrix(std::as_const(R).data(), n, n * count, n)
                                                       : matrix(single.data(), n, n * count, n);
    EXPECT_EQ(gpucholmod_batch_create(given, count, nullptr, 0, nullptr, &held, &status), GPUCHOLMOD_OK);
    V = random.normal(n, k * count).cast<float>().cast<double>() / 4;
    z = random.normal(n + 1, m * count).cast<float>().cast<double>();
    Y = random.normal(k + 2, m * count).cast<float>().cast<double>();
    rss = std::vector<double>(m * count, 50);
  }
  ~CBatchSides() override { gpucholmod_batch_destroy(held); }

  gpucholmod_right_sides sides() {
    return {matrix(z.data(), n, m * count, n + 1), matrix(std::as_const(Y).data(), k, m * count, k + 2), rss.data()};
  }
  int update(const gpucholmod_right_sides& given, int independent = 0) {
    const gpucholmod_batch_modification what{k, matrix(std::as_const(V).data(), n, k * count, n), weights, k, nullptr,
                                             independent, &given};
    return gpucholmod_batch_update(held, &what, pivots, nullptr, &status);
  }
  std::string refused(const gpucholmod_right_sides& given) {
    const Stored<double> before = z;
    EXPECT_EQ(update(given), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(z, before);
    return status.argument;
  }

  const double weights[k] = {2, -0.5};
  gpucholmod_batch* held = nullptr;
  gpucholmod_status status;
  Stored<double> V, z, Y;
  std::vector<double> rss;
  ptrdiff_t pivots[count];
};

TEST_P(CBatchSides, AreThoseOfTheModifiedFactors) {
  const Stored<double> before = z;
  ASSERT_EQ(update(sides()), GPUCHOLMOD_OK) << status.message;
  Stored<double> R(n, n * count);
  ASSERT_EQ(gpucholmod_batch_get(held, matrix(R.data(), n, n * count, n), nullptr, nullptr), GPUCHOLMOD_OK);
  const double eps = GetParam() == GPUCHOLMOD_DOUBLE ? 0x1p-52 : 0x1p-23;
  const Stored<double> W = Eigen::Map<const Eigen::Vector2d>(weights).asDiagonal();
  EXPECT_EQ(z.row(n), before.row(n));
  for (index_t j = 0; j < count; ++j) {
    const auto now = R.middleCols(n * j, n).triangularView<Eigen::Upper>();
    const Stored<double> Yj = Y.block(0, m * j, k, m), z0 = before.block(0, m * j, n, m),
                         made = z.block(0, m * j, n, m),
                         b = double(j + 1) * z0 + V.middleCols(k * j, k) * W * Yj;
    EXPECT_LT((now.transpose() * made - b).norm(), 100 * eps * b.norm());
    for (index_t s = 0; s < m; ++s) {
      const double there = 50 + z0.col(s).squaredNorm() + Yj.col(s).dot(W * Yj.col(s));
      EXPECT_NEAR(rss[s + j * m], there - made.col(s).squaredNorm(), 1000 * eps * there);
    }
  }
}

TEST_P(CBatchSides, OfAMemberThatFailsStay) {
  V.col(2 * k + 1) *= 100;
  const Stored<double> before = z;
  EXPECT_EQ(update(sides()), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(status.member, 3);
  EXPECT_EQ(z, before);
  EXPECT_EQ(rss, std::vector<double>(m * count, 50));
  EXPECT_EQ(update(sides(), 1), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  for (index_t j = 0; j < count; ++j) {
    EXPECT_EQ(z.middleCols(m * j, m) == before.middleCols(m * j, m), j == 2);
    EXPECT_EQ(rss[m * j] == 50, j == 2);
  }
}

TEST_P(CBatchSides, ThatDoNotFitAreRefused) {
  gpucholmod_right_sides given = sides();
  given.z.cols -= 1;
  EXPECT_EQ(refused(given), "sides->z");
  given = sides();
  given.z.rows -= 1;
  EXPECT_EQ(refused(given), "sides->z");
  given = sides();
  given.Y.cols -= count;
  EXPECT_EQ(refused(given), "sides->Y");
  rss[4] = -1;
  EXPECT_EQ(refused(sides()), "sides->rss");
  rss[4] = 0;
  z(1, 4) = NAN;
  EXPECT_EQ(update(sides()), GPUCHOLMOD_NOT_FINITE);
  EXPECT_STREQ(status.argument, "sides->z");
  EXPECT_EQ(status.member, 2);
  EXPECT_EQ(status.row, 2);
  EXPECT_EQ(status.col, 2);

  const gpucholmod_batch_modification what{k, matrix(std::as_const(V).data(), n, k * count, n), weights, k, nullptr, 0,
                                           &given};
  double logdet[count];
  gpucholmod_batch_systems wanted{0, {}, {}, nullptr, logdet, nullptr};
  EXPECT_EQ(gpucholmod_batch_solve_modified(held, &what, &wanted, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(status.argument, "what->sides");
}

INSTANTIATE_TEST_SUITE_P(Of, CBatchSides, testing::Values(GPUCHOLMOD_DOUBLE, GPUCHOLMOD_FLOAT));

}  // namespace
}  // namespace gpucholmod::test
