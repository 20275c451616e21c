#pragma once

#include <vector>

#include "cpu/stages.h"

namespace gpucholmod::cpu {

/// Threads for n and k, `most` at the most: as many as still save more than it takes to have the help of the last of
/// them.
int useful_threads(index_t n, index_t k, Uplo uplo, int most);

/// Rank-k modification by blocks of mixed hyperbolic Householder steps (k <= 4: of rotations), from left to right.
///
/// The last `removed` columns of V are taken away, the others added: first, as then no matrix on the way is indefinite
/// unless the result is. Both are done to a row block while it is in the cache.
///
/// Left-looking over strips of columns, so that a strip's part of V stays in the first-level cache, and columns are
/// read and written once, in their order. Where R is lower and one thread works, strips are wider, so that rows are
/// read at the speed of memory:
///
///            strip
///      + - - +---+ - -      for each row block b above the strip, from the top:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]      (tail kernel)
///          \ +---+          then, for each row block on the strip's own diagonal:
///            \ d |             find H_d from [ R_d; Vt ]           (diagonal kernel)
///              \ |             and apply it to the rest of the strip
///
/// Threads take strips in turn. Each goes down its strip as far as the transforms are known, and waits for those that
/// the thread to its left is just finding: so the next strips are done, but for their last rows, while a diagonal block
/// is. What is computed for a column does not depend on who computes it, hence the result has the same bits with any
/// number of threads.
///
/// Rows of R above the first that V has a number in stay as they are, unless there is a scale: they are copied, or, in
/// place, not read but for their diagonal.
///
/// Error: residual ratio < 30 for updates and downdates alike (inst/design/accuracy.md).
/// Reference: inst/design/block-householder.md.
template <class T>
class BlockedSweep {
 public:
  /// V: n x k; read only, when there is work, and kept. uplo: how R is stored. `instructions`: resolved. The result is
  /// multiplied by `scale`.
  BlockedSweep(MatrixView<const T> V, index_t removed, T scale, Uplo uplo, Instructions instructions, int threads);

  /// The next columns of the upper factor. uplo upper: R and out hold them from row 0 down to their diagonal at least;
  /// a multiple of 8 of them, or all that are left. uplo lower: R and out are the whole matrix. `out` may be R. Without
  /// out.data nothing is written, and only the verdict is of interest. `clear`: the other triangle of `out` becomes
  /// zero. Returns the failing pivot (`out` is then partly written; of an update: an entry of R's diagonal that is not
  /// a positive normal number), or -1. `poll` is told the share of R done, by the calling thread.
  index_t advance(MatrixView<const T> R, MatrixView<T> out, bool clear, const Poll& poll);

  /// Applies the modification to right-hand sides of n rows, when all of R is done. Behind row n V is zero. Cannot fail
  /// after reserve_to_carry() with as many right-hand sides.
  void carry(const RightHandSideView& sides, index_t n) {
    if (sides.m() == 0) return;
    if (first_row_ >= n) return sides.pass_through();
    if (carry_memory_.z.empty()) reserve_to_carry(sides.m());
    stages_.carry(trailing(sides), first_row_, n, width_, carry_memory_);
  }
  /// Allocates what carry() needs for m right-hand sides.
  void reserve_to_carry(index_t m) {
    if (m > 0) carry_memory_ = stages_.memory_to_carry(m, V_.rows, width_);
  }

  /// The same for all of R at once, and for right-hand sides, unless out.data or `right` is null.
  index_t run(MatrixView<const T> R, MatrixView<T> out, bool clear, const RightHandSideView* right, const Poll& poll) {
    const index_t pivot = advance(R, out, clear, poll);
    if (pivot < 0 && out.data && right) carry(*right, V_.rows);
    return pivot;
  }

  /// Sum of the squares of the entries of R that have been read so far, with few columns in V of those near the
  /// diagonal only, and of those in rows that stay. Where an entry is not finite, neither is this, or the pivot of its
  /// column fails. Infinite where an entry of the diagonal is below least_safe.
  T squares() const { return squares_; }

 private:
  /// Of a thread.
  struct Workspace {
    T* Vt = nullptr;
    std::vector<T> discarded;
    T squares = 0;
  };
  struct Walk;

  Workspace workspace();
  /// Rows above that of the first number in V, of whole row blocks.
  static index_t rows_of_zeros(MatrixView<const T> V);
  /// Copies the right-hand sides of the rows that stay. Returns the others.
  RightHandSideView trailing(const RightHandSideView& sides) const;
  /// Deals with the rows of a strip that stay: false, where an entry of their diagonal is not a positive normal number.
  bool keep_rows(Walk& walk, Workspace& mine, index_t first, index_t last) const;
  void work(Walk& walk, Workspace& mine, const Poll* told);
  bool modify_strip(Walk& walk, Workspace& mine, index_t first, index_t last);
  void provide_columns(const Walk& walk, index_t first, index_t last) const;
  void clear_strip(const Walk& walk, index_t first, index_t last) const;

  MatrixView<const T> V_;
  Uplo uplo_;
  int threads_;
  index_t width_;       ///< of a strip
  Stages<T> stages_;
  bool is_scaled_;
  index_t first_row_ = 0;  ///< that changes, a multiple of 8; known when there is work
  typename Stages<T>::CarryMemory carry_memory_;
  index_t rows_, ldv_;  ///< height of a row block; leading dimension of a strip's V
  Workspace first_;     ///< of the thread that calls
  std::vector<Workspace> others_;
  index_t next_ = 0;    ///< column
  T squares_ = 0;
};

}  // namespace gpucholmod::cpu
