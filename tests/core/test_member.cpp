#include "cuda/kernels/member_modify.h"
#include "cuda/kernels/member_solve.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "families.h"
#include "host_team.h"
#include "matrices.h"

/// Members of a batch, modified as by a GPU's team of threads, but by threads that run one after the other.
namespace gpucholmod::test {
namespace {

using namespace cuda;

/// The result of modifying a member, in passes of K columns.
template <class T>
struct Modified {
  std::vector<T> R;
  int pivot = -1;
};

/// Runs a pass by `threads` threads.
template <int K, class T, int L = SLOTS>
void modify_by(int threads, const BatchPass<T>& pass) {
  if constexpr (L < 256) {
    if (threads > L) return modify_by<K, T, 2 * L>(threads, pass);
  }
  ASSERT_EQ(threads, L);
  ModifyRoom<T, K, L> room{};
  modify_member<K>(HostTeam{L}, pass, 0, room);
}

/// Modifies R by V in passes of K columns. `added`: number of columns of V, from the first on, that are added; `times`:
/// factor by which the number of threads exceeds the usual number.
template <int K, class T>
Modified<T> modified(const Stored<T>& R, const Stored<double>& V, int added, const std::vector<double>& by = {},
                     Factors factors = {1, 1, 1}, int times = 1) {
  const index_t n = R.cols();
  const int k = int(V.cols());
  std::vector<int> order;
  for (int q = 0; q < k && !by.empty(); ++q) order.push_back(q);
  const std::vector<T> origin = packed<T>(R);
  std::vector<T> from = origin;
  Modified<T> made{std::vector<T>(from.size(), T(-7)), -1};
  for (int first = 0; first < std::max(k, 1) && made.pivot == -1; first += K) {
    BatchPass<T> pass{};
    pass.n = pass.rows = n;
    pass.R = Numbers<T>::of(from.data());
    pass.out = Numbers<T>::of(made.R.data());
    pass.origin = Numbers<T>::of(origin.data());
    pass.V = V.data();
    pass.order = by.empty() ? nullptr : order.data();
    pass.by = by.empty() ? nullptr : by.data();
    pass.added = &added;
    pass.factors = &factors;
    pass.first = first;
    pass.columns = std::min(K, k - first);
    pass.last = first + K >= k;
    pass.may_overflow = true;
    pass.pivots = &made.pivot;
    modify_by<K>(times * threads_of_member(n), pass);
    if (first + K < k) from = made.R;
  }
  return made;
}
template <class T>
Modified<T> modified(int K, const Stored<T>& R, const Stored<double>& V, int added, int times) {
  const std::vector<double> by;
  const Factors ones{1, 1, 1};
  return K == 1   ? modified<1>(R, V, added, by, ones, times)
         : K == 4 ? modified<4>(R, V, added, by, ones, times)
         : K == 8 ? modified<8>(R, V, added, by, ones, times)
                  : modified<16>(R, V, added, by, ones, times);
}

template <class T>
void expect_right(const Problem<T>& p, int K, const std::string& what) {
  const Residual residual(p);
  const Stored<double> V = p.V.template cast<double>();
  const int added = p.sign == Sign::update ? int(p.V.cols()) : 0;
  const Modified<T> made = modified<T>(K, p.R, V, added, 1);
  ASSERT_EQ(made.pivot, -1) << what;
  EXPECT_LT(residual.ratio(unpacked(made.R, p.R.cols()), sizeof(T) == 8 ? 0x1p-52 : 0x1p-23), 10) << what;
  EXPECT_EQ(modified<T>(K, p.R, V, added, 2).R, made.R) << what << ", by more threads";
}

class MemberFamilies : public testing::TestWithParam<int> {};

TEST_P(MemberFamilies, AreModifiedAccurately) {
  const Level level{0x1p-52};
  const bool by_case = GetParam() < int(std::size(cases));
  for (const index_t n : by_case ? std::vector<index_t>{130} : std::vector<index_t>{1, 2, 5, 31, 32, 33, 70})
    for (const auto& [K, k] : {std::pair<int, index_t>{1, 1}, {1, 3}, {4, 3}, {8, 7}, {16, 9}, {16, 16}, {16, 20}}) {
      Random random(unsigned(n * 100 + k));
      const std::string what = "n = " + std::to_string(n) + ", k = " + std::to_string(k) + ", K = " + std::to_string(K);
      if (by_case) {
        expect_right(cases[GetParam()].make(n, k, level, random), K, cases[GetParam()].name + (", " + what));
        continue;
      }
      const Family& family = families[GetParam() - std::size(cases)];
      const Matrix R = family.factor(n, level, random);
      for (const Sign sign : {Sign::update, Sign::downdate})
        expect_right(family.make(sign, R, k, level, random), K,
                     family.name + (", " + what) + (sign == Sign::update ? ", update" : ", downdate"));
    }
}
INSTANTIATE_TEST_SUITE_P(, MemberFamilies, testing::Range(0, int(std::size(cases) + std::size(families))));

TEST(Member, WithBothSignsAndWeightsAndInSinglePrecision) {
  for (const index_t n : {1, 20, 40})
    for (const int k : {4, 20}) {
      Random random(3);
      const Stored<double> R = well_conditioned(n, random).cast<double>();
      Stored<double> V = (random.normal(n, k) / std::sqrt(real(n))).cast<double>(), weighted = V;
      std::vector<double> by(k, 1.0);
      for (int q = 0; q < k; ++q) {
        by[q] = q < k / 2 ? std::pow(10, q % 7 - 3) : 0.01;
        weighted.col(q) *= by[q];
      }
      const Modified<double> made = modified<16>(R, V, k / 2, by);
      ASSERT_EQ(made.pivot, -1);
      const Stored<double> X = unpacked(made.R, n);
      Matrix W = weighted.cast<real>();
      const Matrix target = gram(R) + product(W.leftCols(k / 2), W.leftCols(k / 2).transpose()) -
                            product(W.rightCols(k - k / 2), W.rightCols(k - k / 2).transpose());
      const real size = norm_1(gram(R)) + norm_1(product(W, W.transpose()));
      EXPECT_LT(double(norm_1(gram(X) - target) / size), 40 * 0x1p-52);

      const Stored<float> single = R.cast<float>();
      const Modified<float> made_single = modified<16>(single, V, k / 2, by);
      ASSERT_EQ(made_single.pivot, -1);
      const Matrix aim = gram(single) + (target - gram(R));
      EXPECT_LT(double(norm_1(gram(unpacked(made_single.R, n)) - aim) / size), 40 * 0x1p-23);
    }
}

TEST(Member, OfNumbersNearTheEndsOfTheRange) {
  for (const double exponent : {-480., 480., -150., 150.}) {
    Random random(4);
    const index_t n = 35;
    const Stored<double> R = well_conditioned(n, random).cast<double>(), V = random.normal(n, 5).cast<double>() * 0.1;
    const Modified<double> as_it_is = modified<4>(R, V, 5);
    const Stored<double> far = R * std::scalbn(1, int(exponent)), V_far = V * std::scalbn(1, int(exponent));
    const double up = std::scalbn(1, int(exponent));
    const Factors back{1 / up, up, up};
    const Modified<double> made = modified<4>(far, V_far, 5, {}, back);
    for (size_t i = 0; i < made.R.size(); ++i) ASSERT_EQ(made.R[i], std::scalbn(as_it_is.R[i], int(exponent)));
    const Modified<double> down = modified<4>(unpacked(made.R, n), V_far, 0, {}, back);  // and back
    EXPECT_EQ(down.pivot, -1);
    EXPECT_LT((unpacked(down.R, n) - far).norm() / far.norm(), 1e-13);
  }
  Stored<double> one(1, 1), two(1, 1);
  one << 1e-250;
  two << 1;
  EXPECT_EQ(modified<1>(one, two, 1).R[0], 1);
  EXPECT_EQ(modified<1>(two, one, 1).R[0], 1);
  one << 1e308;
  EXPECT_EQ(modified<1>(one, Stored<double>(one), 1, {1.9}, {1e-308, 1e308, 1e308}).pivot, too_large_at(0));
  one << 1e-300;
  // 1e-300 vanishes beside the scale of the member.
  EXPECT_EQ(modified<1>(one, two, 1, {}, {0x1p-100, 0x1p100, 0x1p100}).pivot, vanished_at(0));
  const Stored<float> small = Stored<float>::Constant(1, 1, 0x1p-149f);
  EXPECT_EQ(modified<1>(small, Stored<double>::Constant(1, 1, 0x1p-149 * 0.99), 0).pivot, vanished_at(0));
}

TEST(Member, ThatFailsStaysAsItIs) {
  for (const index_t n : {3, 33, 64})
    for (const int row : {0, 2, int(n) - 1}) {
      Random random(6);
      const Stored<double> R = well_conditioned(n, random).cast<double>();
      Stored<double> V = Stored<double>::Zero(n, 2);
      V(row, 1) = R(row, row) * 1.0001;
      const Modified<double> made = modified<4>(R, V, 0);
      EXPECT_EQ(made.pivot, row);
      EXPECT_EQ(made.R, packed<double>(R));
      V(row, 1) = R(row, row);
      EXPECT_EQ(modified<4>(R, V, 0).pivot, row);
      V(row, 1) = std::numeric_limits<double>::quiet_NaN();
      EXPECT_EQ(modified<4>(R, V, 0).pivot, row);
    }
}

TEST(Member, WithAHugeColumnThatIsTakenAway) {
  for (const index_t n : {1, 9, 35})
    for (int exponent = 0; exponent <= 1000; exponent += 4) {
      Random random(7);
      const Stored<double> R = well_conditioned(n, random).cast<double>();
      Stored<double> V = random.normal(n, 3).cast<double>();
      V.col(2).setZero();
      V(n / 2, 2) = 0x1p1000;
      const double up = std::scalbn(1, exponent);
      EXPECT_EQ(modified<4>(R, V, 2, {}, {1 / up, up, up}).pivot, n / 2) << n << ", scaled by 2^-" << exponent;
    }
}

/// Returns the solution for B (n x m) of the second of two members, H^2 columns at a time, by `warps` warps. The rows
/// of R are as long as those of a triangle of order `capacity`, with NaN beyond n.
template <int H, class T>
Stored<double> solved(const Stored<T>& R, const Stored<double>& B, TriangularSolve which, int warps, index_t capacity) {
  const index_t n = R.cols(), m = B.cols();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<T> words(2 * words_of(capacity), T(nan));
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i; j < n; ++j) words[words_of(capacity) + row_of(capacity, i) + j] = R(i, j);
  Stored<double> sides = Stored<double>::Constant(n, 2 * m, 7);
  sides.rightCols(m) = B;
  std::vector<double> shared(solve_bytes<T>(n, H * H, warps) / sizeof(double), nan);
  const BatchSolve<T> solve{n, capacity, m, 0, m, Numbers<T>::of(words.data()), sides.data()};
  solve_member<H>(HostTeam{warps * WARP}, solve, 1, which != TriangularSolve::back, which != TriangularSolve::forward,
                  SolveRoom<T>(shared.data(), n, H * H));
  EXPECT_TRUE((sides.leftCols(m).array() == 7).all());
  return sides.rightCols(m);
}

template <class T>
void expect_solved(index_t n, index_t m) {
  Random random(unsigned(n + m));
  const Stored<T> R = well_conditioned(n, random).cast<T>();
  const Stored<double> B = random.normal(n, m).template cast<double>();
  for (const TriangularSolve which : {TriangularSolve::forward, TriangularSolve::back}) {
    const Stored<double> X = solved<4>(R, B, which, 1, n);
    EXPECT_LT(substitution_residual(R.template cast<double>(), which, B, X), 10)
        << "n = " << n << ", m = " << m;
    for (const int warps : {2, 3}) EXPECT_TRUE(solved<4>(R, B, which, warps, n + 5) == X) << n << ", " << warps;
    EXPECT_TRUE(solved<2>(R, B, which, 1, n + 1) == X) << n << ", " << m;
    EXPECT_TRUE(solved<1>(R, B, which, 2, n) == X) << n << ", " << m;
  }
  const Stored<double> forward = solved<2>(R, B, TriangularSolve::forward, 1, n);
  EXPECT_TRUE(solved<2>(R, B, TriangularSolve::both, 2, n) == solved<2>(R, forward, TriangularSolve::back, 2, n));
}

TEST(Member, SolvesForItsRightHandSides) {
  for (const index_t n : {1, 2, 31, 32, 33, 63, 64, 65, 129})
    for (const index_t m : {0, 1, 3, 17}) expect_solved<double>(n, m);
  expect_solved<double>(200, 4);
  expect_solved<float>(70, 5);
}

/// Checks that an overflow in one column changes neither the rows before it nor other columns.
TEST(Member, SolvesBesideWhatOverflows) {
  Random random(8);
  const index_t n = 70;
  Stored<double> R = well_conditioned(n, random).cast<double>(), B = random.normal(n, 4).cast<double>();
  R(40, 40) = 1e-300;
  B(40, 1) = 1e300;
  const Stored<double> X = solved<2>(R, B, TriangularSolve::forward, 1, n);
  EXPECT_TRUE(std::isinf(X(40, 1)));
  EXPECT_TRUE(X.topRows(40).array().isFinite().all());
  EXPECT_TRUE(solved<1>(R, Stored<double>(B.col(3)), TriangularSolve::forward, 1, n) == X.col(3));
}

}  // namespace
}  // namespace gpucholmod::test
