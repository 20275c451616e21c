#include <algorithm>
#include <cstring>

#include "mpi/factor.h"

namespace gpucholmod::mpi {
namespace {

/// Returns a hash of the data: FNV-1a by words of eight bytes, each step of which also mixes high bits into low ones.
/// Eight hashes, of every eighth word each, do not wait for each other; they are hashed at the end.
std::uint64_t hash_of(std::string_view data) {
  constexpr std::size_t lanes = 8;
  const auto mix = [](std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  };
  std::uint64_t hashes[lanes], words[lanes];
  std::fill_n(hashes, lanes, 0xcbf29ce484222325u);
  const auto mix_words = [&] {
    for (std::size_t i = 0; i < lanes; ++i) mix(hashes[i], words[i]);
  };
  const std::size_t whole = data.size() / sizeof words * sizeof words;
  for (std::size_t at = 0; at < whole; at += sizeof words) {
    std::memcpy(words, data.data() + at, sizeof words);  // of a known size, so without a call
    mix_words();
  }
  if (whole < data.size()) {
    std::fill_n(words, lanes, 0);
    std::memcpy(words, data.data() + whole, data.size() - whole);
    mix_words();
  }
  std::uint64_t all = 0xcbf29ce484222325u;
  mix(all, data.size());
  for (const std::uint64_t one : hashes) mix(all, one);
  return all;
}

}  // namespace

Bytes agree(Team& team, std::string_view key, const std::string& name, std::optional<std::string_view> given) {
  struct Told {
    std::uint64_t key, data;
    bool given;
  };
  Bytes received;
  team.together(Operation::agree, 0, [&]() -> index_t {
    const Told own{hash_of(key), given ? hash_of(*given) : 0, given.has_value()};
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
    if (!without.empty()) team.broadcast(without, given.value_or(std::string_view()), received);
    return -1;
  });
  return received;
}

}  // namespace gpucholmod::mpi
