#include "regression/account.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpucholmod::regression {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon();
/// What coefficients may have lost before rows are decomposed anew.
constexpr double most = 1e-10;

}  // namespace

void Account::add(const Rows& rows, std::vector<double>& to) const {
  for (index_t i = 0; i < rows.count(); ++i) {
    const double w = rows.weight(i);
    if (w == 0) continue;
    const double *x = rows.x.col(i), *y = rows.y.col(i);
    for (index_t j = 0; j < p_; ++j) to[j] += w * x[j] * x[j];
    for (index_t j = p_; j < index_t(to.size()); ++j) to[j] += w * y[j - p_] * y[j - p_];
  }
}

void Account::count(const Rows& added, const Rows& gone, double forget, const double* penalty) {
  const index_t columns = index_t(sums_.size());
  for (double& s : sums_) s *= forget;
  for (double& e : squared_errors_) e *= forget * forget;
  add(added, sums_);
  for (index_t j = 0; penalty && j < p_; ++j) sums_[j] += penalty[j];
  // Between what has come and what has gone the sums are largest.
  for (index_t j = 0; j < columns; ++j) squared_errors_[j] += unit * sums_[j] * (unit * sums_[j]);
  moved += double(added.count() + gone.count());
  if (gone.count() == 0) return;
  removed = true;
  std::vector<double> less(columns);
  add(gone, less);
  for (index_t j = 0; j < columns; ++j) sums_[j] = std::max(sums_[j] - less[j], 0.0);
}

void Account::restart(const Rows& rows, const double* penalty) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(squared_errors_.begin(), squared_errors_.end(), 0.0);
  moved = 0;
  removed = false;
  add(rows, sums_);
  for (index_t j = 0; penalty && j < p_; ++j) sums_[j] += penalty[j];
}

Account::State Account::look(const double* diagonal) const {
  double independent = 1, squares = 0, of_y = 0;  // squares of what they are named for
  const auto share = [&](index_t j) {
    return squared_errors_[j] == 0 ? 0.0
           : sums_[j] > 0          ? squared_errors_[j] / (sums_[j] * sums_[j])
                                   : std::numeric_limits<double>::infinity();
  };
  for (index_t j = 0; j < p_; ++j) {
    squares += share(j);
    independent = std::min(independent, sums_[j] > 0 ? diagonal[j] / sums_[j] * diagonal[j] : 0.0);
  }
  for (index_t j = p_; j < index_t(sums_.size()); ++j) of_y = std::max(of_y, share(j));
  State state;
  state.independence = std::sqrt(independent);
  if (removed && squares > 0) state.loss = (std::sqrt(squares) + std::sqrt(std::sqrt(squares * of_y))) / independent;
  return state;
}

bool Account::State::has_lost() const { return !(loss <= most); }

bool Account::State::is_worse_than_new() const { return !(loss * independence <= 4 * unit); }

bool Account::is_off(const State& state, const double* beta) const {
  if (!state.is_worse_than_new()) return false;
  double largest = 0, least = std::numeric_limits<double>::infinity();
  for (index_t j = 0; j < p_; ++j) {
    if (std::isnan(beta[j])) continue;
    const double effect = beta[j] * beta[j] * sums_[j];
    largest = std::max(largest, effect);
    least = std::min(least, effect);
  }
  return state.loss * std::sqrt(largest) > most * std::sqrt(least);
}

double Account::loss_of_rss(index_t j, double rss, const double* beta) const {
  if (!removed) return 0;
  double error = std::sqrt(squared_errors_[p_ + j]);
  for (index_t i = 0; i < p_; ++i) error += std::sqrt(squared_errors_[i]) * beta[i] * beta[i];
  return error == 0 ? 0 : error / rss;
}

}  // namespace gpucholmod::regression
