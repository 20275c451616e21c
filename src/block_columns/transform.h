#pragma once

#include "base/types.h"

namespace gpucholmod::block_columns {

constexpr int NB = 64;             ///< rows of a row block
constexpr int IB = 16;             ///< rows of a sub-block: the order of the small Cholesky factors
constexpr int SUBS = NB / IB;
constexpr int WARPS = 8;           ///< of a block of threads
constexpr int WARP_COLUMNS = 16;   ///< columns of a strip that a warp owns
constexpr int STRIP = WARPS * WARP_COLUMNS;  ///< columns of a strip
constexpr int BLOCKS = STRIP / NB;  ///< row blocks of a strip: its diagonal block is that many high
constexpr int LDB = NB + 8;        ///< leading dimension of anything with NB contiguous: free of bank conflicts
constexpr int LDC = IB + 8;        ///< and with IB

/// How a row block is to be applied to the columns to its right.
enum Kind {
  unscaled = 0,    ///< Woodbury's formula, V left without its scaling
  householder = 1  ///< steps row by row
};

/// The transform of a row block, as the block of threads that did it tells all others, in global memory, for V of K columns
/// (padded with zeros to 8, 16, 32 or 64). Offsets in doubles; the notation is that of inst/design/block-columns.md.
template <int K>
struct Transform {
  static constexpr int KP = K < IB ? IB : K;
  static constexpr int LDK = K < IB ? 8 : K + 8;

  static constexpr int P = 0;               ///< P(i, q) at q * LDB + i                        (unscaled)
  static constexpr int Z = P + K * LDB;     ///< sigma Z(i, q), or y_i(q), at i * LDK + q
  static constexpr int C = Z + NB * LDK;    ///< C_a^-1 (l, c) at (a * IB + c) * LDC + l       (unscaled)
  static constexpr int inv_tau = C;         ///< 1 / tau_i, 1 / (1 - tau_i), rho_i, NB of each (householder)
  static constexpr int inv_ctau = C + NB;
  static constexpr int rho = C + 2 * NB;
  static constexpr int kind = C + SUBS * IB * LDC;
  static constexpr int rescaled = kind + 1;  ///< V is to be multiplied by T before this block
  static constexpr int trace = kind + 2;     ///< trace of sigma (H - I) behind this block
  static constexpr int image = kind + 8;     ///< words up to here are what a strip needs of a block
  static constexpr int T = image;            ///< T(l, q) at q * LDB + l
  static constexpr int H = T + KP * LDB;     ///< H behind this block: H(q, q') at q * LDB + q'
  static constexpr int words = H + KP * LDB;
};

/// How far one pass has come, which its strips tell each other besides: one int each, zero at the start.
struct PassState {
  int stop;         ///< a downdate has failed: everybody goes home
  int pivot;        ///< where it failed, from 0
  int fallbacks;    ///< row blocks done by Householder steps
  int rescalings;
  int padding[4];
};

/// What the strips of one modification share, V having K columns, whatever the factor is stored in.
struct Shared {
  int strips;          ///< of STRIP columns each
  double sigma;        ///< 1 or -1
  double* transforms;  ///< Transform<K>::words for each row block
  int* has_P;          ///< a flag per row block: P, or everything when its kind is householder, has been published
  int* has_C;          ///< everything has been published
  int* has_H;          ///< H has been published
  PassState* pass_state;
  bool only_householder;  ///< take every block by Householder steps, to measure and to test
};

/// A panel of strips, [first, end), of a factor of shared.strips * STRIP rows and columns. A modification is one job,
/// or several that begin in the order of their strips; a strip waits for strips left of it, in whichever job they
/// are.
template <class T>
struct Job {
  Shared shared;
  int first, end;
  int* ticket;      ///< strips taken so far; 0 at the start
  const T* R;       ///< the panel's columns, leading dimension ld; zero below the diagonal in diagonal blocks of order
                    ///< NB, and not used elsewhere there
  T* out;           ///< likewise; may be R; null: only find out whether it can be done
  index_t ld;
  const double* V;  ///< padded n x K, column-major without gaps: of all strips
  double* saved;    ///< STRIP * K words for each strip of the panel
  double* inverses; ///< of the diagonal blocks, NB * LDB words each, BLOCKS for each strip of the panel
};

/// The unscaled step is taken while the trace of sigma (H - I) stays below this; a downdate may go beyond, when
/// the trace of H^-1 - I is found to be below `most_growth`. Measured: inst/design/block-columns.md.
constexpr double most_trace_update = 256;
constexpr double most_trace_downdate = 0.75;
constexpr double most_growth = 9;

/// In place of the trace behind a row block whose growth was looked at: the next one has to rescale.
constexpr double trace_beyond_limits = 1e30;

/// A diagonal block whose condition number in the Frobenius norm is below this is solved with by its inverse alone.
constexpr double unrefined = 300;
/// Up to here a step of refinement leaves a residual of the order of rounding: (u kappa)^2 < u.
constexpr double solvable = 1e7;

/// When the chain is this many row blocks above its diagonal, a strip begins to run ahead with P alone, if it is not
/// itself more than `farthest_run_ahead` blocks behind: what it passes then it has to read again.
constexpr int run_ahead_blocks = 12;
constexpr int farthest_run_ahead = 24;

}  // namespace gpucholmod::block_columns
