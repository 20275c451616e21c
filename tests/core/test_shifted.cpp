#include <gtest/gtest.h>

#include "block_columns/shifted.h"
#include "call.h"
#include "host_grid.h"
#include "reshape_call.h"

/// The GPU's way to shift a column, on the CPU.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// Returns the factor with row and column `from` moved to `to`, in memory with NaN wherever nothing may be read.
template <class T>
Stored<T> moved(const Stored<T>& R, index_t from, index_t to) {
  const index_t n = R.cols(), first = std::min(from, to), last = std::max(from, to);
  Stored<T> M = Stored<T>::Constant(n, n, std::numeric_limits<T>::quiet_NaN());
  for (index_t j = 0; j < n; ++j) {
    const index_t source = j == to ? from : j < first || j > last ? j : from < to ? j + 1 : j - 1;
    for (index_t i = 0; i <= j; ++i) M(i, j) = i <= source ? R(i, source) : T(0);
  }
  Stored<T> below = R.diagonal(), column = R.col(from);
  std::vector<Reflection<T>> turns(last - first);
  std::vector<double> shared(Reflecting<T, HostTeam>::words);
  const Shifted<T> s{M.data(), n, n, first, last, turns.data(), below.data() + first + 1};
  Reflecting<T, HostTeam> team(HostTeam{shared.data()}, s);
  constexpr index_t COLUMNS = Reflecting<T, HostTeam>::COLUMNS;
  if (from < to) {
    for (index_t begin = first; begin < last; begin += NB) {
      const index_t behind = std::min<index_t>(begin + NB, last);
      team.find(begin);
      for (index_t j = behind; j < n; j += COLUMNS) team.follow(begin, j);
    }
  } else {
    turns = fold_up(column.data(), from, to);
    std::reverse(turns.begin(), turns.end());
    M.col(to).head(to + 1) = column.topRows(to + 1);
    const Shifted<T> all{M.data(), n, n, first, last, turns.data(), nullptr};
    Reflecting<T, HostTeam> behind(HostTeam{shared.data()}, all);
    for (index_t j = first + 1; j < n; j += COLUMNS) behind.follow_back(j);
  }
  return M.template triangularView<Eigen::Upper>();
}

template <class T>
void expect_moved() {
  Random random(24);
  for (const index_t n : {2, 40, 64, 65, 200, 290}) {
    const Stored<T> R = well_conditioned(n, random).cast<T>();
    for (const index_t from : {index_t(0), n / 3, n - 1})
      for (const index_t to : {index_t(0), n / 2, n - 1}) {
        if (from == to) continue;
        SCOPED_TRACE("n " + std::to_string(n) + ", from " + std::to_string(from) + " to " + std::to_string(to));
        const Stored<T> M = moved(R, from, to);
        ASSERT_TRUE(M.allFinite());
        EXPECT_GT(M.diagonal().minCoeff(), 0);
        const Matrix A = picked(gram(R), with_moved(n, from, to));
        EXPECT_LT(double(norm_1(gram(M) - A) / (real(std::numeric_limits<T>::epsilon()) * norm_1(A))), 40);
      }
  }
}

TEST(Shifted, IsUpperAgain) {
  expect_moved<double>();
  expect_moved<float>();
}

}  // namespace
}  // namespace gpucholmod::test
