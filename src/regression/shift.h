#pragma once

#include <utility>
#include <vector>

#include "regression/rows.h"

namespace gpucholmod::regression {

/// Holds the multiples of column 1 of X that are taken off the other columns of [X y], so that columns beside an
/// intercept lose a large mean: they are then independent of the intercept, and rounding errors are relative to the
/// variation of the columns. Let c be the multiples. A row x becomes x - x_1 c, and R = S + S_11 e_1 c', S being the
/// factor of the shifted rows.
class Shift {
 public:
  Shift() = default;
  /// Computes the multiples that make the columns of these rows orthogonal to column 1, but for rounding. There is no
  /// shift unless column 1 is the same number in all rows.
  explicit Shift(const Rows& rows);
  /// Takes over p + m multiples, the first of which is the number in column 1; empty: no shift.
  explicit Shift(std::vector<double> multiples) : c_(std::move(multiples)) {}

  bool is_none() const { return c_.empty(); }
  const std::vector<double>& multiples() const { return c_; }
  double of(index_t column) const { return is_none() ? 0 : c_[column]; }

  /// Returns whether column 1 of these rows has the number of the rows that gave the shift. True if there is no shift.
  bool fits(const Rows& rows) const;
  /// Returns the shifted rows, stored in `memory`, or `rows` if there is no shift.
  Rows apply(const Rows& rows, std::vector<double>& memory) const;
  /// Turns R and z of the shifted rows into R and z of the rows as they are.
  void take_back(MatrixView<double> R, Sides& sides) const;

 private:
  std::vector<double> c_;
};

}  // namespace gpucholmod::regression
