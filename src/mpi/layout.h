#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"

namespace gpucholmod::mpi {

/// The number of columns of a block in ordinary memory. With more columns, the message of a block step is longer, and
/// messages are fewer (inst/design/processes.md). A multiple of 8, the most rows of a row block of the kernels.
constexpr index_t block_width = 64;

/// Returns the number of columns of a panel, a block on a GPU: a multiple of 128, the columns of a strip. Narrower
/// panels take more launches, wider panels leave other GPUs without work. Measured: log/figures-of-the-notes.md.
constexpr index_t panel_width(index_t n) { return std::clamp<index_t>((n / 16 + 127) / 128 * 128, 512, 2048); }

/// Describes which process has which columns of an upper factor of order n: blocks of neighbouring columns are dealt
/// out to `size` processes in turn.
///
///     0   1   2   0   1   2   0      3 processes
///   +---+---+---+---+---+---+--+
///   | b |
///   +---+
struct Layout {
  index_t n = 0;
  int size = 1;
  index_t width = block_width;

  index_t blocks() const { return (n + width - 1) / width; }
  index_t first(index_t b) const { return b * width; }
  index_t last(index_t b) const { return std::min(n, (b + 1) * width); }
  index_t columns(index_t b) const { return last(b) - first(b); }
  index_t block_of(index_t j) const { return j / width; }
  int owner(index_t b) const { return int(b % size); }
  int owner_of_column(index_t j) const { return owner(block_of(j)); }
  /// Returns the number of a process's first block from block b on, which may be behind the last block.
  index_t next_of(int process, index_t b) const { return b + (process - owner(b) + size) % size; }
  /// Returns whether a process has a block behind block b.
  bool has_behind(int process, index_t b) const { return next_of(process, b + 1) < blocks(); }
  /// Returns the processes other than `but` that have a block behind block b.
  std::vector<int> behind(index_t b, int but) const {
    std::vector<int> all;
    for (int p = 0; p < size; ++p)
      if (p != but && has_behind(p, b)) all.push_back(p);
    return all;
  }
};

}  // namespace gpucholmod::mpi
