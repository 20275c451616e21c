#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "base/columns_of_v.h"
#include "base/held_factor.h"

namespace gpucholmod {

/// Refers to the right-hand sides of one member, which are modified along with its factor as RightHandSideView says, or
/// gain or lose k rows with the member. The arrays belong to the caller. Results of a member that cannot be changed are
/// unspecified; after an insertion or removal, rows beyond the member's new order are unspecified, too.
struct MemberSides {
  const double* z = nullptr;  ///< n x m; finite, in the scalar of R too
  const double* Y = nullptr;  ///< k x m, finite like z; the new rows of b for an insertion; null for a removal
  double* out = nullptr;      ///< z~, n x m; for an insertion n + k x m, for a removal n - k x m; must not be z
  double* rest = nullptr;     ///< k x m, a row for each column of V in the order of modification: added columns first
};

/// Holds the right-hand sides of all members, m of each, side by side.
struct BatchSides {
  index_t m = 0;
  MemberSides first;

  MemberSides of(index_t n, index_t k, index_t member) const { return of(n, k, member, n); }
  /// Returns the arrays of one member; `made` is the number of rows of `out`.
  MemberSides of(index_t n, index_t k, index_t member, index_t made) const {
    if (m == 0) return {};
    const index_t row = member * k * m;
    return {first.z + member * n * m, first.Y ? first.Y + row : nullptr, first.out + member * made * m,
            first.rest + row};
  }
};

/// Describes a modification of every member of a batch, as a backend sees it: of A_i to
/// scale_i A_i + V_i diag(w_i) V_i'.
///
/// The arrays belong to the caller. Weights and scales have been checked: they are finite, and scales are positive. V
/// has not been checked.
struct BatchTask {
  index_t k = 0;                    ///< number of V's columns for each member
  bool common_V = false;            ///< True if one V (n x k) is used for all members; otherwise V is n x k x b
  const double* weights = nullptr;  ///< signed weights of the columns; a negative weight takes its column away. null: 1
  bool common_weights = true;       ///< True if k weights are used for all members; otherwise they are k x b
  const double* scale = nullptr;    ///< multiples of A, not of R, one for all members or b. null: 1
  bool common_scale = true;
  BatchSides sides;                 ///< right-hand sides that are modified along with the members
  /// True if no member changes when one fails; otherwise failing members stay as they are, and all others change.
  bool all_or_none = true;
  int threads = 0;                  ///< number of CPU threads; 0: as many as are of use
  Instructions instructions = Instructions::automatic;
  double device_memory = std::numeric_limits<double>::infinity();  ///< most device memory to allocate, bytes

  const double* V_of(const double* V, index_t n, index_t member) const { return common_V ? V : V + member * n * k; }
  double weight(index_t q, index_t member) const {
    return weights ? weights[q + (common_weights ? 0 : member * k)] : 1;
  }
  double scale_of(index_t member) const { return scale ? scale[common_scale ? 0 : member] : 1; }
};

/// Describes the results that are wanted of the modified matrix of every member, with m right-hand sides each. The
/// arrays belong to the caller; a null array is not wanted. Results of a member whose matrix is not positive definite
/// are unspecified.
struct BatchSystems {
  index_t m = 0;
  const double* b = nullptr;    ///< n x m x b, or n x m for all members; finite
  bool common_b = false;
  double* solution = nullptr;   ///< n x m x b; rows beyond a member's order are those of its right-hand sides
  double* quadratic = nullptr;  ///< m x b: the diagonals of b' times the solutions
  double* logdet = nullptr;     ///< b: the logarithms of the determinants

  bool solves() const { return m > 0 && (solution || quadratic); }
  const double* b_of(index_t n, index_t member) const { return b + (common_b ? 0 : member * n * m); }
};

/// Describes the members' room and their orders; if `orders` is empty, every order is n. A given factor is the identity
/// beyond its member's order.
struct BatchRoom {
  index_t capacity = 0;         ///< rows and columns that each member has room for; n if n is larger
  std::vector<index_t> orders;  ///< orders of the members, each at most n
};

/// Describes p rows and columns that are inserted into every member of a batch. The arrays belong to the caller.
struct BatchInsertion {
  index_t p = 0;
  /// The new columns of A_i, each of batch.order() + p rows. Only the first n_i + p rows are read, in the order of the
  /// member's new matrix; of rows at .. at + p - 1 only the upper triangle is read.
  const double* X = nullptr;
  bool common_X = false;     ///< True if all members get the same p columns; otherwise each has p of its own
  std::vector<index_t> at;   ///< number of the first new row, of each member or one for all; empty: at the end
  bool all_or_none = true;   ///< True if no member changes when one fails, as in BatchTask
  BatchSides sides;          ///< right-hand sides that gain as many rows

