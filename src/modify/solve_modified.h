#pragma once

#include <algorithm>
#include <vector>

#include "base/held_factor.h"
#include "modify/request.h"

namespace gpucholmod {

/// f modifications of one matrix, A_j = scale_j^2 A + V_j diag(w_j) V_j', j = 1 .. f, and what is wanted of each.
struct ModifiedSystems {
  /// n, and how a factor is modified; what differs between them (k, weights, scale) is below.
  Request asked;
  std::vector<index_t> k;           ///< f: columns of each V_j
  const double* V = nullptr;        ///< n x sum of k, side by side
  const double* weights = nullptr;  ///< of these columns; null: 1, or -1 where asked.downdate
  std::vector<double> scale;        ///< f
  index_t m = 0;                    ///< right-hand sides
  const double* b = nullptr;        ///< n x m, of all; or n x m f, side by side
  bool own_b = false;               ///< the latter

  // Results; null: not wanted. Those of a matrix that is not positive definite are left unspecified.
  double* solution = nullptr;   ///< n x m f: A_j^-1 b
  double* quadratic = nullptr;  ///< m x f: the diagonal of b'A_j^-1 b
  double* logdet = nullptr;     ///< f: log det A_j
};

/// What became of them.
struct ModifiedOutcome {
  std::vector<index_t> pivot;   ///< f: that at which the modification of R fails, from 0; -1: A_j is positive definite
  std::vector<char> by_factor;  ///< f: whether R was modified for it
};

/// Solves with all of them, R being the factor of A: by one substitution for all V_j, and a small matrix for each
/// (cpu/capacitance.h). Where that might lose accuracy, or A_j might not be positive definite, the factor of A_j is
/// made, by modify(), and used: so a failing pivot is that of modify(). R itself does not change. `poll` is told, after
/// every member, the share that is done of all.
///
/// Memory: P of as many members as have tuning::members_block numbers or tuning::members_columns columns, or of one;
/// and a factor where one is made.
/// Error: of solutions ||b - A_j x|| < 40 eps ((||A|| + ||V_j |W_j| V_j'||) ||x|| + ||b||), in the 1-norm; more in
/// inst/design/fan-out.md. Throws not_finite of V and b, what modify() throws, with a field `member`, and what `poll`
/// throws.
ModifiedOutcome solve_modified(HeldFactor& R, const ModifiedSystems& systems, const Poll& poll);

/// Overwrites the results (of ModifiedSystems or BatchSystems) of matrices of order n that are not positive definite.
/// pivots: of each, -1 if it is.
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
