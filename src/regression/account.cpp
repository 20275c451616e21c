#include "regression/account.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpucholmod::regression {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon();
/// The largest relative error that coefficients may have before rows are decomposed anew.
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

void Account::count(const Rows& added, const Rows& gone, double forget) {
  const index_t columns = index_t(sums_.size());
  for (double& s : sums_) s *= forget;
  for (double& e : squared_errors_) e *= forget * forget;
  add(added, sums_);
  // The sums are largest after rows have come and before rows go.
  for (index_t j = 0; j < columns; ++j) squared_errors_[j] += unit * sums_[j] * (unit * sums_[j]);
  moved += double(added.count() + gone.count());
  if (gone.count() == 0) return;
  removed = true;
  std::vector<double> less(columns);
  add(gone, less);
  for (index_t j = 0; j < columns; ++j) sums_[j] = std::max(sums_[j] - less[j], 0.0);
}

Account::Account(MatrixView<const double> R, const Sides& sides) : Account(sides.p, sides.m) {
  for (index_t j = 0; j < p_; ++j)
    for (index_t i = 0; i <= j; ++i) sums_[j] += R(i, j) * R(i, j);
  for (index_t j = 0; j < sides.m; ++j) {
    sums_[p_ + j] = sides.rss[j];
    for (index_t i = 0; i < p_; ++i) sums_[p_ + j] += sides.z[i + j * p_] * sides.z[i + j * p_];
  }
  for (std::size_t j = 0; j < sums_.size(); ++j) squared_errors_[j] = unit * sums_[j] * (unit * sums_[j]);
}

Account::State Account::look(const double* diagonal) const {
  double independent = 1, squares = 0, of_y = 0;  // all squared: the independence, |a|, a_y
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

namespace {

/// Returns the coefficient of column 1 in the regression on the shifted columns. beta: the coefficients of the columns
/// as they are, of which NaN counts as 0.
double own_coefficient(index_t p, index_t j, const double* beta, const Shift& shift) {
  double own = (std::isnan(beta[0]) ? 0 : beta[0]) - shift.of(p + j);
  for (index_t i = 1; i < p; ++i) own += std::isnan(beta[i]) ? 0 : shift.of(i) * beta[i];
  return own;
}

}  // namespace

bool Account::is_off(const State& state, index_t j, const double* beta, const Shift& shift) const {
  if (!state.is_worse_than_new()) return false;
  double largest = std::abs(own_coefficient(p_, j, beta, shift)) * std::sqrt(sums_[0]);
  for (index_t i = 1; i < p_; ++i)
    if (!std::isnan(beta[i])) largest = std::max(largest, std::abs(beta[i]) * std::sqrt(sums_[i]));
  // An effect of one unit is 1 / sqrt(s_i) in coefficient i. The coefficient of column 1, which is shifted back, sums
  // such terms over all columns.
  double of_first = 1 / std::sqrt(sums_[0]);
  for (index_t i = 1; i < p_; ++i) {
    if (std::isnan(beta[i])) continue;
    const double one = 1 / std::sqrt(sums_[i]);
    of_first += std::abs(shift.of(i)) * one;
    if (state.loss * largest * one > most * std::abs(beta[i])) return true;
  }
  return !std::isnan(beta[0]) && state.loss * largest * of_first > most * std::abs(beta[0]);
}

double Account::loss_of_rss(index_t j, double rss, const double* beta, const Shift& shift) const {
  if (!removed) return 0;
  const double own = own_coefficient(p_, j, beta, shift);
  double error = std::sqrt(squared_errors_[p_ + j]) + std::sqrt(squared_errors_[0]) * own * own;
  for (index_t i = 1; i < p_; ++i)
    if (!std::isnan(beta[i])) error += std::sqrt(squared_errors_[i]) * beta[i] * beta[i];
  return error == 0 ? 0 : error / rss;
}

}  // namespace gpucholmod::regression
