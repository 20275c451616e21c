#include <cmath>

#include "batch_call.h"
#include "modify/batch.h"
#include "solve_modified_call.h"

/// Solutions with a modification of each member of a batch.
namespace gpucholmod::test {
namespace {

/// The results for a batch, NaN where nothing was written, and the systems that are wanted.
struct Solved {
  index_t n, m, b;
  std::vector<double> solution, quadratic, logdet;
  Pivots pivots;

  Solved(index_t n, index_t m, index_t b)
      : n(n), m(m), b(b), solution(n * m * b, NAN), quadratic(m * b, NAN), logdet(b, NAN) {}
  BatchSystems wanted(const std::vector<double>& sides) {
    return {m, sides.data(), index_t(sides.size()) == n * m && b != 1, solution.data(), quadratic.data(),
            logdet.data()};
  }
  Matrix solution_of(index_t member) const {
    return Eigen::Map<const Doubles>(solution.data() + member * n * m, n, m).cast<real>();
  }
};

/// The way to solve: the backend's own, or by a modified copy as for any backend.
enum class Way { own, by_copy };

Solved solved(Batch& batch, HeldBatch& held, const std::vector<double>& sides, index_t m, Way way = Way::own) {
  Solved found(held.order(), m, held.count());
  const BatchSystems wanted = found.wanted(sides);
  if (way == Way::own) solve_modified(held, batch.V.data(), batch.given(), wanted, found.pivots, unwatched);
  else held.HeldBatch::solve_modified(batch.V.data(), batch.given(), wanted, found.pivots, unwatched);
  return found;
}

/// Returns four right-hand sides of each member.
std::vector<double> sides_of_all(const Batch& batch) {
  Random random(5);
  std::vector<double> all;
  for (index_t m = 0; m < batch.b; ++m) {
    const Doubles V = Eigen::Map<const Doubles>(batch.V.data() + m * batch.n * batch.k, batch.n, batch.k);
    const Doubles b = sides(batch.factor(m), V, random);
    all.insert(all.end(), b.data(), b.data() + b.size());
  }
  return all;
}

Member modification_of(const Batch& batch, index_t m) {
  const index_t n = batch.n, k = batch.k;
  return {Eigen::Map<const Doubles>(batch.V.data() + m * n * k, n, k),
          {batch.weights.begin() + m * k, batch.weights.begin() + (m + 1) * k},
          batch.scale.empty() ? 1 : std::sqrt(batch.scale[batch.scale.size() == 1 ? 0 : m])};
}

/// Solves with all members by both ways, and checks the errors of the members that are positive definite.
void expect_accurate(Batch& batch, Precision precision, const std::string& what) {
  batch.task.all_or_none = false;
  const auto held = batch.hold(precision);
  const std::vector<double> before = numbers(*held), b = sides_of_all(batch);
  const Pivots pivots = modified(batch, precision, How::made).pivots;
  for (const Way way : {Way::own, Way::by_copy}) {
    const Solved found = solved(batch, *held, b, 4, way);
    EXPECT_EQ(found.pivots, pivots) << what;
    for (index_t m = 0; m < batch.b; ++m) {
      if (pivots[m] >= 0) continue;
      const Matrix own = Eigen::Map<const Doubles>(b.data() + m * batch.n * 4, batch.n, 4).cast<real>();
      const Errors e = errors(batch.factor(m), modification_of(batch, m), own, found.solution_of(m),
                              found.quadratic.data() + 4 * m, found.logdet[m], epsilon(precision));
      EXPECT_LT(e.solution, 40) << what << " " << m;
      EXPECT_LT(e.quadratic, 40) << what << " " << m;
      EXPECT_LT(e.logdet, 40) << what << " " << m;
    }
  }
  EXPECT_TRUE(same(numbers(*held), before));
}

TEST(BatchSolveModified, FamiliesOfMatrices) {
  for (const Precision precision : precisions)
    for (const index_t n : {1, 9, 40})
      for (const index_t k : {1, 3, 9, 70}) {
        Batch batch(all_families(n, k, precision, 11));
        expect_accurate(batch, precision, std::to_string(n) + " " + std::to_string(k));
      }
}

TEST(BatchSolveModified, WeightsAndScalesOfEachMember) {
  for (const Precision precision : precisions)
    for (const index_t k : {1, 2, 5}) {
      Batch batch = weighted_and_scaled(12, k, precision);
      expect_accurate(batch, precision, std::to_string(k));
    }
}

TEST(BatchSolveModified, MembersThatFailAreTold) {
  Pivots expected;
  Batch batch(some_that_fail(20, 2, expected));
  const auto held = batch.hold(Precision::double_);
  const std::vector<double> b = sides_of_all(batch);
  for (const bool all_or_none : {true, false}) {
    batch.task.all_or_none = all_or_none;
    for (const Way way : {Way::own, Way::by_copy}) {
      Solved found = solved(batch, *held, b, 4, way);
      EXPECT_EQ(found.pivots, expected);
      mark_failed(found.wanted(b), 20, found.pivots, -INFINITY);
      for (index_t m = 0; m < batch.b; ++m) {
        EXPECT_EQ(found.logdet[m] == -INFINITY, expected[m] >= 0) << m;
        EXPECT_EQ(found.solution_of(m).allFinite(), expected[m] < 0) << m;
        EXPECT_EQ(found.quadratic[4 * m + 3] == -INFINITY, expected[m] >= 0) << m;
      }
    }
  }
}

/// Members of several orders. Rows beyond a member's order may hold anything.
TEST(BatchSolveModified, SeveralOrders) {
  for (const Precision precision : precisions) {
    Batch batch = weighted_and_scaled(6, 2, precision);
    BatchRoom room;
    for (index_t m = 0; m < batch.b; ++m) {
      room.orders.push_back(m == 0 ? 6 : m % 7);
      const MatrixView<double> R{batch.R.data() + m * 36, 6, 6, 6};
      for (index_t j = 0; j < 6; ++j)
        for (index_t i = 0; i < 6; ++i)
          if (i >= room.orders[m] || j >= room.orders[m]) R(i, j) = i == j;
      for (index_t q = 0; q < 2; ++q)
        std::fill_n(batch.V.begin() + m * 12 + q * 6 + room.orders[m], 6 - room.orders[m], 0);
    }
    const auto held =
        cpu::hold_batch(batch.R.data(), 6, batch.b, Uplo::upper, precision, cpu::ordinary_memory, room);
    const std::vector<double> b = sides_of_all(batch);
    for (const Way way : {Way::own, Way::by_copy}) {
      const Solved found = solved(batch, *held, b, 4, way);
      for (index_t m = 0; m < batch.b; ++m) {
        const index_t own = room.orders[m];
        const Matrix all = Eigen::Map<const Doubles>(b.data() + m * 24, 6, 4).cast<real>(), x = found.solution_of(m);
        EXPECT_TRUE(x.bottomRows(6 - own) == all.bottomRows(6 - own)) << m;
        Member changed = modification_of(batch, m);
        changed.V = changed.V.topRows(own).eval();
        const Errors e = errors(batch.factor(m).topLeftCorner(own, own), changed, all.topRows(own), x.topRows(own),
                                found.quadratic.data() + 4 * m, found.logdet[m], epsilon(precision));
        EXPECT_LT(std::max({e.solution, e.quadratic, e.logdet}), 40) << m;
      }
    }
    batch.V[12 + 5] = 1;  // a row beyond the order of member 2
    EXPECT_EQ(number(*error_of([&] { solved(batch, *held, b, 4); }), "member"), 2);
  }
}

TEST(BatchSolveModified, OneVAndOneBForAll) {
  Batch batch(all_families(12, 3, Precision::double_, 9));
  batch.task.all_or_none = false;
  const std::vector<double> b(batch.V.begin(), batch.V.begin() + 24);
  std::vector<double> repeated;
  for (index_t m = 0; m < batch.b; ++m) repeated.insert(repeated.end(), b.begin(), b.end());
  const auto held = batch.hold(Precision::double_);
  for (const Way way : {Way::own, Way::by_copy}) {
    const Solved one = solved(batch, *held, b, 2, way), each = solved(batch, *held, repeated, 2, way);
    EXPECT_TRUE(same(one.solution, each.solution));
    EXPECT_TRUE(same(one.quadratic, each.quadratic));
  }
  const auto at = [&](Solved& found, BatchSystems wanted) {
    solve_modified(*held, batch.V.data(), batch.given(), wanted, found.pivots, unwatched);
  };
  const Solved all = solved(batch, *held, repeated, 2);
  Solved apart(12, 2, batch.b);
  const BatchSystems whole = apart.wanted(repeated);
  at(apart, {2, whole.b, false, nullptr, whole.quadratic, nullptr});
  at(apart, {2, whole.b, false, whole.solution, nullptr, nullptr});
  at(apart, {0, nullptr, false, nullptr, nullptr, whole.logdet});
  EXPECT_TRUE(same(apart.solution, all.solution));
  EXPECT_TRUE(same(apart.quadratic, all.quadratic));
  EXPECT_TRUE(same(apart.logdet, all.logdet));
}

TEST(BatchSolveModified, NothingDependsOnThreads) {
  const std::vector<Problem<double>> members = all_families(17, 2, Precision::double_, 3);
  std::vector<Problem<double>> many;
  for (int i = 0; i < 40; ++i) many.insert(many.end(), members.begin(), members.end());
  Batch batch(many);
  batch.task.all_or_none = false;
  const auto held = batch.hold(Precision::double_);
  const std::vector<double> b = sides_of_all(batch);
  const Solved one = solved(batch, *held, b, 4);
  batch.task.threads = 3;
  const Solved several = solved(batch, *held, b, 4);
  EXPECT_EQ(one.pivots, several.pivots);
  EXPECT_TRUE(same(one.logdet, several.logdet));
  EXPECT_TRUE(same(one.quadratic, several.quadratic));
  EXPECT_TRUE(same(one.solution, several.solution));
  batch.V.back() = NAN;  // found after other members have been solved with
  const Error late = *error_of([&] { solved(batch, *held, b, 4); });
  EXPECT_EQ(late.code(), ErrorCode::not_finite);
  EXPECT_EQ(number(late, "member"), double(many.size()));
}

TEST(BatchSolveModified, BadNumbersAreNamedAndTheCallMayBeStopped) {
  Batch batch(all_families(6, 2, Precision::double_, 9));
  const auto held = batch.hold(Precision::double_);
  const std::vector<double> b = sides_of_all(batch), before = numbers(*held);
  Batch wrong = batch;
  wrong.V[12 * 9 + 7] = INFINITY;
  const Error infinite = *error_of([&] { solved(wrong, *held, b, 4); });
  EXPECT_EQ(infinite.code(), ErrorCode::not_finite);
  EXPECT_EQ(number(infinite, "member"), 10);
  EXPECT_EQ(number(infinite, "row"), 2);
  EXPECT_EQ(number(infinite, "col"), 2);
  std::vector<double> nowhere = b;
  nowhere[24 * 3 + 6 + 4] = NAN;
  const Error of_b = *error_of([&] { solved(batch, *held, nowhere, 4); });
  EXPECT_EQ(of_b.code(), ErrorCode::not_finite);
  EXPECT_EQ(text(of_b, "argument"), "b");
  EXPECT_EQ(number(of_b, "member"), 4);
  EXPECT_EQ(number(of_b, "row"), 5);
  EXPECT_EQ(number(of_b, "col"), 2);
  Solved found(6, 4, batch.b);
  struct Stop {};
  EXPECT_THROW(solve_modified(*held, batch.V.data(), batch.given(), found.wanted(b), found.pivots,
                              [](double) { throw Stop(); }),
               Stop);
  EXPECT_TRUE(same(numbers(*held), before));
}

TEST(BatchSolveModified, OfNothing) {
  for (const auto& [n, b] : {std::pair<index_t, index_t>{0, 3}, {5, 0}, {0, 0}}) {
    const std::vector<double> R(n * n * b), V(n * 2 * b), sides(n * 3 * b);
    const auto held = cpu::hold_batch(R.data(), n, b, Uplo::upper, Precision::double_, cpu::ordinary_memory);
    BatchTask task;
    task.k = 2;
    for (const Way way : {Way::own, Way::by_copy}) {
      Solved found(n, 3, b);
      if (way == Way::own) held->solve_modified(V.data(), task, found.wanted(sides), found.pivots, unwatched);
      else held->HeldBatch::solve_modified(V.data(), task, found.wanted(sides), found.pivots, unwatched);
      EXPECT_EQ(found.pivots, Pivots(b, -1));
      EXPECT_TRUE(same(found.logdet, std::vector<double>(b, 0)));
      EXPECT_TRUE(same(found.quadratic, std::vector<double>(3 * b, 0)));
    }
  }
}

}  // namespace
}  // namespace gpucholmod::test
