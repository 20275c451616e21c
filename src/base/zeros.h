#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/factor_io.h"
#include "base/storage.h"
#include "base/task.h"
#include "base/turned.h"

namespace gpucholmod {

/// Returns the error to throw for entry j of R's diagonal, counted from 0, that is 0 although the matrix has to be
/// positive definite.
inline Error singular(index_t j, const std::string& consequence) {
  return Error(ErrorCode::bad_diagonal, "diagonal entry " + std::to_string(j + 1) + " of 'R' is 0: " + consequence,
               {{"index", double(j + 1)}, {"value", 0.0}});
}
constexpr const char* only_updates = "columns can be added to such a factor, not taken away from it";

/// The zeros on the diagonal of a factor of a semidefinite matrix, to which columns are added. Algorithms that divide
/// by the diagonal compute with a tiny number d, the stand-in, in the place of each zero. That changes A by d^2 there,
/// far below the rounding of any number that is added: sqrt(d^2 + |v|^2) = |v| in floating point. If nothing is added
/// to a row, numbers below `limit`, some multiples of d, are left in that row, and become 0 again.
class Zeros {
 public:
  Zeros() = default;
  template <class S>
  Zeros(const Source<S>& R, index_t n) : is_zero_(n) {
    S entry;
    for (index_t j = 0; j < n; ++j)
      if (*R.column(j, j, j + 1, &entry) == 0) rows_.push_back(j);
    for (const index_t j : rows_) is_zero_[j] = true;
  }

  const std::vector<index_t>& rows() const { return rows_; }
  bool any() const { return !rows_.empty(); }
  double stand_in() const { return stand_in_; }

  /// Chooses the stand-in for a factor that is computed with in `precision` and stored in S, or in a wider scalar. No
  /// number of the computation is larger than `largest`. Throws bad_diagonal if all these numbers are too small.
  template <class S>
  void choose(Precision precision, double largest) {
    const bool single = precision == Precision::single || sizeof(S) == 4;
    const S most = S(std::min(largest, double(std::numeric_limits<S>::max())));
    const int e = precision == Precision::single ? scale_exponent<float>(most) : scale_exponent<double>(most);
    stand_in_ = std::scalbn(1.0, std::max(single ? -124 : -1000, e - (single ? 100 : 880)));
    limit_ = std::scalbn(stand_in_, single ? 30 : 100);
    require_above(largest);
  }
  /// Throws bad_diagonal if there are zeros, unless `largest` is 0 or far above the numbers that become 0.
  void require_above(double largest) const {
    if (any() && largest > 0 && largest < 0x1p30 * limit_)
      throw singular(rows_[0], "all other numbers are too small to be computed with beside it");
  }
  /// Throws bad_diagonal if there are zeros and columns are to be taken away.
  void require_update(index_t removed) const {
    if (any() && removed > 0) throw singular(rows_[0], only_updates);
  }

  /// Puts the stand-in for a zero into rows [first, last) of stored column j.
  template <class S>
  void put(index_t j, index_t first, index_t last, S* values) const {
    if (any() && first <= j && j < last && is_zero_[j]) values[j - first] = S(stand_in_);
  }
  template <class S>
  void put(S* R) const {
    for (const index_t j : rows_) put(j, j, j + 1, R + j + j * order());
  }
  /// Puts zeros in the place of the stand-ins in R, which has not been modified.
  template <class S>
  void restore(S* R) const {
    for (const index_t j : rows_) R[j + j * order()] = 0;
  }
  /// Sets to 0 what stand-ins have left in rows [first, last) of column j of a result, which was multiplied by `scale`.
  template <class S>
  void take(Uplo uplo, index_t j, index_t first, index_t last, double scale, S* values) const {
    for (index_t i = first; i < last; ++i)
      if (is_zero_[uplo == Uplo::upper ? i : j] && std::abs(values[i - first]) <= limit_ * scale)
        values[i - first] = 0;
  }
  template <class S>
  void take(Uplo uplo, S* R, double scale) const {
    for (index_t j = 0; any() && j < order(); ++j) {
      const auto [first, last] = rows_of(j, order(), uplo);
      take(uplo, j, first, last, scale, R + j * order() + first);
    }
  }
  /// Keeps only the zeros to which nothing was added, by the diagonal of a result. Appends to `changed` the rows of
  /// kept zeros whose entry is not the stand-in; allocates nothing if `changed` has room for all rows().
  void keep(const std::vector<double>& diagonal, double scale, std::vector<index_t>& changed) {
    std::size_t left = 0;
    for (const index_t j : rows_) {
      is_zero_[j] = diagonal[j] <= limit_ * scale;
      if (!is_zero_[j]) continue;
      rows_[left++] = j;
      if (diagonal[j] != stand_in_) changed.push_back(j);
    }
    rows_.resize(left);
  }

 private:
  index_t order() const { return index_t(is_zero_.size()); }

  std::vector<index_t> rows_;  ///< ascending
  std::vector<char> is_zero_;
  double stand_in_ = 0, limit_ = 0;
};

/// A factor that is read by pieces of columns, with turned rows and stand-ins for zeros.
template <class S>
class MendedSource : public Source<S> {
 public:
  MendedSource(const Source<S>& R, const TurnedRows& rows, const Zeros& zeros) : R_(R), rows_(rows), zeros_(zeros) {}
  const S* column(index_t j, index_t first, index_t last, S* scratch) const override {
    const S* const values = R_.column(j, first, last, scratch);
    if (values != scratch) std::copy_n(values, last - first, scratch);
    rows_.turn(j, first, last, scratch);
    zeros_.put(j, first, last, scratch);
    return scratch;
  }

 private:
  const Source<S>& R_;
  const TurnedRows& rows_;
  const Zeros& zeros_;
};

/// Returns the largest magnitude in the triangle of R (n x n) that uplo names. Throws not_finite.
template <class S>
double largest_in_triangle(const Source<S>& R, index_t n, Uplo uplo) {
  double largest = 0;
  std::vector<S> scratch(n);
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, uplo);
    const S* const values = R.column(j, first, last, scratch.data());
    largest = std::max(largest, double(largest_of("R", values, last - first, first, j)));
  }
  return largest;
}

}  // namespace gpucholmod
