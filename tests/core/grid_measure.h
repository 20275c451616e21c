#pragma once

#include <gtest/gtest.h>

#include "families.h"
#include "segment_call.h"

/// Problems for the block-column method on a simulated grid, and the checks that every result has to pass.
namespace gpucholmod::test {

template <class T>
constexpr double eps = std::numeric_limits<T>::epsilon();

/// Returns the problem with its factor rounded to T.
template <class T>
Problem<double> stored_as(Problem<double> p) {
  p.R = p.R.template cast<T>().template cast<double>();
  return p;
}

inline Problem<double> random_problem(Sign sign, index_t n, index_t k, unsigned seed = 3) {
  Random random(seed);
  const Matrix R = well_conditioned(n, random), V = random.normal(n, k) / std::sqrt(real(n));
  return sign == Sign::update ? problem(sign, R, V) : undo(R, V);
}

/// Returns problems that take every path: unscaled steps by inverses, refinement and substitution, rescalings, and
/// Householder steps after unscaled steps and after rescalings.
inline std::vector<Problem<double>> of_every_kind(index_t n, index_t k, double level = eps<double>) {
  Random random(10);
  std::vector<Problem<double>> problems;
  for (const int which : {0, 1, 6, 7, 8, 10}) problems.push_back(cases[which].make(n, k, Level{level}, random));
  return problems;
}

/// Expects a factor with a positive diagonal and zeros below it, continued by the identity, and no other memory
/// touched.
template <class T>
void expect_sound(const SegmentsResult<T>& result) {
  const index_t n = result.R.cols(), padded = result.memory.cols();
  index_t bad = 0;
  for (index_t j = 0; j < padded; ++j)
    for (index_t i = 0; i < result.memory.rows(); ++i) {
      const T entry = result.memory(i, j);
      const bool below_block = i >= (j / block_columns::NB + 1) * block_columns::NB;
      bad += below_block ? !std::isnan(entry) : i > j ? entry != 0 : i == j ? !(entry > 0) : !std::isfinite(entry);
      if (j >= n && i <= j) bad += entry != T(i == j);
    }
  EXPECT_EQ(bad, 0) << "entries that are not as they have to be";
}

/// Modifies the factor, stored as T, by unscaled steps with their guard and by Householder steps alone. Expects of each
/// result, in long double, with the machine epsilon eps of T:
///
///   ratio = ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1)) < 30.
template <class T>
void measure(const Problem<double>& given, SegmentsRun how = {}) {
  const Problem<double> p = stored_as<T>(given);
  const Residual residual(p);
  const index_t n = p.R.cols(), k = p.V.cols();
  for (const bool fall_back : {false, true}) {
    how.by_steps = fall_back;
    const SegmentsResult<T> result = run_segments<T>(p, how);
    SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + (fall_back ? ", always falling back" : ""));
    ASSERT_EQ(result.done.pivot, -1);
    expect_sound(result);
    EXPECT_TRUE(result.input_kept);
    const double ratio = residual.ratio(Stored<double>(result.R.template cast<double>()), eps<T>);
    EXPECT_LT(ratio, 30);
    EXPECT_LT(ratio * (n + k), 40) << "n + k hides a loss of accuracy";
    if (fall_back) {
      EXPECT_EQ(result.done.fallbacks, row_blocks(n));
    }
  }
}

inline void measure(const Problem<double>& p, Precision precision) {
  if (precision == Precision::single) measure<float>(p);
  else measure<double>(p);
}

}  // namespace gpucholmod::test
