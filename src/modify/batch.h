#pragma once

#include <functional>
#include <vector>

#include "base/held_batch.h"
#include "modify/request.h"

/// Many modifications of factors that lie each for itself, of one order or of several.
namespace gpucholmod {

/// A factor, its modification, and where the modified one goes. The arrays belong to the caller.
struct BatchMember {
  index_t n = 0, k = 0;
  const double* R = nullptr;        ///< n x n; several members may have the same
  const double* V = nullptr;        ///< n x k, likewise
  double* out = nullptr;            ///< n x n, the other triangle becomes zero; no R of any member
  const double* weights = nullptr;  ///< of the columns of V, signed; null, for all members: 1
  double scale = 1;                 ///< of A, not of R
  MemberSides sides = {};           ///< options.sides.m right-hand sides that come along
};

/// Modifies every member as HeldBatch::modify() does: those of one order and one number of columns together, on the
/// CPU, or on the first GPU that can be used, where they are brought together and brought back. Of `options`,
/// all_or_none, threads, instructions, device_memory and sides.m count. With all_or_none and a member that fails, every
/// `out` is unspecified. Errors name their member, counted as in `members`, from 1.
Work modify_batch(const std::vector<BatchMember>& members, Uplo uplo, Precision precision, const BatchTask& options,
                  Backend backend, std::vector<index_t>& pivots, const Poll& poll);

/// HeldBatch::solve_modified(), of right-hand sides that have not been looked at. Throws also not_finite of b. Errors
/// name their member.
void solve_modified(HeldBatch& R, const GivenColumns<double>& V, const BatchTask& task, const BatchSystems& wanted,
                    std::vector<index_t>& pivots, const Poll& poll);

/// Calls f(), and adds to the message of an error which member it is of: members[i] of number i, or i itself.
void naming_members(const std::function<void()>& f, const std::vector<index_t>* members = nullptr);

}  // namespace gpucholmod
