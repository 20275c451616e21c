#pragma once

#include <cstring>

#include "base/host_device.h"
#include "base/types.h"

namespace gpucholmod::block_columns {

constexpr int NB = 64;             ///< rows of a row block
constexpr int IB = 16;             ///< rows of a sub-block: the order of the small Cholesky factors
constexpr int SUBS = NB / IB;
constexpr int HALF = IB;           ///< columns of V of one sign in a pass with both signs: the added columns are first
constexpr int WARPS = 8;           ///< warps of a thread block
constexpr int STRIP = 128;         ///< columns of a strip: factors are continued to a whole number of strips
constexpr int BLOCKS = STRIP / NB;  ///< row blocks of a strip
constexpr int GROUP = 16;          ///< columns of a group, on which a warp works
constexpr int GROUPS = NB / GROUP;  ///< groups in a row block
constexpr int LDB = NB + 8;        ///< leading dimension of matrices with NB contiguous numbers: free of bank conflicts
constexpr int LDC = IB + 8;        ///< leading dimension of matrices with IB contiguous numbers: free of bank conflicts

/// The reason for which a pass is stopped.
enum Stop {
  not_stopped = 0,
  not_definite = 1,  ///< a downdate has failed, the pass before is not done yet, or V has a number beyond largest_plain
  too_small = 2,     ///< an entry of the diagonal of R~ is too small for a normal number
  too_large = 3      ///< an entry of the diagonal of R~ is infinite or not a number
};

/// Holds what the launches of a pass tell each other of its end, in ints, zero at the start.
struct PassState {
  int stop;      ///< a Stop: if it is not 0, no later launch of the pass does anything
  int pivot;     ///< row in which the pass is stopped, from 0
  int entry[2] = {};  ///< bits of the diagonal entry of R~ in that row, a double, if the entry is the reason

  GPUCHOLMOD_HOST_DEVICE void set_entry(double value) { memcpy(entry, &value, sizeof value); }
  GPUCHOLMOD_HOST_DEVICE double get_entry() const {
    double value;
    memcpy(&value, entry, sizeof value);
    return value;
  }
};

/// Describes the numbers of a piece of V.
struct Looked {
  double largest;  ///< largest magnitude; infinite if a number is not finite
  double squares;  ///< sum of the squares
};
constexpr int most_pieces = 128;  ///< largest number of pieces of V in a pass
/// The largest magnitude of numbers that the kernels of a factor of T's accept if nobody has looked at V before: sums
/// of squares of such numbers do not overflow.
template <class T>
constexpr double largest_plain = sizeof(T) == sizeof(float) ? 0x1p60 : 0x1p400;

/// The number by which the first rows of the result are multiplied. Rows behind the end of a factor are not multiplied,
/// and stay those of an identity.
struct Scaling {
  double by = 1;
  index_t rows = 0;
  GPUCHOLMOD_HOST_DEVICE double of(index_t row) const { return row < rows ? by : 1; }
};

/// The bound of ||R_bb||_F ||X||_F below which a diagonal block is solved with by its inverse X alone.
constexpr double unrefined = 300;
/// The bound of rho = ||I - X R_bb||_F + 8 u sum over l of ||X(:, l)|| ||R_bb(l, :)|| below which one step of
/// refinement is enough, as then rho^2 < u, the unit roundoff of A. Proof: inst/design/guard.md.
template <class A>
constexpr A refinable = sizeof(A) == sizeof(float) ? A(0x1p-12) : A(0x1p-27);
template <class A>
constexpr A unit_roundoff = sizeof(A) == sizeof(float) ? A(0x1p-24) : A(0x1p-53);

/// Returns whether x is positive, finite and not subnormal.
template <class T>
GPUCHOLMOD_HOST_DEVICE bool is_normal(T x) {
  return x >= (sizeof(T) == sizeof(float) ? T(0x1p-126) : T(0x1p-1022)) && x - x == 0;
}

}  // namespace gpucholmod::block_columns
