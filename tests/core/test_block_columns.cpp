#include "grid_measure.h"

/// The block-column method, which a GPU runs, on a simulated grid: the same strips, transforms and guard.
namespace gpucholmod::test {
namespace {

using block_columns::NB;
using block_columns::Transform;

const index_t widths[] = {1, 8, 9, 16, 17, 33, 64};

struct Size {
  index_t n, k;
};

/// In double every width at n = 130; otherwise, and at a larger n, some that differ from one problem to the next.
std::vector<Size> sizes_for(int problem, Precision precision) {
  const auto width = [=](int i) { return widths[(problem + i) % std::size(widths)]; };
  std::vector<Size> sizes;
  const bool all = precision == Precision::double_ && !sanitized;
  for (int i = 0; i < int(std::size(widths)); i += all ? 1 : 3) sizes.push_back({130, width(i)});
  sizes.push_back({all ? 320 : 200, width(5)});
  return sizes;
}

const char* text(Precision precision) { return precision == Precision::single ? "_float" : "_double"; }

class OnCases : public testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(OnCases, ResidualRatio) {
  const auto [which, precision] = GetParam();
  Random random(5);
  for (const Size size : sizes_for(which, precision))
    measure(cases[which].make(size.n, size.k, Level{epsilon(precision)}, random), precision);
}

INSTANTIATE_TEST_SUITE_P(BlockColumns, OnCases,
                         testing::Combine(testing::Range(0, int(std::size(cases))), testing::ValuesIn(precisions)),
                         [](const auto& info) {
                           return std::string(cases[std::get<0>(info.param)].name) + text(std::get<1>(info.param));
                         });

class OnFamilies : public testing::TestWithParam<std::tuple<int, Precision>> {};

TEST_P(OnFamilies, ResidualRatio) {
  const auto [which, precision] = GetParam();
  const Level level{epsilon(precision)};
  Random random(6);
  Matrix R;
  for (const Size size : sizes_for(which, precision)) {
    if (R.cols() != size.n) R = families[which].factor(size.n, level, random);
    for (const Sign sign : signs) measure(families[which].make(sign, R, size.k, level, random), precision);
  }
}

INSTANTIATE_TEST_SUITE_P(BlockColumns, OnFamilies,
                         testing::Combine(testing::Range(0, int(std::size(families))), testing::ValuesIn(precisions)),
                         [](const auto& info) {
                           return std::string(families[std::get<0>(info.param)].name) + text(std::get<1>(info.param));
                         });

/// Against the reference method: ratio < 30 for both, and the factors themselves, well-conditioned, to 1e-12 of the largest
/// entry.
TEST(BlockColumns, AgreesWithTheReferenceInAnySize) {
  Random random(7);
  for (const index_t n : {1, 2, 63, 64, 65, 127, 128, 129, 257, 300}) {
    if (sanitized && n == 300) continue;
    const Matrix R = well_conditioned(n, random);
    for (const index_t k : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64}) {
      if (n > 65 && (n + k) % (sanitized ? 7 : 3) != 0) continue;  // the problems take the time
      const Matrix V = random.normal(n, k) / std::sqrt(real(n));
      for (const Sign sign : signs) {
        SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k));
        const Problem<double> p = sign == Sign::update ? problem(sign, R, V) : undo(R, V);
        const GridResult<double> result = run_grid(p);
        const Stored<double> reference = call(p, by(ways[0])).R;
        const Residual residual(p);
        ASSERT_EQ(result.pivot(), -1);
        expect_sound(result);
        EXPECT_LT(residual.ratio(result.R, eps<double>), 30);
        EXPECT_LT(residual.ratio(reference, eps<double>), 30);
        EXPECT_LT((result.R - reference).cwiseAbs().maxCoeff(), 1e-12 * reference.cwiseAbs().maxCoeff());
      }
    }
  }
}

