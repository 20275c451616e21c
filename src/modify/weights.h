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

/// Holds V as methods read it. For scale^2 (A + V diag(w) V' / scale^2), methods read the columns of V diag(|w|)^(1/2)
/// / scale that are added to A, and then the columns that are taken away, without columns of weight 0. Holds Y of
/// right-hand sides in the same way. A factor that is held gets doubles as ColumnsOfV, which are made only when
/// somebody reads them.
template <class S>
class WeightedColumns {
 public:
  /// Takes V (n x k), which has to outlive this object.
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
  /// Returns V in the host's memory. If weights or a scale are given, throws not_finite and overflow.
  const S* V() {
    if (!V_) V_ = as_given_ ? given_.host() : make();
    return V_;
  }
  /// Returns ColumnsOfV that may not be made yet. Makes V at once if some columns are not used, as nobody would check
  /// these columns otherwise.
  ColumnsOfV columns() {
    if (as_given_) return given_;
    if (V_ || !unused_.empty()) return V();
    return {given_, scaled_, [this] { return V(); }};
  }

 private:
  const S* make() {
    const index_t n = request_.n;
    const S* const given = given_.host();
    own_.reset(new S[n * (request_.k + 1)]);  // one column more, in which columns of weight 0 are checked
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
  /// Returns whether the weights leave V as it is: first 1, then -1.
  static bool are_signs(const std::vector<double>& w) {
    return std::all_of(w.begin(), w.end(), [](double x) { return x == 1 || x == -1; }) &&
           std::is_sorted(w.rbegin(), w.rend());
  }
  double most() const {
    return request_.precision == Precision::single ? double(std::numeric_limits<float>::max())
                                                   : std::numeric_limits<double>::max();
  }
  /// Computes `by` times a column of V in `to`. Returns whether all results are numbers of the precision asked for.
  bool scale_column(const S* from, double by, S* to) const {
    const double top = most();
    int beyond = 0;
    for (index_t i = 0; i < request_.n; ++i) {
      to[i] = S(from[i] * by);
      beyond |= !(std::abs(double(to[i])) <= top);
    }
    return beyond == 0;
  }
  /// Throws not_finite if V is not finite, and overflow if a column is too large when it is scaled.
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
  bool as_given_ = false;  ///< True if neither weights nor a scale change V
  std::vector<ScaledColumn> scaled_;  ///< scaled columns that V is made of
  std::vector<index_t> unused_;       ///< columns of weight 0
  std::unique_ptr<S[]> own_;
  std::vector<double> own_Y_;
  const S* V_ = nullptr;
  const double* Y_;
};

}  // namespace gpucholmod
