#pragma once

#include "base/host_device.h"
#include "base/types.h"

namespace gpucholmod::block_columns {

constexpr int NB = 64;             ///< rows of a row block
constexpr int IB = 16;             ///< rows of a sub-block: the order of the small Cholesky factors
constexpr int SUBS = NB / IB;
constexpr int HALF = IB;           ///< columns of V of one sign, in a pass with both: first those that are added
constexpr int WARPS = 8;           ///< of a block of threads
constexpr int STRIP = 128;         ///< columns of a strip: factors are continued to a whole number of them
constexpr int BLOCKS = STRIP / NB;  ///< row blocks of a strip
constexpr int LDB = NB + 8;        ///< leading dimension of anything with NB contiguous: free of bank conflicts
constexpr int LDC = IB + 8;        ///< and with IB

/// What the launches of a pass say of its steps, one int each, zero at the start.
struct PassState {
  int stop;   ///< a downdate has failed, or the pass before is not done yet: everybody goes home
  int pivot;  ///< where it failed, from 0
};

/// What is written, in its first rows, is multiplied by a number: not in those behind the end of a factor, which stay an identity's.
struct Scaling {
  double by = 1;
  index_t rows = 0;
  GPUCHOLMOD_HOST_DEVICE double of(index_t row) const { return row < rows ? by : 1; }
};

/// A diagonal block whose condition number in the Frobenius norm is below this is solved with by its inverse alone.
constexpr double unrefined = 300;
/// Up to here a step of refinement leaves a residual of the order of rounding, A being what is computed with: (u kappa)^2 < u.
template <class A>
constexpr A solvable = sizeof(A) == sizeof(float) ? 400 : 1e7;

}  // namespace gpucholmod::block_columns
