#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/columns_of_v.h"
#include "base/factor_io.h"
#include "base/signed_columns.h"
#include "modify/request.h"

namespace gpucholmod {

/// V as methods take it: of A + V diag(w) V' times scale^2, the columns of V diag(|w|)^(1/2) / scale that A grows by,
/// then those that it shrinks by; without those of weight 0. And in the same way Y, of right-hand sides. A factor that
/// is held gets doubles as ColumnsOfV, which are not made before somebody asks for them.
template <class S>
class WeightedColumns {
 public:
  /// V (n x k), which has to outlive this.
  WeightedColumns(const GivenColumns<S>& V, const Request& asked)
      : request_(asked), given_(V), Y_(asked.sides ? asked.sides->Y.data() : nullptr) {
    const index_t m = asked.sides ? asked.sides->m : 0;
    const std::vector<double> w = weights(asked);
    if (asked.scale == 1 && are_signs(w)) {
      request_.removed = std::count(w.begin(), w.end(), -1.0);
      as_given_ = true;
      return;
    }
    request_.k = request_.removed = 0;
    each_signed_column(asked.k, [&](index_t q) { return w[q]; }, [&](index_t q, double weight) {
      if (weight == 0) {
        unused_.push_back(q);
        return;
      }
      const double by = multiple_of_column(weight, asked.scale);
      scaled_.push_back({q, by});
      for (index_t j = 0; j < m; ++j) own_Y_.push_back(asked.sides->Y[j + q * m] * by);
      ++request_.k;
      request_.removed += weight < 0;
    });
    if (asked.sides) Y_ = own_Y_.data();
  }

  const Request& request() const { return request_; }
  const double* Y() const { return Y_; }
  /// Returns V in the host's memory. Throws overflow, and not_finite where weights or a scale are given.
  const S* V() {
    if (!V_) V_ = as_given_ ? given_.host() : make();
    return V_;
  }
  /// ColumnsOfV that may not be made yet, but where some are not used and would not be looked at.
  ColumnsOfV columns() {
    if (as_given_) return given_;
    if (V_ || !unused_.empty()) return V();
    return {given_, scaled_, [this] { return V(); }};
  }

 private:
  const S* make() {
    const index_t n = request_.n;
    const S* const given = given_.host();
    own_.reset(new S[n * (request_.k + 1)]);  // a column of weight 0 is looked at behind the others
    bool plain = true;
    S* to = own_.get();
    for (const ScaledColumn& column : scaled_) {
      plain = scale_column(given + column.from * n, column.by, to) && plain;
      to += n;
    }
    for (const index_t q : unused_) plain = scale_column(given + q * n, 1, to) && plain;
    if (!plain) find_what_is_wrong();
    return own_.get();
  }
  static std::vector<double> weights(const Request& asked) {
    if (!asked.weights.empty()) return asked.weights;
    std::vector<double> w(asked.k, 1);
    std::fill(w.end() - asked.removed, w.end(), -1);
    return w;
  }
  /// Whether they ask for V as it is: 1, then -1.
  static bool are_signs(const std::vector<double>& w) {
    return std::all_of(w.begin(), w.end(), [](double x) { return x == 1 || x == -1; }) &&
           std::is_sorted(w.rbegin(), w.rend());
  }
  double most() const {
    return request_.precision == Precision::single ? double(std::numeric_limits<float>::max())
                                                   : std::numeric_limits<double>::max();
  }
  /// to <- `by` times a column of V. Returns whether all of that is a number of the precision asked for.
  bool scale_column(const S* from, double by, S* to) const {
    const double top = most();
    int beyond = 0;
    for (index_t i = 0; i < request_.n; ++i) {
      to[i] = S(from[i] * by);
      beyond |= !(std::abs(double(to[i])) <= top);
    }
    return beyond == 0;
  }
  /// Throws not_finite where V is not finite, and overflow where a column is too large when it is scaled.
  void find_what_is_wrong() const {
    const index_t n = request_.n, k = request_.k + index_t(unused_.size());
    for (index_t q = 0; q < k; ++q) largest_of("V", given_.host() + q * n, n, 0, q);
    for (index_t i = 0; i < request_.k; ++i) require_finite(own_.get() + i * n, scaled_[i].from);
  }
  void require_finite(const S* column, index_t q) const {
    for (index_t i = 0; i < request_.n; ++i)
      if (std::abs(double(column[i])) > most())
        throw Error(ErrorCode::overflow,
                    "'V' has a value that is too large for its weight and 'scale' at [" + std::to_string(i + 1) + ", " +
                        std::to_string(q + 1) + "]",
                    {{"argument", "V"}, {"row", double(i + 1)}, {"col", double(q + 1)}});
  }

  Request request_;
  GivenColumns<S> given_;
  bool as_given_ = false;  ///< neither weights nor a scale change them
  std::vector<ScaledColumn> scaled_;  ///< that V is made of
  std::vector<index_t> unused_;       ///< columns of weight 0
  std::unique_ptr<S[]> own_;
  std::vector<double> own_Y_;
  const S* V_ = nullptr;
  const double* Y_;
};

}  // namespace gpucholmod
