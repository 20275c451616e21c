#pragma once

#include "block_columns/sizes.h"

namespace gpucholmod::block_columns {

/// The factor before and after the modification. Both are zero below the diagonal in diagonal blocks of order NB.
///
/// Parts of the factor may be stored apart, with the same leading dimension: right-hand sides, and parts of a factor in
/// the caller's memory, which holds anything below the diagonal, and ends with the last column.
template <class T>
struct SegmentFactor {
  static constexpr int none = 0x7fffffff;
  const T* R;
  T* out;  ///< result, which may be R; null: nothing is written
  index_t ld;

  /// The columns of the last groups, from number `first_of_last` on, before and after. Each column is as far behind the
  /// pointer as it would be in the factor.
  const T* last_columns = nullptr;
  T* last_columns_out = nullptr;
  int first_of_last = none;
  /// The diagonal blocks: b in rows b NB .. b NB + NB - 1 of NB columns; blocks from number `first_beside` on, for
  /// which these columns have no rows, in NB further columns, from the first row on. Null: all are in the factor.
  T* diagonal = nullptr;
  int first_beside = none;

  /// Returns the address of row block b of a group of columns before the modification, and after() that after it.
  GPUCHOLMOD_HOST_DEVICE const T* before(int b, int group) const { return at(R, last_columns, b, group); }
  GPUCHOLMOD_HOST_DEVICE T* after(int b, int group) const { return at(out, last_columns_out, b, group); }
  /// Returns the address of row block b of column c before the modification, and column_after() that after it.
  GPUCHOLMOD_HOST_DEVICE const T* column_before(int b, index_t c) const {
    return before(b, int(c / GROUP)) + c % GROUP * ld;
  }
  GPUCHOLMOD_HOST_DEVICE T* column_after(int b, index_t c) const {
    return after(b, int(c / GROUP)) + c % GROUP * ld;
  }

 private:
  /// Returns the address without branches, as a warp that has a tile to itself waits for every instruction.
  template <class P>
  GPUCHOLMOD_HOST_DEVICE P* at(P* factor, P* columns, int b, int group) const {
    const int own = group - b * GROUPS;
    const bool on_diagonal = unsigned(own) < unsigned(GROUPS) && diagonal, beside = on_diagonal && b >= first_beside;
    P* const from = on_diagonal ? diagonal : group < first_of_last ? factor : columns;
    const int column = (on_diagonal ? own : group) + (beside ? GROUPS : 0), row = beside ? b - first_beside : b;
    return from + index_t(column) * GROUP * ld + index_t(row) * NB;
  }
};

}  // namespace gpucholmod::block_columns
