#pragma once

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/types.h"
#include "cpu/rotation.h"

namespace gpucholmod::paper {

constexpr int TILE = 16;   ///< rows of a panel staged in shared memory at a time
constexpr int panel_slots = 3;  ///< panels in flight: one sent, one computed, one fetched
constexpr int max_threads_per_block = 256;
constexpr int max_elements_per_thread = 32;

/// The tunables of the method: the paper's three, and the height of a row block.
///
/// Walder (2010) used 28 blocks of 32 threads with 16 elements of V per thread on a GPU of its day. The values below
/// were measured on an NVIDIA H200, 2026-11-21 (log/measurements.md), and are the defaults of cholupdate_control() too.
struct Shape {
  int blocks_per_kernel = 132;   ///< thread blocks of one launch
  int threads_per_block = 64;    ///< threads of a block, one column of the panel each: a multiple of 32, at most 256
  int elements_per_thread = 16;  ///< columns of V held in registers at a time: 1, 4, 8, 16 or 32
  int panel_rows = 64;           ///< height of a row block, and order of its diagonal block

  /// Returns the columns of one panel.
  index_t width() const { return index_t(blocks_per_kernel) * threads_per_block; }
};

/// Throws bad_argument unless the method can run with this shape.
inline void require_possible(const Shape& shape) {
  const auto refuse = [](const char* argument, const char* rule, double value) {
    throw Error(ErrorCode::bad_argument, std::string("'") + argument + "' must be " + rule,
                {{"argument", argument}, {"value", value}});
  };
  if (shape.blocks_per_kernel < 1) refuse("blocks_per_kernel", "at least 1", shape.blocks_per_kernel);
  if (shape.threads_per_block < 32 || shape.threads_per_block > max_threads_per_block ||
      shape.threads_per_block % 32 != 0)
    refuse("threads_per_block", "a multiple of 32, at most 256", shape.threads_per_block);
  const int e = shape.elements_per_thread;
  if (e != 1 && e != 4 && e != 8 && e != 16 && e != 32) refuse("elements_per_thread", "1, 4, 8, 16 or 32", e);
  if (shape.panel_rows < 1) refuse("panel_rows", "at least 1", shape.panel_rows);
}

/// The memory that the method keeps on the device: V, the panels in flight, and the rotations of two row blocks. O(n).
template <class T>
struct Footprint {
  index_t V;          ///< words of V
  index_t slot;       ///< words of one panel; there are panel_slots panels
  index_t rotations;  ///< Rotation<T> of one row block; there are two such sets

  Footprint(index_t n, index_t k, const Shape& shape)
      : V(n * k), slot(shape.panel_rows * std::min(shape.width(), n)), rotations(shape.panel_rows * k) {}
  double bytes() const {
    return double(sizeof(T)) * (V + panel_slots * slot) + double(sizeof(Rotation<T>)) * 2 * rotations;
  }
  /// Throws out_of_memory if the footprint is more than `limit` bytes.
  void require_within(double limit) const {
    if (bytes() > limit)
      throw out_of_memory("the panel method needs more device memory than 'device_memory' allows", bytes(), limit);
  }
};

}  // namespace gpucholmod::paper
