#include <gtest/gtest.h>

#include "block_columns/small_matrices.h"
#include "host_grid.h"
#include "matrices.h"

/// The parts of the block-column method, on the CPU's warp and team, compared with Eigen.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class M>
using Strided = Eigen::Map<M, 0, Eigen::OuterStride<>>;

Stored<double> normal(index_t m, index_t n, Random& random) { return random.normal(m, n).cast<double>(); }

/// Checks ||A - B||_max < 1e-13 ||B||_max.
template <class A, class B>
void expect_near(const A& a, const B& b) {
  EXPECT_LT((a - b).cwiseAbs().maxCoeff(), 1e-13 * b.cwiseAbs().maxCoeff());
}

TEST(Warp, TilesComeBackAsTheyWere) {
  Random random(1);
  const HostWarp warp{};
  const Rows A = normal(16, 8, random);
  Rows by_rows = Rows::Constant(16, 12, nan);
  Stored<double> by_columns = Stored<double>::Constant(20, 8, nan);
  const Tile<HostWarp> tile = load_tile<Access::shared>(warp, A.data(), 8);
  store_tile(warp, tile, by_rows.data(), 12);
  store_columns(warp, tile, by_columns.data(), 20);
  EXPECT_EQ(by_rows.leftCols(8), A);
  EXPECT_EQ(by_columns.topRows(16), A);
  EXPECT_TRUE(by_rows.rightCols(4).array().isNaN().all());
  EXPECT_TRUE(by_columns.bottomRows(4).array().isNaN().all());
  EXPECT_NEAR(sum_of_squares(warp, tile), A.squaredNorm(), 1e-12);
  store_tile(warp, zero_tile(warp), by_rows.data(), 12);
  EXPECT_TRUE(by_rows.leftCols(8).isZero(0));
}

/// Checks D + A B and D - A B, B by columns.
TEST(Warp, MultipliesAndAdds) {
  Random random(2);
  const HostWarp warp{};
  const Rows A = normal(16, 8, random), D = normal(16, 8, random);
  Stored<double> B = Stored<double>::Constant(LDB, 8, nan);
  B.topRows(8) = normal(8, 8, random);
  Tile<HostWarp> sum = load_tile<Access::shared>(warp, D.data(), 8), difference = sum;
  const Left<HostWarp> left = load_left(warp, A.data(), 8);
  warp.multiply_add<1, Access::shared>(sum, left, B.data(), LDB);
  warp.multiply_add<-1, Access::shared>(difference, as_left(warp, load_tile<Access::shared>(warp, A.data(), 8)),
                                        B.data(), LDB);
  Rows out(16, 8);
  store_tile(warp, sum, out.data(), 8);
  expect_near(out, (D + A * B.topRows(8)).eval());
  store_tile(warp, difference, out.data(), 8);
  expect_near(out, (D - A * B.topRows(8)).eval());
}

/// Checks the sum over all lanes, and the number of lanes before the first one for which a condition does not hold.
TEST(Warp, ReducesOverLanes) {
  const HostWarp warp{};
  HostWarp::PerLane<double> x;
  warp.each([&](int lane) { x[lane] = (lane * 5) % 32; });
  EXPECT_EQ(warp.total(x), 31 * 32 / 2);
  EXPECT_EQ(warp.from_lane(x, 3), 15);
  EXPECT_EQ(warp.leading([](int lane) { return lane < 7 || lane == 9; }), 7);
  EXPECT_EQ(warp.leading([](int) { return true; }), LANES);
}

/// Checks X = C^-1, C'C = A.
TEST(SmallMatrices, InvertTheFactorOfASubBlock) {
  Random random(3);
  const Stored<double> C = well_conditioned(IB, random).cast<double>();
  Stored<double> A = Stored<double>::Constant(LDB, IB, nan), X = Stored<double>::Constant(LDC, IB, nan);
  A.topRows(IB) = C.transpose() * C;
  EXPECT_TRUE(invert_cholesky(HostWarp{}, A.data(), LDB, X.data(), LDC));
  expect_near((X.topRows(IB) * C).eval(), Stored<double>::Identity(IB, IB));
  EXPECT_TRUE(X.topRows(IB).isUpperTriangular(0));
  for (const int pivot : {0, 5, 15})
    for (const double value : {-1.0, 0.0, nan}) {
      Stored<double> bad = A;
      bad(pivot, pivot) = value;
      EXPECT_FALSE(invert_cholesky(HostWarp{}, bad.data(), LDB, X.data(), LDC)) << pivot << ", " << value;
    }
}

/// Checks X = R^-1 for both blocks, however they are graded: |R X - I| < 64 eps |R| |X| in every entry.
TEST(SmallMatrices, InvertDiagonalBlocks) {
  Random random(6);
  for (const real range : {0, 5, 100, 140}) {
    const Stored<double> R[2] = {
        (powers(-range, range, NB).asDiagonal() * well_conditioned(NB, random)).cast<double>(),
        (well_conditioned(NB, random) * powers(range, 0, NB).asDiagonal()).cast<double>()};
    Rows D = Rows::Constant(2 * NB, LDB, nan);
    Stored<double> X = Stored<double>::Constant(LDB, 2 * NB, nan);
    std::vector<double> E(WARPS * IB * LDC, nan);
    for (int x = 0; x < 2; ++x) D.block(x * NB, 0, NB, NB) = R[x];
    HostTeam team{nullptr};
    invert_diagonal_blocks(team, D.data(), X.data(), E.data());
    for (int x = 0; x < 2; ++x) {
      const Stored<double> inverse = X.block(0, x * NB, NB, NB);
      EXPECT_TRUE(inverse.isUpperTriangular(0));
      const Matrix RX = R[x].cast<real>() * inverse.cast<real>(),
                   bound = R[x].cwiseAbs().cast<real>() * inverse.cwiseAbs().cast<real>();
      const Matrix excess = (RX - Matrix::Identity(NB, NB)).cwiseAbs() - 64 * 0x1p-52L * bound;
      EXPECT_LE(excess.maxCoeff(), 0) << "block " << x << ", range " << range;
    }
  }
}

}  // namespace
}  // namespace gpucholmod::test
