#ifndef GPUCHOLMOD_CORE_TUNING_H
#define GPUCHOLMOD_CORE_TUNING_H

#include "core/matrix_view.h"

namespace gpucholmod {

/// The tunables of the panel method: the paper's three, and the height of a row block.
///
/// Walder (2010) used 28 blocks of 32 threads with 16 elements of V per thread on a GPU of its day. These were measured on
/// an NVIDIA H200, 2026-11-21 (inst/design/measurements.md), and are the defaults of cholupdate_control() too.
struct PanelShape {
  int blocks_per_kernel = 132;   ///< thread blocks of one launch
  int threads_per_block = 64;    ///< a thread owns one column of the panel: a multiple of 32, at most 256
  int elements_per_thread = 16;  ///< columns of V held in registers at a time: 1, 4, 8, 16 or 32
  int panel_rows = 64;           ///< height of a row block, and order of its diagonal block

  /// Columns of one panel.
  index_t width() const { return index_t(blocks_per_kernel) * threads_per_block; }
};

namespace tuning {

constexpr int blocked_rows = 8;    ///< rows of R per Householder block
constexpr int blocked_strip = 32;  ///< columns of R per strip; a multiple of blocked_rows
constexpr int panel_tile = 16;     ///< rows of a panel staged in shared memory at a time
constexpr int panel_slots = 3;     ///< panels in flight: one going up, one computed, one coming down
constexpr int max_threads_per_block = 256;
constexpr int max_elements_per_thread = 32;

}  // namespace tuning
}  // namespace gpucholmod

#endif
