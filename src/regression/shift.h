#pragma once

#include <utility>
#include <vector>

#include "regression/rows.h"

namespace gpucholmod::regression {

/// A multiple of column 1 of X that is taken off each other column of [X y], so that columns with a large mean beside
/// an intercept lose it: then they are independent, and rounding errors are units of what they vary. With c the
/// multiples, a row x becomes x - x_1 c, and R = S + S_11 e_1 c', S being the factor of the rows that are shifted.
class Shift {
 public:
  Shift() = default;
  /// The multiples that make the columns of these rows orthogonal to column 1, but for rounding; none, unless column 1
  /// is the same number in all of them.
  explicit Shift(const Rows& rows);
  /// The multiples themselves, p + m, of which the first is that number, or none.
  explicit Shift(std::vector<double> multiples) : c_(std::move(multiples)) {}

  bool is_none() const { return c_.empty(); }
  const std::vector<double>& multiples() const { return c_; }
  double of(index_t column) const { return is_none() ? 0 : c_[column]; }

  /// Returns whether column 1 of these rows is that number too, or there is no shift.
  bool fits(const Rows& rows) const;
  /// Returns the rows shifted, in `memory`, or `rows` where there is no shift.
  Rows apply(const Rows& rows, std::vector<double>& memory) const;
  /// Takes R and z back to those of the rows as they are.
  void take_back(MatrixView<double> R, Sides& sides) const;

 private:
  std::vector<double> c_;
};

}  // namespace gpucholmod::regression
