#pragma once

#include <Rcpp.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/held_batch.h"
#include "modify/batch_sides.h"
#include "rcpp_fields.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

/// The arguments that R gives to calls that modify batches, in the core's terms.
namespace gpucholmod {

/// Describes columns for members, as open_members() of R returns them: list(x, k, b, common).
struct ColumnsOfBatch {
  explicit ColumnsOfBatch(SEXP given)
      : V(REAL(VECTOR_ELT(given, 0))), k(Rf_asInteger(VECTOR_ELT(given, 1))), b(Rf_asInteger(VECTOR_ELT(given, 2))),
        common(Rf_asLogical(VECTOR_ELT(given, 3))), numbers(Rf_xlength(VECTOR_ELT(given, 0))) {}

  const double* V;  ///< n x k x b, or n x k if `common` is true
  index_t k, b;
  bool common;
  index_t numbers;  ///< count of numbers in V
};

/// Describes a modification of a batch, as R gives it: list(V, weights, scale, sides, check). ColumnsOfBatch takes V,
/// SidesOfCall takes sides, and to_task() takes weights and scale; check is true if a member that fails is an error.
struct ChangeOfBatch {
  explicit ChangeOfBatch(SEXP given)
      : V(VECTOR_ELT(given, 0)), weights(VECTOR_ELT(given, 1)), scale(VECTOR_ELT(given, 2)),
        sides(VECTOR_ELT(given, 3)), check(Rf_asLogical(VECTOR_ELT(given, 4))) {}

  ColumnsOfBatch V;
  SEXP weights, scale, sides;
  bool check;
};

/// Returns the task of a modification. weights: NULL, k, or a matrix k x b; scale: NULL, one or b.
inline BatchTask to_task(const Request& request, SEXP weights, SEXP scale, index_t k, bool common_V, bool all_or_none) {
  BatchTask task;
  task.k = k;
  task.common_V = common_V;
  if (weights != R_NilValue) task.weights = REAL(weights);
  task.common_weights = !Rf_isMatrix(weights);
  if (scale != R_NilValue) task.scale = REAL(scale);
  task.common_scale = Rf_xlength(scale) == 1;
  task.all_or_none = all_or_none;
  task.threads = request.threads;
  task.instructions = request.instructions;
  task.device_memory = request.device_memory;
  return task;
}

/// Refers to right-hand sides as batch_sides() of R returns them, list(z, y, rss, m, ...): z n x m x b, y k x m x b or
/// NULL, rss m x b or NULL. Holds the memory of the results. There are no right-hand sides if `given` is NULL.
class SidesOfCall {
 public:
  /// Checks the sizes and allocates the results. after: rows of the new z.
  SidesOfCall(SEXP given, index_t n, index_t k, index_t b, index_t after)
      : given_(given), z_(is_there() ? new_vector(REALSXP, after * Rf_asInteger(part(3)) * b) : R_NilValue),
        rss_(is_there() ? new_vector(REALSXP, Rf_xlength(part(2))) : R_NilValue) {
    if (!is_there()) return;
    const index_t m = Rf_asInteger(part(3));
    require_rows("z", Rf_xlength(part(0)), n * m * b);
    const bool sums = part(2) != R_NilValue, y = part(1) != R_NilValue;
    if (y) require_rows("y", Rf_xlength(part(1)), k * m * b);
    sides_.m = m;
    sides_.z = REAL(part(0));
    if (y) sides_.Y = REAL(part(1));
    sides_.new_z = REAL(z_);
    if (!sums) return;
    sides_.rss = REAL(part(2));
    sides_.new_rss = REAL(rss_);
  }
  /// Returns whether there are right-hand sides.
  bool is_there() const { return given_ != R_NilValue; }
  const GivenBatchSides& given() const { return sides_; }
  SEXP z() const { return z_; }
  SEXP rss() const { return is_there() && part(2) == R_NilValue ? R_NilValue : SEXP(rss_); }

 private:
  SEXP part(int i) const { return VECTOR_ELT(given_, i); }
  SEXP given_;
  const Rcpp::Shield<SEXP> z_, rss_;
  GivenBatchSides sides_;
};

/// Returns the value of a call that changes a batch: list(pivots, z, rss).
inline Rcpp::List pivots_and_sides(SEXP pivots, const SidesOfCall& sides) {
  return Rcpp::List::create(Rcpp::_["pivots"] = pivots, Rcpp::_["z"] = sides.z(), Rcpp::_["rss"] = sides.rss());
}

/// Writes pivots to an integer vector of R's, counted from 1; 0: success.
inline void tell(const std::vector<index_t>& pivots, SEXP out) {
  std::transform(pivots.begin(), pivots.end(), INTEGER(out), [](index_t pivot) { return int(pivot + 1); });
}

}  // namespace gpucholmod
