#ifndef GPUCHOLMOD_CPU_BLOCKED_H
#define GPUCHOLMOD_CPU_BLOCKED_H

#include <vector>

#include "core/request.h"

namespace gpucholmod::cpu {

/// Rank-k modification by blocks of mixed hyperbolic Householder steps, from left to right.
///
/// Left-looking over strips of columns, so that a strip's part of V stays in the first-level cache, and no column is
/// needed before its turn or after it:
///
///            strip
///      + - - +---+ - -      for each row block b above the strip, from the top:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]      (tail kernel)
///          \ +---+          then, for each row block on the strip's own diagonal:
///            \ d |             find H_d from [ R_d; Vt ]           (diagonal kernel)
///              \ |             and apply it to the rest of the strip
///
/// Error: residual ratio < 30 for updates and downdates alike (inst/design/accuracy.md).
/// Reference: inst/design/block-householder.md.
template <class T>
class BlockedSweep {
 public:
  /// Vt: k x n, the transpose of V; read only, and kept.
  BlockedSweep(MatrixView<const T> Vt, Sign sign);

  /// The next columns of R, from row 0 down to their diagonal at least: a multiple of tuning::blocked_strip of them,
  /// or all that are left. Returns the failing pivot (the panel is then partly modified), or -1. `poll` is told the
  /// share of R done.
  index_t advance(MatrixView<T> panel, const Poll& poll);

 private:
  template <Sign sign>
  index_t walk(MatrixView<T> panel, const Poll& poll);
  T* reflector(index_t row) { return reflectors_.data() + row / tuning::blocked_rows * words_; }

  MatrixView<const T> Vt_;
  Sign sign_;
  index_t kp_, words_;  ///< k padded; words of a reflector
  index_t next_ = 0;    ///< column
  std::vector<T> reflectors_, strip_;
};

/// All of R (n x n, upper, positive diagonal) at once: on exit R~ with R~'R~ = R'R + sigma V V'. The CPU's default.
template <class T>
index_t blocked(MatrixView<T> R, MatrixView<const T> Vt, Sign sign, const Poll& poll) {
  return BlockedSweep<T>(Vt, sign).advance(R, poll);
}

}  // namespace gpucholmod::cpu

#endif
