#pragma once

#include <memory>
#include <vector>

#include "base/held_batch.h"
#include "cpu/host_factor.h"

namespace gpucholmod::cpu {

/// Returns a batch of b factors R (n x n x b, each upper or lower as uplo says; the other triangles are never read) in
/// memory of its own, laid out as inst/design/batches.md says. Throws not_finite, bad_diagonal and overflow, with a
/// field `member`, and what `allocate` throws.
std::unique_ptr<HeldBatch> hold_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                      const Allocate& allocate, const BatchRoom& room = {});

/// Holds factors of one order that are stored separately, and the addresses of the modified factors.
struct ScatteredBatch {
  index_t n = 0;
  Uplo uplo = Uplo::upper;
  Precision precision = Precision::double_;
  struct Member {
    const double *R, *V;  ///< factor, n x n, and V, n x k; several members may share the same arrays
    double* out;          ///< new factor, n x n, whose other triangle becomes zero; not the R of any member
    MemberSides sides;
  };
  std::vector<Member> members;
};

/// Copies the triangle of R that uplo names to `out` (n x n); the other triangle of `out` becomes zero.
void copy_triangle(const double* R, index_t n, Uplo uplo, double* out);

/// Modifies every member of `batch` as `task` says. pivots as in HeldBatch; `out` of a member that fails is R, with the
/// other triangle zero. With task.all_or_none and a member that fails, `out` is unspecified. task.common_V is ignored,
/// and so is task.sides except for m.
/// Throws the errors of hold_batch() and HeldBatch::modify(); `member` counts the members of this batch.
Work modify_scattered(const ScatteredBatch& batch, const BatchTask& task, std::vector<index_t>& pivots,
                      const Poll& poll);

}  // namespace gpucholmod::cpu