/// Large enough for strips to stream, to wait for the chain and to run ahead; found not by the residual, which would take
/// long, but by the blocked method: ||R~ - R~_blocked||_max < 1e-13 ||R~_blocked||_max.
TEST(BlockColumns, AgreesWithTheBlockedMethodOverManyStrips) {
  const index_t n = sanitized ? 1300 : 1900, k = 5;
  Random random(8);
  Problem<double> p{Sign::update, Stored<double>::Zero(n, n), (random.normal(n, k) / std::sqrt(real(n))).cast<double>()};
  for (index_t j = 0; j < n; ++j) {
    for (index_t i = 0; i < j; ++i) p.R(i, j) = double(random.uniform() - 0.5L) / std::sqrt(n);
    p.R(j, j) = 1;
  }
  for (const Sign sign : signs) {
    p.sign = sign;
    if (sign == Sign::downdate) p.V *= 0.3;
    const Stored<double> blocked = call(p, by(ways[2])).R;
    GridRun how;
    how.blocks = 1;
    const GridResult<double> in_turn = run_grid(p, how);
    how.blocks = 5;
    how.delay = 3;
    const GridResult<double> side_by_side = run_grid(p, how);
    ASSERT_EQ(in_turn.pivot(), -1);
    EXPECT_LT((in_turn.R - blocked).cwiseAbs().maxCoeff(), 1e-13 * blocked.cwiseAbs().maxCoeff());
    EXPECT_TRUE(same_bits(in_turn.memory, side_by_side.memory));
  }
}

TEST(BlockColumns, FallsBackWhereItMustAndNowhereElse) {
  Random random(9);
  const auto fallbacks = [&](int which, index_t n, index_t k) {
    return run_grid(cases[which].make(n, k, Level{eps<double>}, random)).pass_state.fallbacks;
  };
  for (const index_t n : {130, 200})
    for (const index_t k : {1, 16, 64}) {
      EXPECT_EQ(fallbacks(0, n, k), 0) << cases[0].name << ", n " << n << ", k " << k;
      for (const int hard : {2, 3, 8})  // V large, R ill-conditioned, almost nothing left
        EXPECT_GT(fallbacks(hard, n, k), 0) << cases[hard].name << ", n " << n << ", k " << k;
    }
}

TEST(BlockColumns, ChangesNothingWhereVIsZero) {
  for (const Sign sign : signs)
    for (const bool fall_back : {false, true}) {
      Problem<double> p = random_problem(Sign::update, 150, 9);
      p.sign = sign;
      p.V.setZero();
      GridRun how;
      how.only_householder = fall_back;
      EXPECT_TRUE(same_bits(run_grid(p, how).R, p.R));
    }
}

/// Eight columns of V or fewer: what a transform holds.
using Small = Transform<8>;
using Padded = Eigen::Matrix<double, Small::KP, Small::KP>;
template <class M, int ld>
using In = Eigen::Map<const M, 0, Eigen::OuterStride<ld>>;

/// With S the product of the T of all rescalings so far, a block's P is rows of R^-T V S, and
///
///   H <- H + sigma P'P,   H = I behind a rescaling,   T'H T = I
TEST(BlockColumnsTransforms, HoldPAndHAndT) {
  Random random(13);
  for (const int which : {0, 1, 6})  // no rescalings, some in an update, some in a downdate
    for (const index_t k : {1, 5}) {
      const Problem<double> p = cases[which].make(256, k, Level{eps<double>}, random);
      const double sigma = p.sign == Sign::update ? 1 : -1;
      const GridResult<double> result = run_grid(p);
      Stored<double> V = Stored<double>::Zero(256, 8);
      V.leftCols(k) = p.R.transpose().triangularView<Eigen::Lower>().solve(p.V);
      Padded H = Padded::Identity();
      for (int b = 0; b < 4 && result.transform<8>(b)[Small::kind] == block_columns::unscaled; ++b) {
        SCOPED_TRACE(std::string(cases[which].name) + ", k " + std::to_string(k) + ", block " + std::to_string(b));
        const double* const transform = result.transform<8>(b);
        if (transform[Small::rescaled] != 0) {
          const Padded T = In<Padded, block_columns::LDB>(transform + Small::T);
          EXPECT_LT((T.transpose() * H * T - Padded::Identity()).norm(), 1e-9);
          V = (V * T.topLeftCorner<8, 8>()).eval();
          H.setIdentity();
        }
        const Stored<double> P = In<Eigen::Matrix<double, NB, 8>, block_columns::LDB>(transform + Small::P);
        EXPECT_LT((P - V.middleRows(b * NB, NB)).norm(), 1e-9 * V.norm());
        H.topLeftCorner<8, 8>() += sigma * P.transpose() * P;
        EXPECT_LT((In<Padded, block_columns::LDB>(transform + Small::H) - H).norm(), 1e-9 * H.norm());
        if (sigma > 0) {
          EXPECT_NEAR(transform[Small::trace], H.trace() - Small::KP, 1e-9 * H.trace());
        }
      }
    }
}

