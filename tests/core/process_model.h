#pragma once

#include <algorithm>
#include <vector>

#include "mpi/columns.h"

/// A model of the time that mpi::SharedSweep and mpi::PanelSweep take, from the times of their pieces:
/// inst/design/processes.md.
namespace gpucholmod::test {

struct Network {
  double latency;         ///< seconds from one process to another
  double bytes_a_second;  ///< bytes that one process sends in a second
};

struct Pieces {
  double tile;      ///< seconds for applying a block step to a block of columns
  double diagonal;  ///< seconds for computing a block step and applying it to its own block
  double bytes;     ///< bytes of a message
};

/// Returns the seconds of the slowest process. Each process modifies its blocks from left to right, and each block from
/// the top, and waits for each block step until its message has arrived.
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
    for (int d = 1; d < processes; ++d) {  // the process that needs the message first gets it first
      sent += pieces.bytes / network.bytes_a_second;
      come[(own + d) % processes][b] = sent + network.latency;
    }
  }
  return *std::max_element(free.begin(), free.end());
}

/// The pieces of a modification on GPUs, in seconds, for k = 16 in double precision.
struct PanelPieces {
  double begin;           ///< seconds for the work before all panels
  double row;             ///< seconds for each row of the process's own V
  double panel;           ///< seconds for modifying a panel of hardly any columns
  double column;          ///< seconds for each column of that panel
  double launch;          ///< seconds for following a panel in any number of columns
  double bytes_a_second;  ///< bytes of R, read or written, in a second
  double host;            ///< seconds for a byte of a message to or from the host
  double message;         ///< bytes of a message for each row of its panel
};

/// Returns the seconds of the slowest process, as above, with a GPU for each process.
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
  // The owner modifies panel b and sends its message to all processes with panels behind b; come[to]: its arrival.
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
