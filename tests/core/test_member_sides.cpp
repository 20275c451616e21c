#include "cuda/kernels/member_modify.h"
#include "cuda/kernels/member_sides.h"

#include "families.h"
#include "host_team.h"

/// Right-hand sides of a member of a batch, modified as by a GPU's team of threads.
namespace gpucholmod::test {
namespace {

using namespace cuda;

constexpr int K = 4;

template <int L = SLOTS>
void modify_by(int threads, const BatchPass<double>& pass, index_t member) {
  if constexpr (L < 256) {
    if (threads > L) return modify_by<2 * L>(threads, pass, member);
  }
  ModifyRoom<double, K, L> room{};
  modify_member<K>(HostTeam{L}, pass, member, room);
}

/// Runs the passes over member number `member` of `of`. R is read from `from`.
void run(const BatchWide<double>& of, double* from, double* out, const double* V, index_t m, double* rest, int added,
         int* pivots, index_t member) {
  for (int first = 0; first == 0 || first < of.k; first += K) {
    BatchPass<double> pass{};
    pass.n = of.n + m;
    pass.rows = of.n;
    pass.R = Numbers<double>::of(first == 0 ? from : out);
    pass.out = Numbers<double>::of(out);
    pass.origin = Numbers<double>::of(from);
    pass.V = V;
    pass.V_stride = pass.n * of.k;
    pass.added = &added;
    pass.first = first;
    pass.columns = std::min<int>(K, int(of.k) - first);
    pass.last = first + K >= of.k;
    pass.rest = rest;
    pass.k = of.k;
    pass.pivots = pivots;
    modify_by(threads_of_member(pass.n), pass, member);
  }
}

struct Two {
  index_t n, k, m;
  Stored<double> R[2], V, z, Y;
  std::vector<double> triangles;

  Two(index_t n, index_t k, index_t m) : n(n), k(k), m(m) {
    Random random(unsigned(100 * n + 10 * k + m));
    for (Stored<double>& one : R) {
      one = well_conditioned(n, random).cast<double>();
      const std::vector<double> words = packed<double>(one);
      triangles.insert(triangles.end(), words.begin(), words.end());
    }
    V = (random.normal(n, 2 * k) / std::sqrt(real(400 * n * k))).cast<double>();
    z = random.normal(n, 2 * m).cast<double>();
    Y = random.normal(k, 2 * m).cast<double>();
  }
};

/// Checks the second of two members. R has the bits that it has without right-hand sides. For z and the rest of Y,
/// R~'z~ = R'z + V diag(+-1) Y, and the sums of squares agree.
void expect_right(index_t n, index_t k, index_t m, int added, int shift) {
  const Two given(n, k, m);
  const index_t all = n + m;
  Stored<double> z = given.z, wide_V(all, 2 * k), wide = Stored<double>::Constant(words_of(all), 2, NAN);
  Stored<double> made = wide, rest(k, 2 * m);
  std::vector<double> out(given.triangles.size(), NAN), alone = out, from = given.triangles;
  std::vector<int> shifts(2 * m, shift);
  for (index_t s = 0; s < m; s += 2) shifts[m + s] = 0;
  int pivots[] = {-1, -1}, own_pivots[] = {-1, -1};
  BatchWide<double> of{n, m, k, from.data(), wide.data(), out.data(), given.V.data(), n * k, given.Y.data(),
                       wide_V.data(), z.data(), shifts.data(), pivots};
  const HostTeam team{64};
  widen_member(team, of, 1);
  run(of, wide.data(), made.data(), wide_V.data(), m, rest.data(), added, pivots, 1);
  of.wide = made.data();
  narrow_member(team, of, 1);
  ASSERT_EQ(pivots[1], -1);
  run({n, 0, k, nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr}, from.data(),
      alone.data(), given.V.data(), 0, nullptr, added, own_pivots, 1);
  EXPECT_TRUE(std::equal(out.begin() + words_of(n), out.end(), alone.begin() + words_of(n)));
  EXPECT_TRUE(z.leftCols(m) == given.z.leftCols(m));

  const Matrix V = given.V.rightCols(k).cast<real>(), R = given.R[1].cast<real>(),
               before = given.z.rightCols(m).cast<real>(), after = z.rightCols(m).cast<real>(),
               Y = given.Y.rightCols(m).cast<real>();
  Matrix left = rest.rightCols(m).cast<real>();
  for (index_t s = 0; s < m; ++s) left.col(s) *= std::scalbn(real(1), -shifts[m + s]);
  const Matrix now = unpacked(std::vector<double>(out.begin() + words_of(n), out.end()), n).cast<real>();
  Matrix signed_Y = Y, signed_left = left;
  signed_Y.bottomRows(k - added) *= -1;
  signed_left.bottomRows(k - added) *= -1;
  const Matrix error = product(now.transpose(), after) - product(R.transpose(), before) - product(V, signed_Y);
  EXPECT_LT(double(norm_1(error)), 1e-13 * double(norm_1(product(R.transpose(), before)) + 1)) << n << " " << k;
  for (index_t s = 0; s < m; ++s)
    EXPECT_NEAR(double(after.col(s).squaredNorm() + left.col(s).dot(signed_left.col(s))),
                double(before.col(s).squaredNorm() + Y.col(s).dot(signed_Y.col(s))),
                1e-12 * double(n + k + before.col(s).squaredNorm()));
}

TEST(MemberSides, ComeAlong) {
  for (const index_t n : {1, 3, 15, 16, 17, 32, 33, 64, 100})
    for (const index_t k : {1, 4, 7})
      for (const index_t m : {1, 2, 17, 40})
        for (const int added : {int(k), int(k) / 2, 0}) expect_right(n, k, m, added, 0);
  expect_right(20, 3, 2, 2, -30);
}

TEST(MemberSides, OfAMemberThatFailsStay) {
  Two given(9, 2, 3);
  given.V.rightCols(2) *= 500;
  Stored<double> z = given.z, wide_V(12, 4), wide = Stored<double>::Constant(words_of(12), 2, NAN), made = wide,
                 rest(2, 6);
  std::vector<double> out(given.triangles.size(), NAN);
  int pivots[] = {-1, -1};
  BatchWide<double> of{9, 3, 2, given.triangles.data(), wide.data(), out.data(), given.V.data(), 18, given.Y.data(),
                       wide_V.data(), z.data(), nullptr, pivots};
  const HostTeam team{32};
  widen_member(team, of, 1);
  run(of, wide.data(), made.data(), wide_V.data(), 3, rest.data(), 0, pivots, 1);
  EXPECT_GE(pivots[1], 0);
  const index_t words = row_of(12, 9) + 9;
  EXPECT_TRUE(made.col(1).head(words) == wide.col(1).head(words));
  of.wide = made.data();
  narrow_member(team, of, 1);
  EXPECT_TRUE(std::equal(out.begin() + words_of(9), out.end(), given.triangles.begin() + words_of(9)));
  EXPECT_TRUE(z == given.z);
}

}  // namespace
}  // namespace gpucholmod::test
