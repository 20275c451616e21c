#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "base/columns_of_v.h"
#include "base/held_factor.h"

namespace gpucholmod {

/// Right-hand sides of a member that come along with its modification, as RightHandSideView says, or with k rows that
/// it gets or loses. The arrays belong to the caller. Results of a member that cannot be changed are unspecified; where
/// rows come or go, so are those beyond its new order.
struct MemberSides {
  const double* z = nullptr;  ///< n x m; finite, in the scalar of R too
  const double* Y = nullptr;  ///< k x m, likewise; the new rows of b where rows come; null where rows go
  double* out = nullptr;      ///< z~, n x m, n + k x m where rows come, n - k x m where they go; not z
  double* rest = nullptr;     ///< k x m, a row for each column of V in the order in which they are taken: added first
};

/// Holds the right-hand sides of all members, m of each, side by side.
struct BatchSides {
  index_t m = 0;
  MemberSides first;

  MemberSides of(index_t n, index_t k, index_t member) const { return of(n, k, member, n); }
  /// made: rows of `out`.
  MemberSides of(index_t n, index_t k, index_t member, index_t made) const {
    if (m == 0) return {};
    const index_t row = member * k * m;
    return {first.z + member * n * m, first.Y ? first.Y + row : nullptr, first.out + member * made * m,
            first.rest + row};
  }
};

/// A modification of every member of a batch: of A_i to scale_i A_i + V_i diag(w_i) V_i', as a backend sees it.
///
/// The arrays belong to the caller. Weights and scales have been looked at: they are finite, scales positive. V has
/// not.
struct BatchTask {
  index_t k = 0;                    ///< columns of V, of every member
  bool common_V = false;            ///< one V (n x k) for all; otherwise n x k x b
  const double* weights = nullptr;  ///< of the columns, signed: what is below zero is taken away. null: 1
  bool common_weights = true;       ///< k of them for all; otherwise k x b
  const double* scale = nullptr;    ///< of A, not of R, one for all or b. null: 1
  bool common_scale = true;
  BatchSides sides;                 ///< right-hand sides that come along
  /// Where one member fails, none changes; otherwise those that fail stay as they are, and all others change.
  bool all_or_none = true;
  int threads = 0;                  ///< of the CPU; 0: as many as are of use
  Instructions instructions = Instructions::automatic;
  double device_memory = std::numeric_limits<double>::infinity();  ///< most device memory to allocate, bytes

  const double* V_of(const double* V, index_t n, index_t member) const { return common_V ? V : V + member * n * k; }
  double weight(index_t q, index_t member) const {
    return weights ? weights[q + (common_weights ? 0 : member * k)] : 1;
  }
  double scale_of(index_t member) const { return scale ? scale[common_scale ? 0 : member] : 1; }
};

/// What is wanted of the modified matrix of every member, with m right-hand sides each. The arrays belong to the
/// caller; null: not wanted. Results of a member whose matrix is not positive definite are unspecified.
struct BatchSystems {
  index_t m = 0;
  const double* b = nullptr;    ///< n x m x b, or n x m for all members; finite
  bool common_b = false;
  double* solution = nullptr;   ///< n x m x b; rows that a member has not are those of its right-hand sides
  double* quadratic = nullptr;  ///< m x b: the diagonals of b' times the solutions
  double* logdet = nullptr;     ///< b: the logarithms of the determinants

  bool solves() const { return m > 0 && (solution || quadratic); }
  const double* b_of(index_t n, index_t member) const { return b + (common_b ? 0 : member * n * m); }
};

/// What members of a batch have room for, and their orders: n where there are none. Beyond, the factors that are given
/// are the identity.
struct BatchRoom {
  index_t capacity = 0;         ///< rows and columns; at least n where that is larger
  std::vector<index_t> orders;  ///< at most n
};

/// p rows and columns that every member of a batch gets. The arrays belong to the caller.
struct BatchInsertion {
  index_t p = 0;
  /// The new columns of A_i, each of batch.order() + p rows, of which those of the member's new matrix count, in its
  /// order: the first n_i + p. Of rows at .. at + p - 1 the upper triangle counts.
  const double* X = nullptr;
  bool common_X = false;     ///< the same p columns for all; otherwise p of each member
  std::vector<index_t> at;   ///< of each member, or one for all: number of the first of them; empty: at the end
  bool all_or_none = true;   ///< as in BatchTask
  BatchSides sides;          ///< right-hand sides that get as many rows

