#pragma once

#include <algorithm>
#include <vector>

#include "paper/shape.h"

namespace gpucholmod::paper {

/// Describes a rectangle of R, and the side (host or device) that computes it.
struct Step {
  enum class Kind {
    diagonal,  ///< a square block, of which the host computes the rotations of `rows` rows
    panel      ///< a panel on the right, to whose `cols` columns the device applies these rotations
  };
  Kind kind;
  index_t row, rows;
  index_t col, cols;
  bool look_ahead;  ///< True for a panel above the next diagonal block
};

/// Returns the steps of the panel method (Walder 2010) in their order, row block by row block:
///
///      +---+---+-------+-------+      D  diagonal block, panel_rows square
///      | D | 1 |   2   |   3   |      1  the columns of the next diagonal block: first, so that the host can
///      +---+---+-------+-------+         compute D' while the device still works on 2, 3, ...
///          | D'| 1'|   2'  | ..|      2, 3, ...  the rest, at most blocks_per_kernel * threads_per_block wide
///
/// A panel needs its row block's rotations and the V that the row block above left in its columns.
inline std::vector<Step> schedule(index_t n, const Shape& shape) {
  const index_t nb = shape.panel_rows, width = shape.width();
  std::vector<Step> steps;
  for (index_t row = 0; row < n; row += nb) {
    const index_t rows = std::min(nb, n - row);
    steps.push_back({Step::Kind::diagonal, row, rows, row, rows, false});
    const index_t next = std::min(n, row + rows + nb);
    for (index_t col = row + rows, cols; col < n; col += cols) {
      cols = std::min(width, (col < next ? next : n) - col);
      steps.push_back({Step::Kind::panel, row, rows, col, cols, col < next});
    }
  }
  return steps;
}

}  // namespace gpucholmod::paper
