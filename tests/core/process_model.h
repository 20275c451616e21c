#pragma once

#include <algorithm>
#include <vector>

#include "mpi/columns.h"

/// What mpi::SharedSweep and mpi::PanelSweep take, from what their pieces take: inst/design/processes.md.
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

/// Seconds of the slowest process: each takes its blocks from left to right, and each block from the top, as far as
/// what it needs has come.
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

/// On GPUs, seconds for k = 16 in double precision.
struct PanelPieces {
  double begin;           ///< for what comes before all panels
  double row;             ///< for a row of the process's own V
  double panel;           ///< for modifying one of hardly any columns
  double column;          ///< for every column that it has
  double launch;          ///< for following in anything
  double bytes_a_second;  ///< of R, read or written
  double host;            ///< for a byte of a message to or from the host
  double message;         ///< bytes for each row of it
};

/// As predicted(), on a GPU for each process.
inline double predicted(const mpi::Layout& layout, const PanelPieces& pieces, const Network& network) {
  const index_t blocks = layout.blocks();
  std::vector<double> free(layout.size, 0);
  std::vector<double> come(layout.size);
  const auto columns = [&](int process, index_t from) {
    index_t all = 0;
    for (index_t b = layout.next_of(process, from); b < blocks; b += layout.size) all += layout.columns(b);
    return all;
  };
  const auto follow = [&](index_t b, index_t count) {
    return count > 0 ? pieces.launch + 16.0 * double(layout.columns(b)) * double(count) / pieces.bytes_a_second : 0;
  };
  for (int p = 0; p < layout.size; ++p) free[p] = pieces.begin + pieces.row * double(columns(p, 0));
  // Panel b, by its owner, to all who have something behind it: when it comes to them.
  const auto modify = [&](index_t b) {
    const int own = layout.owner(b);
    const double bytes = pieces.message * double(layout.columns(b));
    double& now = free[own];
    now += pieces.panel + pieces.column * double(layout.columns(b));
    if (layout.behind(b, own).empty()) return;
    now += bytes * pieces.host;
    double sent = now;
    for (int d = 1; d < layout.size; ++d) {
      const int to = (own + d) % layout.size;
      if (!layout.has_behind(to, b)) continue;
      sent += bytes / network.bytes_a_second;
      come[to] = sent + network.latency + bytes * pieces.host;
    }
  };
  if (blocks > 0) modify(0);
  for (index_t b = 0; b < blocks; ++b) {
    for (int p = 0; p < layout.size; ++p)
      if (p != layout.owner(b) && layout.has_behind(p, b)) free[p] = std::max(free[p], come[p]);
    const int next = b + 1 < blocks ? layout.owner(b + 1) : -1;
    if (layout.size == 1) free[0] += follow(b, columns(0, b + 1));
    if (next >= 0) {
      if (layout.size > 1) free[next] += follow(b, layout.columns(b + 1));
      modify(b + 1);
    }
    for (int p = 0; layout.size > 1 && p < layout.size; ++p)
      free[p] += follow(b, columns(p, p == next ? b + 2 : b + 1));
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace gpucholmod::test