  index_t place(index_t member, index_t order) const {
    return at.empty() ? order : at[at.size() == 1 ? 0 : member];
  }
};

/// p rows and columns that every member of a batch loses.
struct BatchRemoval {
  index_t p = 0;
  std::vector<index_t> gone;  ///< their numbers, ascending: p of each member, or p for all
  BatchSides sides = {};      ///< right-hand sides that lose those rows

  const index_t* of(index_t member) const {
    return gone.data() + (index_t(gone.size()) == p ? 0 : member * p);
  }
};

/// A row and column of every member that move.
struct BatchShift {
  std::vector<index_t> from, to;  ///< their numbers before and after, of each member, or one for all
  BatchSides sides = {};          ///< right-hand sides whose rows move along

  index_t from_of(index_t member) const { return from[from.size() == 1 ? 0 : member]; }
  index_t to_of(index_t member) const { return to[to.size() == 1 ? 0 : member]; }
  bool stays(index_t member) const { return from_of(member) == to_of(member); }
};

/// b Cholesky factors of order n in memory of their own, of doubles or of floats: on a GPU (cuda/device_batch.h),
/// or ordinary memory (cpu/host_batch.h). Its destructor gives the memory back.
///
/// Members may have other orders, n_i <= n: rows and columns beyond are those of the identity.
///
/// Every function throws Error, where it is of a member's numbers with a field `member`, from 1; the batch is then as
/// it was.
class HeldBatch {
 public:
  virtual ~HeldBatch() = default;

  virtual index_t order() const = 0;                 ///< n, the largest of orders()
  virtual std::vector<index_t> orders() const = 0;   ///< n_i
  virtual index_t capacity() const = 0;              ///< rows and columns of each that there is room for
  virtual index_t count() const = 0;
  virtual Precision precision() const = 0;
  virtual bool on_gpu() const = 0;
  virtual double bytes() const = 0;  ///< of memory held

  virtual std::unique_ptr<HeldBatch> copy() const = 0;

  /// out (n x n x b) <- the factors R, or R' when uplo is lower; the other triangles exactly zero.
  virtual void download(Uplo uplo, double* out) const = 0;
  /// out (n_i x n_i) <- that of one member, 0 .. b - 1.
  virtual void download(index_t member, Uplo uplo, double* out) const = 0;
  /// out (n x b) <- the diagonals.
  virtual void diagonals(double* out) const = 0;
  /// B (n x m x b) <- the solutions, each with its member.
  virtual void solve(TriangularSolve which, double* B, index_t m) const = 0;

  /// The factors of scale A + V diag(w) V'. pivots (b) <- -1, or the first pivot, from 0, at which the member's matrix
  /// is not positive definite, columns of both signs taken together. What is added to a member goes before what is
  /// taken away.
  ///
  /// Into *made: a new batch, this one stays as it is; null where task.all_or_none and a member fails. made null: in
  /// place. `begun` becomes true before this one changes: after a throw it is then half modified; with failing members
  /// it is not. What comes of a member has the same bits whatever its neighbours, their number, and the threads. Throws
  /// also not_finite and overflow (of V in the scalar of R, or of the result), both found before anything changes, and
  /// what `poll` throws. V may be in the memory of the GPU that the batch is on.
  virtual Work modify(const GivenColumns<double>& V, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
                      std::vector<index_t>& pivots, const Poll& poll, std::atomic<bool>& begun) = 0;

  /// Solves with scale A + V diag(w) V' of every member, by its factor, which is dropped: this batch stays as it is.
  /// pivots as of modify(); of `task`, all_or_none does not count. Throws what modify() does. This one makes a whole
  /// batch of those factors.
  virtual void solve_modified(const GivenColumns<double>& V, const BatchTask& task, const BatchSystems& wanted,
                              std::vector<index_t>& pivots, const Poll& poll);

  /// The factors with p more rows and columns each; pivots, `made` and `begun` as above, pivots of the new matrices. A
  /// member that fails keeps its order. Beyond the capacity, the batch moves to memory with room for half as many rows
  /// and columns again. On a GPU, it moves in any case. Throws not_finite and overflow of X, bad_diagonal where a new
  /// entry of the diagonal is too small, and not_supported where a batch on a GPU has no room for such members.
  virtual void insert(const BatchInsertion& what, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
                      std::atomic<bool>& begun) = 0;
  /// The factors without p rows and columns of each.
  virtual void remove(const BatchRemoval& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) = 0;
  /// The factors with one row and column of each moved, those in between one step towards where it was. Throws
  /// bad_diagonal where a new entry of the diagonal is too small.
  virtual void shift(const BatchShift& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) = 0;
};

}  // namespace gpucholmod
