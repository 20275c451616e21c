#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/factor_io.h"
#include "base/right_hand_sides.h"
#include "base/storage.h"

/// Factors that have negative entries on the diagonal, as qr.R(qr(X)) and LINPACK leave them. A = R'R does not change
/// if rows of R, which are columns of L = R', are turned: multiplied by -1.
namespace gpucholmod {

/// Returns whether the diagonal of R (n x n) has a negative entry.
template <class S>
bool has_negative_diagonal(const S* R, index_t n) {
  for (index_t j = 0; j < n; ++j)
    if (R[j + j * n] < 0) return true;
  return false;
}

/// The rows of R whose diagonal entry is negative. Turning the rows twice gives the same bits as before.
class TurnedRows {
 public:
  template <class S>
  TurnedRows(const Source<S>& R, index_t n, Uplo uplo) : uplo_(uplo), turned_(n) {
    S entry;
    for (index_t j = 0; j < n; ++j) any_ |= turned_[j] = *R.column(j, j, j + 1, &entry) < 0;
  }

  bool any() const { return any_; }
  /// Turns rows [first, last) of stored column j, all in the triangle: negates entries of turned rows of R.
  template <class S>
  void turn(index_t j, index_t first, index_t last, S* values) const {
    for (index_t i = first; i < last; ++i)
      if (turned_[uplo_ == Uplo::upper ? i : j]) values[i - first] = -values[i - first];
  }
  /// Turns the rows in the triangle of R (n x n).
  template <class S>
  void turn(S* R) const {
    const index_t n = index_t(turned_.size());
    for (index_t j = 0; j < n; ++j) {
      const auto [first, last] = rows_of(j, n, uplo_);
      turn(j, first, last, R + j * n + first);
    }
  }
  /// Turns rows of z, so that R'z stays the same.
  void turn(OwnedRightHandSides& sides) const {
    const index_t n = index_t(turned_.size());
    for (index_t i = 0; i < n * sides.m; ++i)
      if (turned_[i % n]) sides.z[i] = -sides.z[i];
  }

 private:
  Uplo uplo_;
  std::vector<char> turned_;
  bool any_ = false;
};

/// A factor in memory (n x n) without negative entries on its diagonal: R itself, or a copy with turned rows.
template <class S>
class Turned : NotCopied {
 public:
  Turned(const S* R, index_t n, Uplo uplo) : data_(R) {
    if (!has_negative_diagonal(R, n)) return;
    rows_.emplace(MemorySource<S>(R, n), n, uplo);
    copy_.reset(new S[n * n]);
    std::copy_n(R, n * n, copy_.get());
    rows_->turn(copy_.get());
    data_ = copy_.get();
  }
  const S* data() const { return data_; }
  void turn(OwnedRightHandSides* sides) const {
    if (rows_ && sides) rows_->turn(*sides);
  }

 private:
  const S* data_;
  std::unique_ptr<S[]> copy_;
  std::optional<TurnedRows> rows_;
};

}  // namespace gpucholmod
