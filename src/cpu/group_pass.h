#pragma once

#include <algorithm>

#include "base/types.h"

/// Groups of small factors of one order, side by side: as many factors as a cache line has numbers; see
/// inst/design/batches.md.
namespace gpucholmod::cpu {

/// The number of members of a group: 8 of doubles, 16 of floats, whatever the instructions.
template <class T>
constexpr index_t group_size = 64 / sizeof(T);

/// Returns the size of a group's triangles, in numbers: triangles are stored by rows, `group_size` numbers an entry.
template <class T>
constexpr index_t group_words(index_t n) {
  return n * (n + 1) / 2 * group_size<T>;
}
/// Returns the offset of the members' entries (i, j), j >= i, in a group.
template <class T>
constexpr index_t group_entry(index_t n, index_t i, index_t j) {
  return (i * n - i * (i - 1) / 2 + j - i) * group_size<T>;
}

/// Describes a pass of 1, 2, 4 or 8 columns of V of every member over a group. A lane is a member of the group.
template <class T>
struct GroupPass {
  static constexpr int rows = 4;  ///< number of rows that are modified at once
  static constexpr index_t discarded = 2 * rows;
  static constexpr T most = sizeof(T) == 8 ? T(0x1p200) : T(0x1p40);  ///< bound of h, and of the growth of a row
  static constexpr T least_left = T(0.125);                           ///< least share of h after `rows` rows

  index_t n;
  int k;
  const T* R;      ///< triangles, group_words(n)
  T* out;          ///< new triangles, group_words(n), R itself or other memory; if `discard`, `discarded` entries
  bool discard;
  bool adds, removes;  ///< true if some column of some lane is added; true if one is taken away
  T* W;            ///< n + sides x k x lanes, the last contiguous: w = sqrt(h) [V; Y']. V is used up from row 0 on
  const T* added;  ///< k x lanes: 1 for columns that are added, which are the first of a lane, otherwise 0
  T* unit;         ///< k x lanes: 1 / h, 1 at first
  const T* scale;  ///< lanes: the factor of the result; 1 if another pass follows
  index_t sides;   ///< number of right-hand sides that are modified with the group
  T* z;            ///< right-hand sides, n x sides x lanes, the last contiguous; null if there are none
};

/// Describes a move of row and column `from` of the matrices, of order `order`, to number `to`.
template <class T>
struct GroupShift {
  T* R;  ///< triangles, group_words(n)
  index_t n, order, from, to;
  double* work;  ///< work memory, words(order)

  static constexpr index_t words(index_t order) { return 3 * order * group_size<T>; }
  /// Returns the sines, and cosine() the cosines, of the rotation of rows i and i + 1, between `from` and `to`: a
  /// number of each lane, valid after the shift.
  double* sine(index_t i) const { return work + (order + 2 * i) * group_size<T>; }
  double* cosine(index_t i) const { return sine(i) + group_size<T>; }
};

/// Rotates z, a right-hand side of the member in `lane`, as `shift` has rotated the member's rows.
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

/// A table of the functions that work on all members of a group at once, compiled for each set of instructions.
template <class T>
struct GroupKernels {
  index_t columns;  ///< most columns that sweep() takes at once: 4 or 8
  /// Modifies the rows from `row` on and advances `row`, to n at the end. If some lanes exceed the bounds of GroupPass,
  /// stops before any of the next rows has changed and returns the bits of these lanes: the caller takes the lanes' W
  /// from `row` on, makes W zero and `unit` 1, and calls again. A lane with W = 0 and scale 1 stays as it is, bit for
  /// bit. Returns 0 at the end.
  unsigned (*sweep)(const GroupPass<T>& pass, index_t& row);
  /// Computes b <- R'^-1 b, and solve_back() b <- R^-1 b, for a right-hand side of each member of a group of order n
  /// (n x lanes, the last contiguous).
  void (*solve_forward)(const T* R, index_t n, double* b);
  void (*solve_back)(const T* R, index_t n, double* b);
  /// Moves column `from` of R to place `to`, and makes R a triangle again by rotations of neighbouring rows. Row `from`
  /// is carried to row `to` as c. When c leaves a row for the neighbouring row r of R, the row that c leaves becomes
  /// sine r - cosine c, and c becomes cosine r + sine c. The diagonal stays positive, except for entries that become
  /// too small for T.
  void (*shift)(const GroupShift<T>& shift);
};

template <class T>
const GroupKernels<T>& group_kernels(Instructions instructions);

namespace plain { template <class T> const GroupKernels<T>& group_kernels(); }
namespace avx2 { template <class T> const GroupKernels<T>& group_kernels(); }
namespace avx512 { template <class T> const GroupKernels<T>& group_kernels(); }

}  // namespace gpucholmod::cpu
