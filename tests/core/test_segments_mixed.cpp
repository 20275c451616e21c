#include <array>
#include <string>
#include <vector>

#include "grid_measure.h"

/// Passes that add columns of V and take others away, by the GPU's kernels on a simulated grid.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// R and V = [added, removed], rounded. The last columns can be removed only after the first have been added.
struct Mixed {
  Stored<double> R, V;
  index_t removed;

  Problem<double> problem() const { return {Sign::update, R, V}; }
  Matrix target() const {
    const Matrix V = this->V.cast<real>(), plus = V.leftCols(V.cols() - removed), minus = V.rightCols(removed);
    return gram(R) + product(plus, plus.transpose()) - product(minus, minus.transpose());
  }
  /// Returns whether all results within the bound are positive definite.
  bool has_factor(double eps) const {
    return first_indefinite(target() - 40 * real(eps) * size() * Matrix::Identity(R.cols(), R.cols())) < 0;
  }
  real size() const {
    const Matrix V = this->V.cast<real>();
    return norm_1(gram(R)) + norm_1(product(V, V.transpose()));
  }
};

/// Returns a problem with the removed columns F'P of F'F = A + V+V+', the singular values of P being sqrt(1 - gap).
Mixed mixed(const Matrix& R, const Matrix& added, const Matrix& seed, real gap) {
  const Matrix F = factor(gram_of(R) + product(added, added.transpose()));
  Matrix V(R.cols(), added.cols() + seed.cols());
  V << added, contraction(F, seed, gap).V.cast<real>();
  return {R.cast<double>(), V.cast<double>(), seed.cols()};
}

Mixed example(index_t n, index_t added, index_t removed, double gap = 0.1, double size = 1) {
  Random random(unsigned(n + 3 * added + 7 * removed));
  const Matrix R = well_conditioned(n, random);
  return mixed(R, size * normal_columns(n, added, {0x1p-52}, random), random.normal(n, removed), gap);
}

/// Checks ||R~'R~ - A~||_1 < 40 eps (||A||_1 + ||V V'||_1), in long double. Returns the outcome of the pass.
template <class T>
PassOutcome measure(const Mixed& given, SegmentsRun how = {}) {
  Mixed p = given;
  p.R = p.R.template cast<T>().template cast<double>();
  how.removed = p.removed;
  const SegmentsResult<T> result = run_segments<T>(p.problem(), how);
  EXPECT_EQ(result.done.pivot, -1);
  expect_sound(result);
  const Matrix left = gram(Stored<double>(result.R.template cast<double>())) - p.target();
  EXPECT_LT(double(norm_1(left) / p.size()), 40 * eps<T>);
  return result.done;
}

class MixedOn : public testing::TestWithParam<int> {};

TEST_P(MixedOn, Residual) {
  const Family& family = families[GetParam()];
  Random random(6);
  unsigned i = unsigned(GetParam());
  PassOutcome most;
  int measured = 0;
  for (const double size : {1e-3, 1.0, 1e3})
    for (const double gap : {0.5, 1e-3, 1e-7})
      for (const index_t added : {1, 16}) {
        const index_t n = std::array{70, 130, 200}[++i % 3], removed = std::array{1, 5, 16}[i / 3 % 3];
        SCOPED_TRACE("n " + std::to_string(n) + ", " + std::to_string(added) + " in, " + std::to_string(removed) +
                     " out, size " + std::to_string(size) + ", gap " + std::to_string(gap));
        const Matrix R = family.factor(n, {0x1p-52}, random), V = size * family.columns(n, added, {0x1p-52}, random);
        SegmentsRun how;
        how.into = i % 2 ? Into::place : Into::other_memory;
        how.panels = i % 4 == 3;
        const Mixed p = mixed(R, V, family.columns(n, removed, {0x1p-52}, random), gap);
        if (!p.has_factor(eps<double>) && !(gap == 0.5 && first_indefinite(p.target()) < 0)) continue;
        ++measured;
        const PassOutcome done = measure<double>(p, how);
        most.fallbacks += done.fallbacks;
        most.rescalings += done.rescalings;
        how.by_steps = true;
        if (i % 3 == 0) measure<double>(p, how);
        if (!p.has_factor(eps<float>)) continue;
        SegmentsRun single;
        measure<float>(p, single);
        single.card = Simulated::graphics;  // a card that computes with floats as well
        measure<float>(p, single);
      }
  EXPECT_GE(measured, 4);
  EXPECT_GT(most.fallbacks + most.rescalings, 0) << "nothing was rejected";
}

INSTANTIATE_TEST_SUITE_P(Segments, MixedOn, testing::Range(0, int(std::size(families))),
                         [](const auto& info) { return std::string(families[info.param].name); });

