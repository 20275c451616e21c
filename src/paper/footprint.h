#pragma once

#include <algorithm>

#include "cpu/rotation.h"
#include "paper/shape.h"

namespace gpucholmod::paper {

/// What the method keeps on the device: V, the panels in flight, and the rotations of two row blocks. O(n).
template <class T>
struct Footprint {
  index_t V;          ///< words
  index_t slot;       ///< words of one panel; there are panel_slots
  index_t rotations;  ///< Rotation<T> of one row block; there are two

  Footprint(index_t n, index_t k, const Shape& shape)
      : V(n * k), slot(shape.panel_rows * std::min(shape.width(), n)), rotations(shape.panel_rows * k) {}
  double bytes() const {
    return double(sizeof(T)) * (V + panel_slots * slot) + double(sizeof(Rotation<T>)) * 2 * rotations;
  }
  /// Throws out_of_memory where it takes more than `limit` bytes.
  void require_within(double limit) const {
    if (bytes() > limit)
      throw out_of_memory("the panel method needs more device memory than 'device_memory' allows", bytes(), limit);
  }
};

}  // namespace gpucholmod::paper
