#include <cstring>

#include "mpi/factor.h"

namespace gpucholmod::mpi {
namespace {

/// Returns a hash of the data: FNV-1a by words of eight bytes, each step of which also mixes high bits into low ones.
std::uint64_t hash_of(const Bytes& data) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  };
  mix(data.size());
  for (std::size_t at = 0; at < data.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + at, std::min<std::size_t>(8, data.size() - at));
    mix(word);
  }
  return hash;
}

}  // namespace

void agree(Team& team, const Bytes& key, const std::string& name, bool given, bool compared, Bytes& data) {
  struct Told {
    std::uint64_t key, data;
    bool given;
  };
  team.together(Operation::agree, 0, [&]() -> index_t {
    const Told own{hash_of(key), given && compared ? hash_of(data) : 0, given};
    std::vector<Told> all;
    for (const Bytes& one : team.exchange(&own, sizeof own)) all.push_back(first_of<Told>(one));
    std::vector<int> without;
    for (int p = 0; p < team.size(); ++p) {
      const std::string who = "process " + std::to_string(p);
      if (all[p].key != all[0].key)
        throw Error(ErrorCode::bad_argument,
                    who + " does not call the same function with the same arguments as process 0",
                    {{"argument", "processes"}});
      if (!all[0].given)
        throw Error(ErrorCode::bad_argument, "'" + name + "' is needed in process 0", {{"argument", name}});
      if (!all[p].given) without.push_back(p);
      else if (all[p].data != all[0].data)
        throw Error(ErrorCode::bad_argument, "'" + name + "' of " + who + " is not that of process 0",
                    {{"argument", name}});
    }
    if (!without.empty()) team.broadcast(without, data);
    return -1;
  });
}

}  // namespace gpucholmod::mpi
