#ifndef GPUCHOLMOD_CPU_BLOCKED_H
#define GPUCHOLMOD_CPU_BLOCKED_H

#include "core/request.h"

namespace gpucholmod::cpu {

/// Rank-k modification by blocks of mixed hyperbolic Householder steps: the CPU's default.
///
///   R   n x n, upper, positive diagonal. On exit R~ with R~'R~ = R'R + sigma V V'.
///   Vt  k x n, the transpose of V; read only.
///
/// Left-looking over strips of columns, so that a strip's part of V stays in the first-level cache:
///
///            strip
///      + - - +---+ - -      for each row block b above the strip, from the top:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]      (tail kernel)
///          \ +---+          then, for each row block on the strip's own diagonal:
///            \ d |             find H_d from [ R_d; Vt ]           (diagonal kernel)
///              \ |             and apply it to the rest of the strip
///
/// Returns the failing pivot (R is then partly modified), or -1.
/// Error: residual ratio < 30 for updates and downdates alike (inst/design/accuracy.md).
/// Reference: inst/design/block-householder.md.
template <class T>
index_t blocked(MatrixView<T> R, MatrixView<const T> Vt, Sign sign, const Poll& poll);

}  // namespace gpucholmod::cpu

#endif
