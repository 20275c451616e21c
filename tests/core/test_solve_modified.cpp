#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <atomic>

#include "call.h"
#include "solve_modified_call.h"

/// Solutions with many modifications of one factor.
namespace gpucholmod::test {
namespace {

constexpr index_t ranks[] = {1, 2, 6, 40};

TEST(SolveModified, FamiliesOfMatrices) {
  for (const index_t n : {1, 9, 70})
    for (const index_t k : ranks)
      for (const Family& family : families)
        for (const Sign sign : signs) {
          Random random(3);
          const Level level{0x1p-52};
          const Problem<double> p = family.make(sign, family.factor(n, level, random), std::min(n, k), level, random);
          expect_accurate(factor_of(p), around(p),
                          std::string(family.name) + " " + std::to_string(n) + " " + std::to_string(k));
        }
}

TEST(SolveModified, HardCases) {
  for (const index_t k : ranks)
    for (const Case& c : cases) {
      Random random(4);
      const Problem<double> p = c.make(75, k, Level{0x1p-52}, random);
      expect_accurate(factor_of(p), around(p), std::string(c.name) + " " + std::to_string(k));
    }
}

TEST(SolveModified, SinglePrecision) {
  for (const index_t k : ranks)
    for (const Family& family : families)
      for (const Sign sign : signs) {
        Random random(5);
        const Level level{0x1p-23};
        Problem<double> p = family.make(sign, family.factor(90, level, random), k, level, random);
        p.R = p.R.cast<float>().cast<double>().eval();
        p.V = p.V.cast<float>().cast<double>().eval();
        expect_accurate(upper(p.R), around(p), std::string(family.name) + " " + std::to_string(k), Precision::single);
      }
}

TEST(SolveModified, TheFactorIsMadeOnlyWhereItIsNeeded) {
  Random random(6);
  const index_t n = 80;
  const Doubles R = well_conditioned(n, random).cast<double>(), V = (random.normal(n, 6) / 9).cast<double>();
  EXPECT_EQ(
      expect_accurate(
          R,
          {signed_member(Sign::update, V), signed_member(Sign::downdate, V / 10), {V, {1, -0.01, 1, -0.01, 0, 1}, 3}},
          "plain"),
      0);
  EXPECT_EQ(
      expect_accurate(
          R, {signed_member(Sign::update, V), signed_member(Sign::update, V * 1e3), {V, std::vector<double>(6, 1e12)}},
          "large"),
      2);
  Doubles many = (random.normal(n, n + 1) / 30).cast<double>();
  EXPECT_EQ(expect_accurate(R, {signed_member(Sign::update, many.leftCols(n)), signed_member(Sign::update, many)},
                            "more columns than rows"),
            1);
  const Problem<double> near = contraction(R.cast<real>(), random.normal(n, 1), 1e-12L),
                        far = contraction(R.cast<real>(), random.normal(n, 1), 1e-8L);
  EXPECT_EQ(expect_accurate(R, {signed_member(Sign::downdate, near.V), signed_member(Sign::downdate, far.V)},
                            "nearly singular"),
            1);
}

TEST(SolveModified, WeightsAndScales) {
  Random random(7);
  for (const index_t n : {1, 7, 65, 200})
    for (const index_t k : {1, 2, 5, 9, 40}) {
      const Doubles R = well_conditioned(n, random).cast<double>();
      std::vector<Member> members;
      for (const double scale : {1.0, 0.995, 3.0, 1e-3}) {
        const Doubles V = (random.normal(n, k) / std::sqrt(real(n)) * scale).cast<double>();
        std::vector<double> mixed, wide;
        for (index_t q = 0; q < k; ++q) {
          mixed.push_back(q % 5 == 4 ? 0 : q % 2 ? -0.02 : 1.5);
          wide.push_back(std::pow(10, 24 * double(q * 7 % k) / double(k) - 12));
        }
        members.push_back({V, mixed, scale});
        members.push_back({V, wide, scale});
      }
      expect_accurate(R, members, std::to_string(n) + " " + std::to_string(k));
    }
}

/// Checks that columns that are added and removed give A back, however large they are: no pivot fails on the way, as
/// added columns come first.
TEST(SolveModified, SameColumnsInAndOut) {
  Random random(8);
  const Doubles R = well_conditioned(90, random).cast<double>();
  for (const double size : {0.1, 1.0, 1e3, 1e5}) {
    Doubles V = (random.normal(90, 8) * real(size) / 9).cast<double>();
    V.rightCols(4) = V.leftCols(4);
    expect_accurate(R, {{V, {-1, -1, -1, -1, 1, 1, 1, 1}}}, std::to_string(size));
  }
}

/// Checks that the verdict and the pivot are those of modify(), on both sides of singular, unless A_j is so near to
/// singular that rounding decides.
TEST(SolveModified, WhatIsPositiveDefinite) {
  for (const index_t n : {9, 64, 130})
    for (const index_t k : {1, 5})
      for (const Family& family : families) {
        Random random(unsigned(n + k));
        const Doubles R = family.factor(n, Level{0x1p-52}, random).cast<double>();
        std::vector<Member> members;
        for (int e = -17; e <= -1; ++e)
          for (const real sign : {1, -1}) {
            members.push_back(signed_member(
                Sign::downdate, contraction(R.cast<real>(), random.normal(n, k), sign * std::pow(10.0L, e)).V));
            members.push_back({members.back().V, std::vector<double>(k, -0.25), 0.5});
          }
        const auto held = cpu::borrow(R.data(), n, cpu::ordinary_memory);
        const Found found = solved(*held, members, Doubles::Ones(n, 1), 1);
        index_t failed = 0;
        for (std::size_t j = 0; j < members.size(); ++j) {
          Request request;
          request.n = n;
          request.k = k;
          request.weights = members[j].w;
          request.scale = members[j].scale;
          std::unique_ptr<HeldFactor> made;
          std::atomic<bool> begun{false};
          const Outcome done =
              modify(Place<double>::held(*held, &made, begun), members[j].V.data(), request, [](double) {});
          EXPECT_FALSE(begun);
          if (found.outcome.pivot[j] != done.pivot) {
            const Operand operand(R, members[j]);
            const Matrix slack = real(40 * 0x1p-52) * operand.D * Matrix::Identity(n, n);
            EXPECT_TRUE(first_indefinite(operand.A - slack) >= 0 && first_indefinite(operand.A + slack) < 0)
                << family.name << " " << n << " " << k << " " << j;
          }
          failed += done.pivot >= 0;
        }
        EXPECT_GE(failed, index_t(members.size()) / 4) << family.name;
      }
}

/// Checks that members in blocks, with common right-hand sides or their own, have the results of each member alone.
TEST(SolveModified, ManyAreAsEachAlone) {
  Random random(10);
  const index_t n = 130, f = 700;
  const Doubles R = well_conditioned(n, random).cast<double>(), b = random.normal(n, 2 * f).cast<double>();
  std::vector<Member> members;
  for (index_t j = 0; j < f; ++j)
    members.push_back(signed_member(j % 3 ? Sign::update : Sign::downdate,
                                    (random.normal(n, j % 4) / (j == 5 ? 1 : 60)).cast<double>()));
  const Found own = solved(R, members, b, 2), common = solved(R, members, b.leftCols(2), 2);
  for (index_t j = 0; j < f; ++j) {
    const std::vector<Member> one = {members[size_t(j)]};
    const Found a = solved(R, one, b.middleCols(2 * j, 2), 2), c = solved(R, one, b.leftCols(2), 2);
    ASSERT_EQ(own.outcome.pivot[j], a.outcome.pivot[0]);
    if (a.outcome.pivot[0] >= 0) continue;
    EXPECT_LT((own.solution.middleCols(2 * j, 2) - a.solution).norm(), 1e-13 * a.solution.norm()) << j;
    EXPECT_LT((common.solution.middleCols(2 * j, 2) - c.solution).norm(), 1e-13 * c.solution.norm()) << j;
    EXPECT_LT((own.quadratic.col(j) - a.quadratic).norm(), 1e-13 * a.quadratic.norm()) << j;
    EXPECT_NEAR(common.logdet[size_t(j)], c.logdet[0], 1e-12 * std::abs(c.logdet[0])) << j;
  }
  EXPECT_EQ(own.outcome.pivot[5], -1);
}

TEST(SolveModified, OnlyWhatIsWanted) {
  Random random(11);
  const index_t n = 40, f = 6;
  const Doubles R = well_conditioned(n, random).cast<double>(), V = (random.normal(n, 3 * f) / 20).cast<double>(),
                b = random.normal(n, 2).cast<double>();
  std::vector<double> w(3 * f, 1);
  for (index_t q = 0; q < 3 * f; q += 2) w[size_t(q)] = -1;
  w[3] = 1e14;  // R is modified for this member
  std::vector<Member> members;
  for (index_t j = 0; j < f; ++j)
    members.push_back({V.middleCols(3 * j, 3), {w.begin() + 3 * j, w.begin() + 3 * j + 3}});
  const Found all = solved(R, members, b, 2);
  EXPECT_EQ(all.by_factor(), 1);
  const auto held = cpu::borrow(R.data(), n, cpu::ordinary_memory);
  for (int wants = 0; wants < 8; ++wants) {
    ModifiedSystems systems;
    systems.asked.n = n;
    systems.k.assign(f, 3);
    systems.scale.assign(f, 1);
    systems.V = V.data();
    systems.weights = w.data();
    systems.m = wants & 5 ? 2 : 0;
    systems.b = wants & 5 ? b.data() : nullptr;
    Doubles solution(n, 2 * f), quadratic(2, f), logdet(1, f);
    if (wants & 1) systems.solution = solution.data();
    if (wants & 2) systems.logdet = logdet.data();
    if (wants & 4) systems.quadratic = quadratic.data();
    solve_modified(*held, systems, [](double) {});
    EXPECT_TRUE(!(wants & 1) || same_bits(solution, all.solution)) << wants;
    EXPECT_TRUE(!(wants & 2) || std::equal(all.logdet.begin(), all.logdet.end(), logdet.data())) << wants;
    EXPECT_TRUE(!(wants & 4) || same_bits(quadratic, all.quadratic)) << wants;
  }
}

TEST(SolveModified, NothingToDo) {
  const Doubles none(0, 0), R = Doubles::Identity(3, 3) * 2, b = Doubles::Ones(3, 1);
  const Found empty = solved(none, {{Doubles(0, 0), {}}, {Doubles(0, 2), {1, -1}, 2}}, Doubles(0, 1), 1);
  EXPECT_EQ(empty.logdet[0], 0);
  EXPECT_EQ(empty.logdet[1], 0);
  EXPECT_EQ(empty.quadratic(0, 1), 0);
  EXPECT_TRUE(solved(R, {}, b, 1).outcome.pivot.empty());
  const Found same = solved(R, {{Doubles(3, 0), {}, 2}, {Doubles::Ones(3, 1), {0}}}, b, 1);
  EXPECT_EQ(same.solution, (Doubles(3, 2) << 1, 4, 1, 4, 1, 4).finished() / 16);
  EXPECT_EQ(same.quadratic(0, 0), 3.0 / 16);
  EXPECT_DOUBLE_EQ(same.logdet[0], 3 * std::log(16.0));
}

/// Numbers whose squares leave the range: R, which is scaled, is modified for each member.
TEST(SolveModified, EndsOfTheRange) {
  Random random(12);
  const Doubles R = well_conditioned(30, random).cast<double>(), V = (random.normal(30, 2) / 9).cast<double>(),
                b = random.normal(30, 1).cast<double>();
  const Found plain = solved(R, {signed_member(Sign::update, V), signed_member(Sign::downdate, V / 4)}, b, 1);
  for (const int e : {-1800, -1000, -600, 500, 600, 1000}) {
    const double by = std::ldexp(1.0, e / 2);
    const Doubles large = R * by, V_large = V * by;
    const Found found =
        solved(large, {signed_member(Sign::update, V_large), signed_member(Sign::downdate, V_large / 4)}, b * by, 1);
    EXPECT_EQ(found.by_factor(), std::abs(e) < 800 ? 0 : 2) << e;
    EXPECT_LT((found.solution * by - plain.solution).norm(), 1e-13 * plain.solution.norm()) << e;
    EXPECT_NEAR(found.logdet[0] - 30 * e * std::log(2), plain.logdet[0], 1e-10) << e;
  }
}

TEST(SolveModified, ErrorsTellTheMember) {
  Random random(13);
  const Doubles R = well_conditioned(20, random).cast<double>(), b = random.normal(20, 1).cast<double>();
  std::vector<Member> members(4, signed_member(Sign::update, (random.normal(20, 3) / 9).cast<double>()));
  members[2].V(6, 1) = NAN;
  auto error = error_of([&] { solved(R, members, b, 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::not_finite);
  EXPECT_EQ(number(*error, "member"), 3);
  EXPECT_EQ(number(*error, "row"), 7);
  EXPECT_EQ(number(*error, "col"), 2);
  members[2].V(6, 1) = 1e200;
  members[2].w[1] = 1e300;
  error = error_of([&] { solved(R, members, b, 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::overflow);
  EXPECT_EQ(number(*error, "member"), 3);
  Doubles bad = b;
  bad(4) = INFINITY;
  members.resize(1);
  error = error_of([&] { solved(R, members, bad, 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(text(*error, "argument"), "b");
}

TEST(SolveModified, CanBeStopped) {
  Random random(14);
  const Doubles R = well_conditioned(20, random).cast<double>(), b = random.normal(20, 1).cast<double>();
  std::vector<Member> members(6000, signed_member(Sign::update, (random.normal(20, 3) / 9).cast<double>()));
  for (std::size_t j = 0; j < members.size(); j += 1500) members[j].w.assign(3, 1e12);  // R is modified for these
  const auto held = cpu::borrow(R.data(), 20, cpu::ordinary_memory);
  struct Stop {};
  double told = -1;
  EXPECT_THROW(solved(*held, members, b, 1, [&](double done) {
    EXPECT_GE(done, told);
    told = done;
    if (done > 0.5) throw Stop();
  }), Stop);
  EXPECT_GT(told, 0.5);
  EXPECT_LT(told, 0.8);
}

}  // namespace
}  // namespace gpucholmod::test
