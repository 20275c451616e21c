#pragma once

#include <algorithm>

#include "block_columns/pass.h"

namespace gpucholmod::cuda {

/// Describes how a factor that stays on a GPU is stored: column-major, column j at data + j * ld, R upper.
///
/// The order is rounded up to a whole number of strips; behind row and column n the factor is continued by the identity
/// (ones on the diagonal, zeros above it), so that no kernel has to look for an edge. The strict lower triangle is zero
/// within diagonal blocks of order NB; elsewhere it is never read and holds anything. There is room for more strips,
/// which hold anything but for the same zeros in their diagonal blocks.
struct Layout {
  index_t n, padded, room, ld;
  int strip = 0;  ///< the factor's strip that the layout begins with

  explicit Layout(index_t order, index_t capacity = 0)
      : n(order), padded(rounded(order)), room(std::max(padded, rounded(capacity))), ld(room + block_columns::margin) {}
  /// Returns the layout of a factor in the caller's memory. The parts that are not stored there as Layout wants lie
  /// apart (PartsApart): the whole factor, if it has less than a strip.
  static Layout of_callers(index_t order, index_t ld) {
    Layout made(order);
    if (order >= block_columns::STRIP) made.ld = ld;
    return made;
  }
  index_t words() const { return ld * room; }
  int strips() const { return int(padded / block_columns::STRIP); }
  /// Returns the row of the factor that the layout begins with.
  index_t first_row() const { return index_t(strip) * block_columns::STRIP; }

  /// Returns the layout of the first `order` rows and columns.
  Layout leading(index_t order) const { return with(order, rounded(order), room); }
  /// Returns the layout of the factor's part behind the first `rows` rows, a whole number of strips.
  Layout behind(index_t rows) const {
    Layout made = with(n - rows, padded - rows, room - rows);
    made.strip += int(rows / block_columns::STRIP);
    return made;
  }

 private:
  static index_t rounded(index_t order) { return index_t(block_columns::strips_of(order)) * block_columns::STRIP; }
  Layout with(index_t order, index_t height, index_t space) const {
    Layout made = *this;
    made.n = order;
    made.padded = height;
    made.room = space;
    return made;
  }
};

}  // namespace gpucholmod::cuda
