#pragma once

#include "block_columns/sizes.h"

namespace gpucholmod::block_columns {

/// The factor before and after. Both are zero below the diagonal in diagonal blocks of order NB.
///
/// Parts of it may lie apart, with a leading dimension of their own, as those of a factor in the caller's memory do,
/// which holds anything below the diagonal, and ends with the last column. Of groups from some number on, each lies
/// where it would behind the pointer; where there are none, that number is beyond all groups.
template <class T>
struct SegmentFactor {
  static constexpr int none = 0x7fffffff;
  const T* R;
  T* out;  ///< may be R; null: nothing is written
  index_t ld;

  index_t ld_apart = 0;
  /// Right-hand sides, in place.
  T* sides = nullptr;
  int first_side = none;
  /// The last strip, before and after.
  const T* last_strip = nullptr;
  T* last_strip_out = nullptr;
  int first_of_last = none;
  /// The diagonal blocks, in place: b in rows b NB .. b NB + NB - 1 of NB columns. Null: they lie in the factor.
  T* diagonal = nullptr;

  /// Returns whether row block b of column c lies apart; and where it does.
  GPUCHOLMOD_HOST_DEVICE bool is_apart(int b, index_t c) const {
    return c >= index_t(first_of_last) * GROUP || c >= index_t(first_side) * GROUP || is_diagonal(b, c);
  }
  GPUCHOLMOD_HOST_DEVICE index_t ld_of(int b, index_t c) const { return is_apart(b, c) ? ld_apart : ld; }
  GPUCHOLMOD_HOST_DEVICE const T* before(int b, index_t c) const {
    if (is_diagonal(b, c)) return block_on_diagonal(b) + c % NB * ld_apart;
    const T* const factor = c >= index_t(first_of_last) * GROUP ? last_strip : R;
    const T* const columns = c >= index_t(first_side) * GROUP ? sides : factor;
    return columns + c * ld_of(b, c) + index_t(b) * NB;
  }
  GPUCHOLMOD_HOST_DEVICE T* after(int b, index_t c) const {
    if (is_diagonal(b, c)) return block_on_diagonal(b) + c % NB * ld_apart;
    T* const factor = c >= index_t(first_of_last) * GROUP ? last_strip_out : out;
    T* const columns = c >= index_t(first_side) * GROUP ? sides : factor;
    return columns + c * ld_of(b, c) + index_t(b) * NB;
  }

 private:
  GPUCHOLMOD_HOST_DEVICE bool is_diagonal(int b, index_t c) const { return diagonal && c / NB == b; }
  GPUCHOLMOD_HOST_DEVICE T* block_on_diagonal(int b) const { return diagonal + index_t(b) * NB; }
};

}  // namespace gpucholmod::block_columns
