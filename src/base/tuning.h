#pragma once

#include "base/matrix_view.h"

namespace gpucholmod {

/// The tunables of the panel method: the paper's three, and the height of a row block.
///
/// Walder (2010) used 28 blocks of 32 threads with 16 elements of V per thread on a GPU of its day. These were
/// measured on an NVIDIA H200, 2026-11-21 (inst/design/measurements.md), and are the defaults of cholupdate_control()
/// too.
struct PanelShape {
  int blocks_per_kernel = 132;   ///< thread blocks of one launch
  int threads_per_block = 64;    ///< a thread owns one column of the panel: a multiple of 32, at most 256
  int elements_per_thread = 16;  ///< columns of V held in registers at a time: 1, 4, 8, 16 or 32
  int panel_rows = 64;           ///< height of a row block, and order of its diagonal block

  /// Columns of one panel.
  index_t width() const { return index_t(blocks_per_kernel) * threads_per_block; }
};

namespace tuning {

constexpr int blocked_strip = 48;    ///< columns of R per strip; a multiple of the row blocks' height, 4 or 8
constexpr int blocked_prefetch = 4;  ///< row blocks that a lower R is fetched ahead by
constexpr double blocked_share = 2e6;  ///< n^2 (k + 8) that is worth a thread of its own
constexpr int panel_tile = 16;     ///< rows of a panel staged in shared memory at a time
constexpr int panel_slots = 3;     ///< panels in flight: one going up, one computed, one coming down
constexpr double stream_panel = 32e6;  ///< bytes of a panel of the stream method
constexpr int stream_slots = 4;        ///< its panels on the device at once
constexpr double stream_chunk = 2e6;   ///< bytes that travel at once
constexpr int stream_buffers = 16;     ///< page-locked buffers for that, in each direction
constexpr int most_threads = 16;       ///< of the CPU, where the caller does not say how many
constexpr std::size_t stream_kept = std::size_t(256) << 20;  ///< bytes of device memory kept for the next call
constexpr int max_threads_per_block = 256;
constexpr int max_elements_per_thread = 32;

/// What a whole call takes, in seconds: for "auto". Measured on one host with an NVIDIA H200 and 16 cores of an Intel Xeon,
/// what depends on the instructions and on BLAS also on a machine with two Zen 5 cores, 2026-11-21
/// (inst/design/measurements.md); halved for single precision where it goes by elements.
struct Costs {
  static constexpr double cpu_call = 2e-4;
  static constexpr double cpu_element = 4e-10, cpu_thread_element = 1.4e-9;  ///< of n^2; and divided by the threads
  static constexpr double cpu_column[] = {1.1e-10, 3.7e-11, 2.7e-11};  ///< of n^2 k, a thread: plain, avx2, avx512
  static constexpr double refactor_element = 2e-9;                     ///< of n^2
  static constexpr double refactor_flops = 2e-11;                      ///< of 2n^3/3 + n^2 k, a thread; optimised BLAS
  static constexpr double gpu_call = 2e-3;                             ///< launches, threads, buffers
  static constexpr double gpu_row = 1e-7, gpu_column = 5e-9;           ///< of n for each 64 columns of V, and of n k
  static constexpr double gpu_element = 3e-10, staging = 2.2e-9;       ///< of n^2; and divided by the threads but one
  static constexpr double gpu_start = 0.36;                            ///< of CUDA, once
};

}  // namespace tuning
}  // namespace gpucholmod
