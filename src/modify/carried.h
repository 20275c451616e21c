#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "modify/request.h"

namespace gpucholmod {

/// The right-hand sides of a call, while they come along: what a backend leaves is kept here until the call has gone
/// well.
class Carried {
 public:
  /// `task`: of k columns of V, sorted and scaled as Y is. It and Y have to outlive this. `order`: of the new factor.
  /// Throws overflow, where something is too large to be computed with.
  Carried(const Request& task, const double* Y, index_t order) : sides_(task.sides.get()), task_(task), Y_(Y) {
    if (!sides_) return;
    const index_t n = task.n, m = sides_->m;
    for (index_t j = 0; j < m; ++j) {
      for (index_t i = 0; i < n; ++i) require_finite("z", sides_->z[i + j * n], i, j);
      for (index_t q = 0; q < index_t(sides_->Y.size()) / m; ++q) require_finite("y", sides_->Y[j + q * m], q, j);
    }
    out_.resize(order * sides_->m);
    rest_.resize(task.k * sides_->m);
  }
  RightSides task() {
    if (!sides_) return {};
    return {sides_->m, sides_->z.data(), Y_, out_.data(), rest_.data()};
  }

  /// The call has gone well. `nothing`: there was nothing to be done to R but to scale it.
  void settle(bool nothing) {
    if (!sides_) return;
    if (nothing) {
      for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = task_.scale * sides_->z[i];
      std::copy_n(Y_, rest_.size(), rest_.begin());
    }
    for (index_t j = 0; j < index_t(sides_->rss.size()); ++j) sides_->rss[j] = residual_sum(j);
    sides_->z.swap(out_);
  }

 private:
  void require_finite(const char* argument, double x, index_t row, index_t col) const {
    if (task_.precision == Precision::single && !std::isfinite(float(x)))
      throw Error(ErrorCode::overflow,
                  std::string("'") + argument + "' has values too large for the precision asked for",
                  {{"argument", argument}, {"row", double(row + 1)}, {"col", double(col + 1)}});
  }

  /// Returns the new residual sum of squares of column j. [R z; 0 rho] is the factor of a matrix whose last entry is
  /// b'A^-1 b + rho^2, or y'y, and is known to rounding of that: where what is missing is less than `units` of it, rho
  /// is 0, and where it is more, NaN. NaN and infinity stay.
  double residual_sum(index_t j) const {
    const double units = 100 * (task_.precision == Precision::single ? double(std::numeric_limits<float>::epsilon())
                                                                      : std::numeric_limits<double>::epsilon());
    double sum = sides_->rss[j], there = sum;
    for (index_t q = 0; q < task_.k; ++q) {
      const double square = rest_[j + q * sides_->m] * rest_[j + q * sides_->m];
      sum += q < task_.added() ? square : -square;
      there += square;
    }
    if (sum < 0) {
      there += squares_of_column(sides_->z, j, 1) + squares_of_column(out_, j, task_.scale);
      sum = std::isfinite(there) && -sum <= units * there ? 0 : std::numeric_limits<double>::quiet_NaN();
    }
    return task_.scale * task_.scale * sum;
  }
  /// Of column j of z, divided by `scale`.
  double squares_of_column(const std::vector<double>& z, index_t j, double scale) const {
    const index_t rows = index_t(z.size()) / sides_->m;
    double sum = 0;
    for (index_t i = 0; i < rows; ++i) sum += z[i + j * rows] / scale * (z[i + j * rows] / scale);
    return sum;
  }

  Sides* sides_;
  const Request& task_;
  const double* Y_;
  std::vector<double> out_, rest_;
};

}  // namespace gpucholmod
