#include <algorithm>
#include <cstring>
#include <vector>

#include "base/threads.h"
#include "mpi/factor.h"

namespace gpucholmod::mpi {
namespace {

/// The bytes that are hashed by themselves, and the bytes that take as long to hash as getting one more thread's help.
constexpr std::size_t piece = 65536;
constexpr double bytes_of_help = 3.2e5;

/// Returns a hash of the data. The hashes of every sixteenth word of eight bytes do not wait for each other, and are
/// found by shifts and additions alone, which compilers do for several words at once. High bits are mixed into low ones
/// before each addition, as numbers that are whole, or nearly, have nothing but high bits. The hashes are then mixed as
/// in SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t hash_of(std::string_view data) {
  constexpr std::size_t lanes = 16;
  std::uint64_t hashes[lanes], words[lanes], all = 0x9e3779b97f4a7c15u;
  std::fill_n(hashes, lanes, all);
  const auto mix_words = [&] {
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint64_t& hash = hashes[i];
      hash ^= words[i];
      hash ^= hash >> 29;
      hash += (hash << 9) + (hash << 40);
      hash ^= hash >> 32;
    }
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
  const auto add = [&](std::uint64_t word) {
    all ^= word;
    all = (all ^ all >> 30) * 0xbf58476d1ce4e5b9u;
    all = (all ^ all >> 27) * 0x94d049bb133111ebu;
    all ^= all >> 31;
  };
  add(data.size());
  for (const std::uint64_t one : hashes) add(one);
  return all;
}

/// Returns a hash of the data, found by up to `threads` threads. It does not depend on their number.
std::uint64_t hash_of(std::string_view data, int threads) {
  std::vector<std::uint64_t> hashes((data.size() + piece - 1) / piece);
  const double pay = threads_that_pay(double(data.size()) / bytes_of_help);
  for_columns(index_t(hashes.size()), int(std::min<double>(threads, pay)), [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i) hashes[i] = hash_of(data.substr(std::size_t(i) * piece, piece));
  }, [] {}, 1);
  return hash_of({reinterpret_cast<const char*>(hashes.data()), sizeof(std::uint64_t) * hashes.size()});
}

}  // namespace

Bytes agree(Team& team, std::string_view key, const std::string& name, std::optional<std::string_view> given) {
  struct Told {
    std::uint64_t key, data;
    bool given;
  };
  Bytes received;
  team.together(Operation::agree, 0, [&]() -> index_t {
    const int threads = threads_for(team.threads());
    const Told own{hash_of(key), given ? hash_of(*given, threads) : 0, given.has_value()};
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
