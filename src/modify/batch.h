#pragma once

#include <functional>
#include <vector>

#include "base/held_batch.h"
#include "modify/request.h"

/// Modifications of many factors, each in memory of its own, of one order or of several.
namespace gpucholmod {

/// Describes a factor, its modification, and the place of the modified factor. The arrays belong to the caller.
struct BatchMember {
  index_t n = 0, k = 0;
  const double* R = nullptr;        ///< n x n; several members may have the same R
  const double* V = nullptr;        ///< n x k; several members may have the same V
  double* out = nullptr;            ///< n x n; its other triangle becomes zero; must not be the R of a member
  const double* weights = nullptr;  ///< signed weights of the columns of V; null, then for all members: 1
  double scale = 1;                 ///< multiplier of A, not of R
  MemberSides sides = {};           ///< options.sides.m right-hand sides that are modified along
};

/// Modifies every member as HeldBatch::modify() does, members of one order and one number of columns together: on the
/// CPU, or on the first GPU that can be used, to which the members are copied and from which the results are copied
/// back. Reads all_or_none, threads, instructions, device_memory and sides.m of `options`. If all_or_none is true and a
/// member fails, every `out` is unspecified. Errors name the member, counted from 1 as in `members`.
Work modify_batch(const std::vector<BatchMember>& members, Uplo uplo, Precision precision, const BatchTask& options,
                  Backend backend, std::vector<index_t>& pivots, const Poll& poll);

/// Solves as HeldBatch::solve_modified() does, but checks the right-hand sides first. Throws also not_finite of b.
/// Errors name the member.
void solve_modified(HeldBatch& R, const GivenColumns<double>& V, const BatchTask& task, const BatchSystems& wanted,
                    std::vector<index_t>& pivots, const Poll& poll);

/// Calls f(), and appends the member that an error concerns to the message of the error: members[i] for number i, or i
/// itself if `members` is null.
void naming_members(const std::function<void()>& f, const std::vector<index_t>* members = nullptr);

}  // namespace gpucholmod
