#include "base/held_batch.h"

#include <algorithm>
#include <cmath>

#include "base/factor_io.h"

namespace gpucholmod {
namespace {

/// Solves with all members of R, for the right-hand sides and results of `wanted`.
void solve_all(const HeldBatch& R, const BatchSystems& wanted) {
  const index_t n = R.order(), m = wanted.m, b = R.count();
  if (n * b == 0) {
    if (wanted.quadratic) std::fill_n(wanted.quadratic, m * b, 0.0);
    return;
  }
  std::vector<double> own(wanted.solution ? 0 : n * m * b);
  double* const X = wanted.solution ? wanted.solution : own.data();
  for (index_t j = 0; j < b; ++j) std::copy_n(wanted.b_of(n, j), n * m, X + j * n * m);
  const std::vector<index_t> orders = R.orders();
  R.solve(TriangularSolve::forward, X, m);
  for (index_t j = 0; wanted.quadratic && j < m * b; ++j)
    wanted.quadratic[j] = sum_of_squares(X + j * n, orders[j / m]);
  if (wanted.solution) R.solve(TriangularSolve::back, X, m);
}

}  // namespace

void HeldBatch::solve_modified(const GivenColumns<double>& V, const BatchTask& asked, const BatchSystems& wanted,
                               std::vector<index_t>& pivots, const Poll& poll) {
  BatchTask task = asked;
  task.all_or_none = false;
  std::unique_ptr<HeldBatch> made;
  std::atomic<bool> begun{false};
  modify(V, task, &made, pivots, poll, begun);
  if (wanted.solves()) solve_all(*made, wanted);
  if (!wanted.logdet) return;
  const index_t n = order(), b = count();
  std::vector<double> diagonals(n * b);
  if (n * b > 0) made->diagonals(diagonals.data());
  for (index_t j = 0; j < b; ++j) wanted.logdet[j] = logdet_of(diagonals.data() + j * n, n);
}

}  // namespace gpucholmod