/// Checks that one pass of both signs agrees with a pass that adds and a pass that then removes.
TEST(SegmentsMixed, AgreesWithTwoPasses) {
  for (const auto& [n, added, removed] :
       {std::array<index_t, 3>{64, 1, 1}, {129, 16, 16}, {300, 3, 11}, {300, 16, 2}}) {
    const Mixed p = example(n, added, removed, 0.5);
    SegmentsRun how;
    how.removed = removed;
    const SegmentsResult<double> both = run_segments<double>(p.problem(), how);
    const SegmentsResult<double> up = run_segments<double>({Sign::update, p.R, p.V.leftCols(added)});
    const SegmentsResult<double> down = run_segments<double>({Sign::downdate, up.R, p.V.rightCols(removed)});
    ASSERT_EQ(both.done.fallbacks, 0);
    EXPECT_LT((both.R - down.R).cwiseAbs().maxCoeff(), 1e-13);
  }
}

TEST(SegmentsMixed, SameRowsInAndOut) {
  for (const double size : {1e-4, 1.0, 1e4}) {
    Mixed p = example(260, 16, 16, 0.5, size);
    p.V.rightCols(16) = p.V.leftCols(16);
    measure<double>(p);
  }
}

/// Checks that the order of teams, the place of the result and panels change no bit.
TEST(SegmentsMixed, DoesNotDependOnTheSchedule) {
  for (const double gap : {0.5, 1e-6}) {
    const Mixed p = example(520, 16, 9, gap, gap < 0.1 ? 100 : 1);
    SegmentsRun how;
    how.removed = p.removed;
    const SegmentsResult<double> expected = run_segments<double>(p.problem(), how);
    EXPECT_EQ(expected.done.rescalings + expected.done.fallbacks > 0, gap < 0.1);
    for (const SegmentsRun& other : {SegmentsRun{7, 5, 10, Into::other_memory, 5, 2}, {2, 5, 1000, Into::place, 3, 2},
                                     {3, 2, 24, Into::other_memory, 0, 2, 1},
                                     outside({2, 2, 24, Into::place, 3, 2, 2})}) {
      SegmentsRun run = other;
      run.removed = p.removed;
      const SegmentsResult<double> result = run_segments<double>(p.problem(), run);
      EXPECT_TRUE(same_bits(result.R, expected.R)) << "gap " << gap << ", panels " << run.panels;
    }
  }
}

/// Checks that the failing pivot is that of the final matrix, whatever the added columns alone would have come to.
TEST(SegmentsMixed, FailsWhereTheFinalMatrixDoes) {
  for (const index_t pivot : {0, 63, 64, 150}) {
    Mixed p = example(200, 4, 1, 0.5);
    p.V.col(4).setZero();
    p.V(pivot, 4) = 50;
    SegmentsRun how;
    how.removed = 1;
    EXPECT_EQ(run_segments<double>(p.problem(), how).done.pivot, pivot);
    how.by_steps = true;
    EXPECT_EQ(run_segments<double>(p.problem(), how).done.pivot, pivot);
  }
}

TEST(SegmentsMixed, ScalesWhatItWrites) {
  const Mixed p = example(150, 7, 3, 1e-6, 30);
  SegmentsRun how;
  how.removed = 3;
  const SegmentsResult<double> plain = run_segments<double>(p.problem(), how);
  EXPECT_GT(plain.done.fallbacks, 0);
  how.scaling = {0.25, 150};
  EXPECT_TRUE(same_bits(Stored<double>(0.25 * plain.R), run_segments<double>(p.problem(), how).R));
}

/// Checks the passes: columns that are added come first; a pass has both signs if that saves a pass.
TEST(PassesOf, JoinsBothSignsWhereThatSavesAPass) {
  struct Expected {
    index_t k, removed, width;
    std::vector<std::array<index_t, 3>> passes;  ///< first, count, removed
  };
  const Expected all[] = {{5, 0, 32, {{0, 5, 0}}},
                          {5, 5, 32, {{0, 5, 5}}},
                          {32, 16, 32, {{0, 32, 16}}},
                          {2, 1, 32, {{0, 2, 1}}},
                          {33, 16, 32, {{0, 17, 0}, {17, 16, 16}}},
                          {33, 17, 32, {{0, 16, 0}, {16, 17, 17}}},
                          {64, 32, 32, {{0, 32, 0}, {32, 32, 32}}},
                          {90, 40, 32, {{0, 32, 0}, {32, 18, 0}, {50, 32, 32}, {82, 8, 8}}},
                          {80, 40, 32, {{0, 32, 0}, {32, 16, 8}, {48, 32, 32}}},
                          {20, 10, 16, {{0, 10, 0}, {10, 10, 10}}},
                          {0, 0, 32, {}}};
  for (const Expected& e : all) {
    std::vector<std::array<index_t, 3>> passes;
    for (const PassColumns& pass : passes_of(e.k, e.removed, e.width))
      passes.push_back({pass.first, pass.count, pass.removed});
    EXPECT_EQ(passes, e.passes) << e.k << ", " << e.removed << ", " << e.width;
  }
}

}  // namespace
}  // namespace gpucholmod::test