/// The first steps of a block that falls back, done here by the book (inst/design/block-householder.md).
TEST(BlockColumnsTransforms, HoldTheStepsOfHouseholder) {
  constexpr int steps = 8;
  for (const Sign sign : signs)
    for (const index_t k : {1, 8}) {
      const Problem<double> p = random_problem(sign, 100, k);
      const real sigma = sign == Sign::update ? 1 : -1;
      Matrix R = p.R.topLeftCorner(steps, steps).cast<real>(), Vt = p.V.topRows(steps).cast<real>().transpose();
      GridRun how;
      how.only_householder = true;
      const GridResult<double> result = run_grid(p, how);
      const double* const transform = result.transform<8>(0);
      EXPECT_EQ(transform[Small::kind], block_columns::householder);
      for (int i = 0; i < steps; ++i) {
        const real r = R(i, i), rho = std::sqrt(r * r + sigma * Vt.col(i).squaredNorm());
        const Matrix y = Vt.col(i) / (r + rho);
        EXPECT_NEAR(transform[Small::rho + i], rho, 1e-14 * rho);
        EXPECT_NEAR(transform[Small::inv_tau + i], (r + rho) / rho, 1e-13 * (r + rho) / rho);
        EXPECT_NEAR(transform[Small::inv_ctau + i], (r + rho) / r, 1e-13 * (r + rho) / r);
        for (int q = 0; q < 8; ++q) EXPECT_NEAR(transform[Small::Z + i * Small::LDK + q], q < k ? y(q) : real(0), 1e-14);
        for (int j = i + 1; j < steps; ++j) {
          const real old = R(i, j), yv = y.col(0).dot(Vt.col(j));
          R(i, j) = (old + sigma * yv) * (r + rho) / rho - old;
          Vt.col(j) -= y * (R(i, j) + old);
        }
      }
    }
}

/// The order in which blocks of threads get on decides nothing: every bit of the result is the same, and so is the count of
/// what was done; the second time too.
template <class T>
void expect_same_in_any_schedule(const Problem<double>& p) {
  GridRun how;
  how.blocks = 1;
  const GridResult<T> expected = run_grid<T>(p, how);
  ASSERT_EQ(expected.pivot(), -1);
  for (const auto& [blocks, delay] : {std::pair{1, 0}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 2}, {5, 0}, {5, 3}}) {
    how.blocks = blocks;
    how.delay = delay;
    const GridResult<T> result = run_grid<T>(p, how);
    ASSERT_TRUE(same_bits(result.memory, expected.memory)) << blocks << " blocks, delay " << delay;
    EXPECT_EQ(result.pass_state.fallbacks, expected.pass_state.fallbacks);
    EXPECT_EQ(result.pass_state.rescalings, expected.pass_state.rescalings);
  }
}

TEST(BlockColumns, DoesNotDependOnTheSchedule) {
  for (const Size size : {Size{130, 16}, Size{257, 5}, Size{258, 33}})
    for (const Problem<double>& p : of_every_kind(size.n, size.k)) {
      expect_same_in_any_schedule<double>(p);
      if (size.n == 257 && p.sign == Sign::update) expect_same_in_any_schedule<float>(p);
    }
}

TEST(BlockColumns, InPlaceIsTheSame) {
  for (const Size size : {Size{64, 8}, Size{130, 64}, Size{258, 16}})
    for (const Problem<double>& p : of_every_kind(size.n, size.k))
      for (const bool fall_back : {false, true}) {
        GridRun how;
        how.only_householder = fall_back;
        const GridResult<double> apart = run_grid(p, how);
        how.into = Into::place;
        const GridResult<double> in_place = run_grid(p, how);
        ASSERT_EQ(in_place.pivot(), -1);
        EXPECT_FALSE(in_place.input_kept);
        EXPECT_TRUE(same_bits(in_place.memory, apart.memory)) << "n " << size.n;
      }
}

}  // namespace
}  // namespace gpucholmod::test
