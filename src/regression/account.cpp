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
  for (double& e : errors_) e *= forget;
  add(added, sums_);
  for (index_t j = 0; penalty && j < p_; ++j) sums_[j] += penalty[j];
  // Between what has come and what has gone the sums are largest.
  for (index_t j = 0; j < columns; ++j) errors_[j] = std::hypot(errors_[j], unit * sums_[j]);
  moved += double(added.count() + gone.count());
  if (gone.count() == 0) return;
  removed = true;
  std::vector<double> less(columns);
  add(gone, less);
  for (index_t j = 0; j < columns; ++j) sums_[j] = std::max(sums_[j] - less[j], 0.0);
}

void Account::restart(const Rows& rows, const double* penalty) {
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(errors_.begin(), errors_.end(), 0.0);
  moved = 0;
  removed = false;
  add(rows, sums_);
  for (index_t j = 0; penalty && j < p_; ++j) sums_[j] += penalty[j];
}

double Account::independence(const double* diagonal) const {
  double least = 1;
  for (index_t j = 0; j < p_; ++j)
    least = std::min(least, sums_[j] > 0 ? std::abs(diagonal[j]) / std::sqrt(sums_[j]) : 0.0);
  return least;
}

double Account::loss(const double* diagonal) const {
  const auto share = [&](index_t j) {
    return errors_[j] == 0 ? 0.0
           : sums_[j] > 0  ? errors_[j] / sums_[j]
                           : std::numeric_limits<double>::infinity();
  };
  double squares = 0, of_y = 0;
  for (index_t j = 0; j < p_; ++j) squares += share(j) * share(j);
  for (index_t j = p_; j < index_t(sums_.size()); ++j) of_y = std::max(of_y, share(j));
  const double a = std::sqrt(squares), least = independence(diagonal);
  const double all = a + std::sqrt(a * of_y);
  return all == 0 ? 0 : all / (least * least);
}

bool Account::has_lost(const double* diagonal) const { return removed && !(loss(diagonal) <= most); }

bool Account::is_worse_than_new(const double* diagonal) const {
  return removed && !(loss(diagonal) * independence(diagonal) <= 4 * unit);
}

bool Account::is_off(const double* diagonal, const double* beta) const {
  if (!is_worse_than_new(diagonal)) return false;
  double largest = 0, least = std::numeric_limits<double>::infinity();
  for (index_t j = 0; j < p_; ++j) {
    if (std::isnan(beta[j])) continue;
    const double effect = std::abs(beta[j]) * std::sqrt(sums_[j]);
    largest = std::max(largest, effect);
    least = std::min(least, effect);
  }
  return loss(diagonal) * largest > most * least;
}

double Account::loss_of_rss(index_t j, double rss, const double* beta) const {
  if (!removed) return 0;
  double squares = errors_[p_ + j];
  for (index_t i = 0; i < p_; ++i) squares += errors_[i] * beta[i] * beta[i];
  return squares == 0 ? 0 : squares / rss;
}

}  // namespace gpucholmod::regression
