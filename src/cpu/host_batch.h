#pragma once

#include <memory>
#include <vector>

#include "base/held_batch.h"
#include "cpu/host_factor.h"

namespace gpucholmod::cpu {

/// Keeps b factors R (n x n x b, each upper, or lower when uplo says so; the other triangles are never read) in memory
/// of their own, as inst/design/batches.md says. Throws not_finite, bad_diagonal and overflow, with a field `member`,
/// and what `allocate` throws.
std::unique_ptr<HeldBatch> hold_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                      const Allocate& allocate, const BatchRoom& room = {});

/// Factors of one order that lie each for itself, and where the modified ones go.
struct ScatteredBatch {
  index_t n = 0;
  Uplo uplo = Uplo::upper;
  Precision precision = Precision::double_;
  struct Member {
    const double *R, *V;  ///< n x n, n x k; several members may have the same
    double* out;          ///< n x n, the other triangle becomes zero; no R of any member
    MemberSides sides;
  };
  std::vector<Member> members;
};

/// out (n x n) <- the triangle of R that uplo names; the other becomes zero.
void copy_triangle(const double* R, index_t n, Uplo uplo, double* out);

/// The same modification of such. pivots as in HeldBatch; `out` of a member that fails is R, with the other triangle
/// zero. With task.all_or_none and a member that fails, `out` is unspecified. Of `task`, common_V does not count, and
/// of task.sides only m does.
/// Throws what hold_batch() and HeldBatch::modify() do; `member` counts the members of this batch.
Work modify_scattered(const ScatteredBatch& batch, const BatchTask& task, std::vector<index_t>& pivots,
                      const Poll& poll);

}  // namespace gpucholmod::cpu
