#include <algorithm>

#include "mpi/team.h"

/// The collective functions of a Team, which every process calls within an operation.
namespace gpucholmod::mpi {
namespace {

constexpr std::size_t piece = 64 << 20;  ///< most bytes of one message of broadcast()

}  // namespace

std::vector<Bytes> Team::exchange(const void* data, std::size_t bytes) {
  const index_t index = next_index();
  send(others(), index, data, bytes);
  std::vector<Bytes> all(size());
  for (int p = 0; p < size(); ++p)
    if (p != rank()) all[p] = take(p, index);
    else append(all[p], data, bytes);
  return all;
}

double Team::largest(double x) {
  for (const Bytes& other : exchange(&x, sizeof x)) x = std::max(x, first_of<double>(other));
  return x;
}

void Team::any_of(std::vector<char>& flags) {
  for (const Bytes& one : exchange(flags.data(), flags.size()))
    for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = flags[i] || one[i];
}

void Team::broadcast(const std::vector<int>& to, std::string_view data, Bytes& received) {
  index_t index = next_index();
  if (rank() != 0 && std::find(to.begin(), to.end(), rank()) == to.end()) return;
  std::size_t count = data.size();
  if (rank() == 0) send(to, index, &count, sizeof count);
  else received.resize(count = first_of<std::size_t>(take(0, index)));
  for (std::size_t at = 0; at < count; at += piece) {
    const std::size_t part = std::min(piece, count - at);
    --index;
    if (rank() == 0) {
      send(to, index, data.data() + at, part);
      look();
    } else {
      const Bytes got = take(0, index);
      std::copy(got.begin(), got.end(), received.begin() + index_t(at));
    }
  }
}

}  // namespace gpucholmod::mpi
