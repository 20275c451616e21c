#pragma once

#include <algorithm>

#include "base/types.h"

/// Small factors of one order side by side, so many that a number of each makes a cache line; see
/// inst/design/batches.md.
namespace gpucholmod::cpu {

/// Members of a group: 8 of doubles, 16 of floats, whatever the instructions.
template <class T>
constexpr index_t group_size = 64 / sizeof(T);

/// Numbers of a group's triangles, and where the members' entries (i, j), j >= i, are in it: by rows, `group_size`
/// numbers for each.
template <class T>
constexpr index_t group_words(index_t n) {
  return n * (n + 1) / 2 * group_size<T>;
}
template <class T>
constexpr index_t group_entry(index_t n, index_t i, index_t j) {
  return (i * n - i * (i - 1) / 2 + j - i) * group_size<T>;
}

/// What 1, 2, 4 or 8 columns of V, of every member, do to a group. `lane`: a member of it.
template <class T>
struct GroupPass {
  static constexpr int rows = 4;  ///< that are done at once
  static constexpr index_t discarded = 2 * rows;
  static constexpr T most = sizeof(T) == 8 ? T(0x1p200) : T(0x1p40);  ///< of h, and of what a row grows by
  static constexpr T least_left = T(0.125);                           ///< of h, by what is taken away in `rows` rows

  index_t n;
  int k;
  const T* R;      ///< group_words(n)
  T* out;          ///< the same, R itself or another; or, where `discard`, `discarded` entries
  bool discard;
  bool adds, removes;  ///< whether any column of any lane is added, or taken away
  T* W;            ///< n + sides x k x lanes, the last contiguous: w = sqrt(h) [V; Y']. V is used up from row 0 on
  const T* added;  ///< k x lanes: 1 for columns that are added, which are the first of a lane, otherwise 0
  T* unit;         ///< k x lanes: 1 / h. 1 at first
  const T* scale;  ///< lanes: what the result is multiplied by; 1 where another pass follows
  index_t sides;   ///< right-hand sides that are modified along
  T* z;            ///< n x sides x lanes, the last contiguous; null where there are none
};

/// Row and column `from` of the matrices, of order `order`, become number `to`.
template <class T>
struct GroupShift {
  T* R;  ///< group_words(n)
  index_t n, order, from, to;
  double* work;  ///< words(order)

  static constexpr index_t words(index_t order) { return 3 * order * group_size<T>; }
  /// On exit, of the rotation of rows i and i + 1, between `from` and `to`, a number of each lane.
  double* sine(index_t i) const { return work + (order + 2 * i) * group_size<T>; }
  double* cosine(index_t i) const { return sine(i) + group_size<T>; }
};

/// Rotates z, a right-hand side of the member in `lane`, as its rows have been.
template <class T>
void rotate_side(const GroupShift<T>& shift, index_t lane, double* z) {
  const index_t step = shift.from > shift.to ? -1 : 1;
  double carried = z[shift.from];
  for (index_t i = shift.from; i != shift.to; i += step) {
    const index_t upper = std::min(i, i + step);
    const double sine = shift.sine(upper)[lane], cosine = shift.cosine(upper)[lane], here = z[i + step];
    z[i] = sine * here - cosine * carried;
    carried = cosine * here + sine * carried;
  }
  z[shift.to] = carried;
}

/// What is done with all members of a group at once; compiled for each set of instructions.
template <class T>
struct GroupKernels {
  index_t columns;  ///< that sweep() takes at once at most: 4 or 8
  /// Goes down the rows from `row` on, which is n at the end. Where the bounds above are exceeded in some lanes, it
  /// stops before any of the next rows has changed, with these as bits: the caller takes W of those from `row` on,
  /// makes it zero and `unit` 1, and calls again. A lane with W = 0 and scale 1 stays as it is, bit for bit.
  unsigned (*sweep)(const GroupPass<T>& pass, index_t& row);
  /// b <- R'^-1 b, and b <- R^-1 b, for a right-hand side of each member of a group of order n (n x lanes, the last
  /// contiguous).
  void (*solve_forward)(const T* R, index_t n, double* b);
  void (*solve_back)(const T* R, index_t n, double* b);
  /// Takes column `from` of R to its place, and makes R a triangle again by rotations of neighbouring rows. Row
  /// `from` is carried, as c, to row `to`: where c leaves a row for its neighbour, of which R has r, that row becomes
  /// sine r - cosine c, and c becomes cosine r + sine c. The diagonal stays positive, but for entries that become too
  /// small for T.
  void (*shift)(const GroupShift<T>& shift);
};

template <class T>
const GroupKernels<T>& group_kernels(Instructions instructions);

namespace plain { template <class T> const GroupKernels<T>& group_kernels(); }
namespace avx2 { template <class T> const GroupKernels<T>& group_kernels(); }
namespace avx512 { template <class T> const GroupKernels<T>& group_kernels(); }

}  // namespace gpucholmod::cpu
