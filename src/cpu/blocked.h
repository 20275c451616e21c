#pragma once

#include <vector>

#include "cpu/stages.h"

namespace gpucholmod::cpu {

/// Returns the number of threads for n and k, at most `most`: as many as save more time than the help of the last of
/// them takes.
int useful_threads(index_t n, index_t k, Uplo uplo, int most);

/// Runs a rank-k modification by blocks of mixed hyperbolic Householder steps (k <= 4: of rotations), from left to
/// right.
///
/// The last `removed` columns of V are taken away, the other columns are added. Columns are added first, as then no
/// intermediate matrix is indefinite unless the result is. Both are done to a row block while it is in the cache.
///
/// The sweep is left-looking over strips of columns, so that a strip's part of V stays in the first-level cache, and
/// columns are read and written once, in their order. If R is lower and one thread works, strips are wider, so that
/// rows are read at the speed of memory:
///
///            strip
///      + - - +---+ - -      for each row block b above the strip, from the top:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]      (tail kernel)
///          \ +---+          then, for each row block on the strip's own diagonal:
///            \ d |             find H_d from [ R_d; Vt ]           (diagonal kernel)
///              \ |             and apply it to the rest of the strip
///
/// Threads take strips in turn. Each thread works down its strip as far as the transforms are known, and then waits for
/// the transforms that the thread to its left is finding. So while one thread works on its diagonal blocks, the others
/// modify all but the last rows of the next strips. The operations on a column do not depend on the thread, hence the
/// result has the same bits with any number of threads.
///
/// Rows of R above the first row of V that is not zero stay as they are, unless there is a scale: these rows are copied
/// to `out`; in place, only their diagonal is read.
///
/// Error: residual ratio < 30 for updates and downdates alike (inst/design/accuracy.md).
/// Reference: inst/design/block-householder.md.
template <class T>
class BlockedSweep {
 public:
  /// Prepares a sweep over V (n x k), which only advance() reads, and which has to outlive the sweep. uplo: how R is
  /// stored. `instructions`: resolved. The result is multiplied by `scale`.
  BlockedSweep(MatrixView<const T> V, index_t removed, T scale, Uplo uplo, Instructions instructions, int threads);

  /// Modifies the next columns of the upper factor. uplo upper: R and out hold these columns from row 0 down to the
  /// diagonal at least; their number is a multiple of 8, or all that are left. uplo lower: R and out are the whole
  /// matrix. `out` may be R. If out.data is null, the call is a dry run. `clear`: the other triangle of `out` becomes
  /// zero. Returns the failing pivot, or -1; after a failure `out` is partly written. An update fails at an entry of
  /// R's diagonal that is not a positive normal number. The calling thread tells `poll` the share of R done.
  index_t advance(MatrixView<const T> R, MatrixView<T> out, bool clear, const Poll& poll);

  /// Applies the modification to right-hand sides of n rows, after all of R is done. V must be zero from row n on.
  /// Cannot fail after reserve_to_carry() for as many right-hand sides.
  void carry(const RightHandSideView& sides, index_t n) {
    if (sides.m() == 0) return;
    if (first_row_ >= n) return sides.pass_through();
    if (carry_memory_.z.empty()) reserve_to_carry(sides.m());
    stages_.carry(trailing(sides), first_row_, n, width_, carry_memory_);
  }
  /// Allocates the memory that carry() needs for m right-hand sides.
  void reserve_to_carry(index_t m) {
    if (m > 0) carry_memory_ = stages_.memory_to_carry(m, V_.rows, width_);
  }

  /// Modifies all of R at once, as advance() does, and then right-hand sides, unless out.data or `right` is null.
  index_t run(MatrixView<const T> R, MatrixView<T> out, bool clear, const RightHandSideView* right, const Poll& poll) {
    const index_t pivot = advance(R, out, clear, poll);
    if (pivot < 0 && out.data && right) carry(*right, V_.rows);
    return pivot;
  }

  /// Returns the sum of the squares of the entries of R that have been read so far. If no more than most_rotations
  /// columns of V come first (the added columns, or all if none is added), only entries near the diagonal, and entries
  /// in rows that stay, are summed. If an entry is not finite, the sum is not finite, or the pivot of its column
  /// fails. The sum is infinite if an entry of the diagonal is below least_safe.
  T squares() const { return squares_; }
  /// Returns true only if squares() sums all entries of R that have been read.
  bool sums_all() const { return stages_.begin()->k > most_rotations; }

 private:
  /// The work memory of a thread.
  struct Workspace {
    T* Vt = nullptr;
    std::vector<T> discarded;
    T squares = 0;
  };
  struct Walk;

  Workspace workspace();
  /// Returns the number of rows above the first row of V that is not zero, rounded down to a multiple of 8.
  static index_t rows_of_zeros(MatrixView<const T> V);
  /// Copies the rows of the right-hand sides that stay. Returns a view of the rows that change.
  RightHandSideView trailing(const RightHandSideView& sides) const;
  /// Checks and copies the rows of a strip that stay. Returns false if an entry of their diagonal is not a positive
  /// normal number.
  bool keep_rows(Walk& walk, Workspace& mine, index_t first, index_t last) const;
  void work(Walk& walk, Workspace& mine, const Poll* told);
  bool modify_strip(Walk& walk, Workspace& mine, index_t first, index_t last);
  void provide_columns(const Walk& walk, index_t first, index_t last) const;
  void clear_strip(const Walk& walk, index_t first, index_t last) const;

  MatrixView<const T> V_;
  Uplo uplo_;
  int threads_;
  index_t width_;       ///< columns of a strip
  Stages<T> stages_;
  bool is_scaled_;
  index_t first_row_ = 0;  ///< first row that changes, a multiple of 8; found by the first advance()
  typename Stages<T>::CarryMemory carry_memory_;
  index_t rows_, ldv_;  ///< height of a row block; leading dimension of a strip's V
  Workspace first_;     ///< work memory of the calling thread
  std::vector<Workspace> others_;
  index_t next_ = 0;    ///< next column to modify
  T squares_ = 0;
};

}  // namespace gpucholmod::cpu
