#pragma once

#include <cstring>

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
constexpr int GROUP = 16;          ///< columns of R that a warp works on: a group
constexpr int GROUPS = NB / GROUP;  ///< groups in a row block
constexpr int LDB = NB + 8;        ///< leading dimension of anything with NB contiguous: free of bank conflicts
constexpr int LDC = IB + 8;        ///< and with IB

/// Why a pass is stopped.
enum Stop {
  not_stopped = 0,
  not_definite = 1,  ///< a downdate has failed, the pass before is not done yet, or V holds what is no plain number
  too_small = 2,     ///< an entry of the diagonal of R~ is too small for a normal number
  too_large = 3      ///< or too large
};

/// What the launches of a pass say of its steps, in ints, zero at the start.
struct PassState {
  int stop;      ///< Stop: if there is one, no later launch of the pass does anything
  int pivot;     ///< in which row, from 0
  int entry[2] = {};  ///< the bits of what R~ would have there, a double, where that is why

  GPUCHOLMOD_HOST_DEVICE void set_entry(double value) { memcpy(entry, &value, sizeof value); }
  GPUCHOLMOD_HOST_DEVICE double get_entry() const {
    double value;
    memcpy(&value, entry, sizeof value);
    return value;
  }
};

/// What a piece of V holds.
struct Looked {
  double largest;  ///< magnitude; infinite where a number is not finite
  double squares;  ///< their sum
};
constexpr int most_pieces = 128;  ///< of V in a pass that are looked at
/// Numbers up to this may go to the kernels of a factor of T's that nobody has looked at: sums of their squares do not
/// overflow.
template <class T>
constexpr double largest_plain = sizeof(T) == sizeof(float) ? 0x1p60 : 0x1p400;

/// What is written, in its first rows, is multiplied by a number: not in those behind the end of a factor, which stay
/// an identity's.
struct Scaling {
  double by = 1;
  index_t rows = 0;
  GPUCHOLMOD_HOST_DEVICE double of(index_t row) const { return row < rows ? by : 1; }
};

/// A diagonal block is solved with by its inverse X alone where ||R_bb||_F ||X||_F is below this.
constexpr double unrefined = 300;
/// One step of refinement is enough where rho = ||I - X R_bb||_F + 8 u sum over l of ||X(:, l)|| ||R_bb(l, :)|| is
/// below this, u being the unit roundoff of A: then rho^2 < u. Proof: inst/design/guard.md.
template <class A>
constexpr A refinable = sizeof(A) == sizeof(float) ? A(0x1p-12) : A(0x1p-27);
template <class A>
constexpr A unit_roundoff = sizeof(A) == sizeof(float) ? A(0x1p-24) : A(0x1p-53);

/// Is true if x is positive, finite and not subnormal.
template <class T>
GPUCHOLMOD_HOST_DEVICE bool is_normal(T x) {
  return x >= (sizeof(T) == sizeof(float) ? T(0x1p-126) : T(0x1p-1022)) && x - x == 0;
}

}  // namespace gpucholmod::block_columns
