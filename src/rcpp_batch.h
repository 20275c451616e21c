#pragma once

#include <Rcpp.h>

#include <algorithm>
#include <vector>

#include "base/held_batch.h"
#include "rcpp_request.h"

/// What R gives to calls that modify batches, in the core's terms.
namespace gpucholmod {

/// Columns for members, as open_members() of R gives them: list(x, k, b, common).
struct ColumnsOfBatch {
  explicit ColumnsOfBatch(SEXP given)
      : V(REAL(VECTOR_ELT(given, 0))), k(Rf_asInteger(VECTOR_ELT(given, 1))), b(Rf_asInteger(VECTOR_ELT(given, 2))),
        common(Rf_asLogical(VECTOR_ELT(given, 3))), numbers(Rf_xlength(VECTOR_ELT(given, 0))) {}

  const double* V;  ///< n x k x b, or n x k where `common`
  index_t k, b;
  bool common;
  index_t numbers;  ///< in V
};

/// weights: NULL, k, or a matrix k x b; scale: NULL, one or b.
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

/// Writes pivots to integers of R's, counted from 1; 0: success.
inline void tell(const std::vector<index_t>& pivots, SEXP out) {
  std::transform(pivots.begin(), pivots.end(), INTEGER(out), [](index_t pivot) { return int(pivot + 1); });
}

}  // namespace gpucholmod
