#pragma once

#include <algorithm>
#include <vector>

#include "mpi/columns.h"

/// What mpi::SharedSweep takes, from what its pieces take: inst/design/processes.md.
namespace gpucholmod::test {

struct Network {
  double latency;         ///< seconds from a process to another
  double bytes_a_second;  ///< of what one process sends
};

struct Pieces {
  double tile;      ///< seconds for a block step on a block of columns
  double diagonal;  ///< for finding one, and applying it to its own block
  double bytes;     ///< of a message
};

/// Seconds of the slowest process: each takes its blocks from left to right, and each block from the top, as far as what it needs has come.
inline double predicted(index_t n, int processes, const Pieces& pieces, const Network& network) {
  const mpi::Layout layout{n, processes};
  const index_t blocks = layout.blocks();
  std::vector<double> free(processes, 0);
  std::vector<std::vector<double>> come(processes, std::vector<double>(blocks));
  for (index_t b = 0; b < blocks; ++b) {
    const int own = layout.owner(b);
    double now = free[own];
    for (index_t t = 0; t < b; ++t) now = std::max(now, come[own][t]) + pieces.tile;
    now += pieces.diagonal;
    free[own] = come[own][b] = now;
    double sent = now;
    for (int d = 1; d < processes; ++d) {  // who needs it first gets it first
      sent += pieces.bytes / network.bytes_a_second;
      come[(own + d) % processes][b] = sent + network.latency;
    }
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace gpucholmod::test