  index_t place(index_t member, index_t order) const {
    return at.empty() ? order : at[at.size() == 1 ? 0 : member];
  }
};

/// Describes p rows and columns that are removed from every member of a batch.
struct BatchRemoval {
  index_t p = 0;
  std::vector<index_t> gone;  ///< numbers of these rows, ascending: p of each member, or p for all
  BatchSides sides = {};      ///< right-hand sides that lose these rows

  const index_t* of(index_t member) const {
    return gone.data() + (index_t(gone.size()) == p ? 0 : member * p);
  }
};

/// Describes the move of one row and column of every member.
struct BatchShift {
  std::vector<index_t> from, to;  ///< numbers of the row before and after, of each member, or one for all
  BatchSides sides = {};          ///< right-hand sides whose rows move along

  index_t from_of(index_t member) const { return from[from.size() == 1 ? 0 : member]; }
  index_t to_of(index_t member) const { return to[to.size() == 1 ? 0 : member]; }
  bool stays(index_t member) const { return from_of(member) == to_of(member); }
};

/// Holds b Cholesky factors of order n, of doubles or of floats, in memory of its own: on a GPU (cuda/device_batch.h),
/// or in ordinary memory (cpu/host_batch.h). The destructor gives the memory back.
///
/// Members may have other orders, n_i <= n: rows and columns beyond n_i are those of the identity.
///
/// Every function throws Error; an error in a member's numbers has a field `member`, counted from 1. The batch is then
/// as it was before, unless `begun` is true.
class HeldBatch {
 public:
  virtual ~HeldBatch() = default;

  virtual index_t order() const = 0;                 ///< n, the largest of orders()
  virtual std::vector<index_t> orders() const = 0;   ///< n_i
  virtual index_t capacity() const = 0;              ///< rows and columns that each member has room for
  virtual index_t count() const = 0;
  virtual Precision precision() const = 0;
  virtual bool on_gpu() const = 0;
  virtual double bytes() const = 0;  ///< memory held

  virtual std::unique_ptr<HeldBatch> copy() const = 0;

  /// Copies the factors R, or R' if uplo is lower, to out (n x n x b); the other triangles become exactly zero.
  virtual void download(Uplo uplo, double* out) const = 0;
  /// Copies the factor of one member, 0 .. b - 1, to out (n_i x n_i).
  virtual void download(index_t member, Uplo uplo, double* out) const = 0;
  /// Copies the diagonals to out (n x b).
  virtual void diagonals(double* out) const = 0;
  /// Overwrites B (n x m x b) with the solutions; each member solves for its own m columns.
  virtual void solve(TriangularSolve which, double* B, index_t m) const = 0;

  /// Computes the factors of scale A + V diag(w) V'. Sets pivots (b) to -1, or to the first pivot, counted from 0, at
  /// which the member's matrix is not positive definite, columns of both signs taken together. Columns that are added
  /// to a member precede columns that are taken away.
  ///
  /// If `made` is not null, stores a new batch in *made and leaves this batch as it is; *made is null if
  /// task.all_or_none is true and a member fails. If `made` is null, modifies this batch in place. `begun` becomes true
  /// before this batch changes: after a throw the batch is then half modified, after failing members it is not. The
  /// result of a member has the same bits whatever its neighbours, their number, and the threads. Throws also
  /// not_finite and overflow (of V in the scalar of R, or of the result), both before anything changes, and what `poll`
  /// throws. V may be in the memory of the GPU that holds the batch.
  virtual Work modify(const GivenColumns<double>& V, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
                      std::vector<index_t>& pivots, const Poll& poll, std::atomic<bool>& begun) = 0;

  /// Solves with scale A + V diag(w) V' of every member, by a factor that is then dropped; this batch stays as it is.
  /// Sets pivots as modify() does, ignores task.all_or_none, and throws what modify() throws. This implementation makes
  /// a whole batch of such factors.
  virtual void solve_modified(const GivenColumns<double>& V, const BatchTask& task, const BatchSystems& wanted,
                              std::vector<index_t>& pivots, const Poll& poll);

  /// Inserts p rows and columns into every member. Uses `made` and `begun` as modify() does; pivots are those of the
  /// new matrices. A member that fails keeps its order. Beyond the capacity, the batch moves to memory with room for
  /// half as many rows and columns again; on a GPU, it moves in any case. Throws not_finite and overflow of X,
  /// bad_diagonal if a new entry of the diagonal is too small, and not_supported if a batch on a GPU has no room for
  /// such members.
  virtual void insert(const BatchInsertion& what, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
                      std::atomic<bool>& begun) = 0;
  /// Removes p rows and columns of every member.
  virtual void remove(const BatchRemoval& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) = 0;
  /// Moves one row and column of every member; the rows in between move one step towards its old place. Throws
  /// bad_diagonal if a new entry of the diagonal is too small.
  virtual void shift(const BatchShift& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) = 0;
};

}  // namespace gpucholmod
