#pragma once

#include <algorithm>
#include <vector>

#include "base/held_factor.h"
#include "modify/request.h"

namespace gpucholmod {

/// Describes f modifications of one matrix, A_j = scale_j^2 A + V_j diag(w_j) V_j', j = 1 .. f, and the results that
/// are wanted of each.
struct ModifiedSystems {
  /// The order n, and how a factor is modified; k, weights and scale, which differ between modifications, are below.
  Request asked;
  std::vector<index_t> k;           ///< f: columns of each V_j
  const double* V = nullptr;        ///< all V_j, n x sum of k, side by side
  const double* weights = nullptr;  ///< signed weights of these columns; null: 1, or -1 if asked.downdate is true
  std::vector<double> scale;        ///< f: scale_j
  index_t m = 0;                    ///< number of right-hand sides
  const double* b = nullptr;        ///< n x m, for all modifications; or n x m f, side by side
  bool own_b = false;               ///< True if each modification has its own b

  // Results; null: not wanted. Results for a matrix that is not positive definite are unspecified.
  double* solution = nullptr;   ///< n x m f: A_j^-1 b
  double* quadratic = nullptr;  ///< m x f: the diagonal of b'A_j^-1 b
  double* logdet = nullptr;     ///< f: log det A_j
};

/// Describes the outcomes of the modifications.
struct ModifiedOutcome {
  std::vector<index_t> pivot;   ///< f: pivot at which the modification of R fails, from 0; -1: A_j is positive definite
  std::vector<char> by_factor;  ///< f: true if the factor of A_j was made
};

/// Solves with all A_j, R being the factor of A: by one substitution for all V_j, and a small matrix for each A_j
/// (cpu/capacitance.h). If that might lose accuracy, or if A_j might not be positive definite, makes the factor of A_j
/// by modify(), and solves with that factor; so a failing pivot is that of modify(). R itself does not change. Passes
/// the share of all work that is done to `poll`, after every member.
///
/// Memory: P of as many members as have tuning::members_block numbers or tuning::members_columns columns, or of one
/// member; and the factor of A_j if one is made.
/// Error: of solutions ||b - A_j x|| < 40 eps ((||A|| + ||V_j |W_j| V_j'||) ||x|| + ||b||), in the 1-norm; more in
/// inst/design/fan-out.md. Throws not_finite of V and b, what modify() throws, with a field `member`, and what `poll`
/// throws.
ModifiedOutcome solve_modified(HeldFactor& R, const ModifiedSystems& systems, const Poll& poll);

/// Overwrites the results (of ModifiedSystems or BatchSystems) of matrices of order n that are not positive definite by
/// `mark`. pivots: the failing pivot of each matrix; -1 if the matrix is positive definite.
template <class Systems>
void mark_failed(const Systems& wanted, index_t n, const std::vector<index_t>& pivots, double mark) {
  const index_t m = wanted.m;
  for (index_t j = 0; j < index_t(pivots.size()); ++j) {
    if (pivots[j] < 0) continue;
    if (wanted.solution) std::fill_n(wanted.solution + n * m * j, n * m, mark);
    if (wanted.quadratic) std::fill_n(wanted.quadratic + m * j, m, mark);
    if (wanted.logdet) wanted.logdet[j] = mark;
  }
}

}  // namespace gpucholmod
