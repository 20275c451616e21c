#pragma once

#include <type_traits>

#include "block_columns/advance.h"
#include "block_columns/finish.h"
#include "block_columns/inverses.h"
#include "block_columns/last_groups.h"
#include "block_columns/send.h"
#include "block_columns/solve.h"
#include "cuda/kernels/device_relay.cuh"

namespace gpucholmod::cuda {

/// The segment of a factor of T's that is computed with A's.
template <class T, class A>
using SegmentOf = block_columns::Segment<T, block_columns::Order::forward, A>;
/// True if the card computes with A's for a factor of T's.
template <class T, class A, class Card>
constexpr bool computes_with = std::is_same_v<A, typename Card::template Arithmetic<T>>;

/// The number of warps of a thread block. A team's barrier has the number of the team's place in the thread block.
constexpr int segment_warps = block_columns::UPDATE_WARPS + 1;
constexpr int segment_threads = segment_warps * block_columns::LANES;
static_assert(segment_warps >=
                  block_columns::FINISH_WARPS + 1 + block_columns::SEND_P_WARPS + block_columns::SEND_WARPS &&
              segment_warps > block_columns::ADVANCE_WARPS);

template <class Segment, int K, class Card>
constexpr int tile_words =
    block_columns::Tiles<Segment, Card::template ahead<K>,
                         DeviceWarpOf<typename Segment::Arithmetic>>::template words_on<Card>;

/// Returns how many words of A's take the memory of `count` doubles: for the state of staging rings.
template <class A>
GPUCHOLMOD_HOST_DEVICE constexpr int of_doubles(int count) { return count * int(sizeof(double) / sizeof(A)); }

/// The shared memory of Advance, in words of A's; the state of the staging ring comes first.
template <int K, class Card, class A>
struct AdvanceMemory {
  static constexpr int P_slots = Card::template P_slots<K>, P = of_doubles<A>(40),
                       tiles = P + P_slots * K * block_columns::LDB;
  template <class Segment>
  GPUCHOLMOD_HOST_DEVICE static int words(const Segment& s, const block_columns::Share& share) {
    return tiles + block_columns::ADVANCE_WARPS * tile_words<Segment, K, Card> +
           near_groups(s, share) * block_columns::GroupsOfV<K, A>::words;
  }
};
/// The shared memory of TrailingUpdate and LastGroups, in words of A's; the states of the staging ring and of the relay
/// come first.
template <int K, class Card, class A>
struct WorkerMemory {
  static constexpr int transform_slots = Card::template transform_slots<K>;
  static constexpr int relay = of_doubles<A>(8), transforms = of_doubles<A>(32),
                       tiles = transforms + transform_slots * block_columns::BlockTransform<K>::words;
  /// The number of groups whose V has room in the rest of shared memory.
  template <class Segment>
  static constexpr int groups =
      (Card::shared / int(sizeof(A)) - tiles - block_columns::UPDATE_WARPS * tile_words<Segment, K, Card>) /
      block_columns::GroupsOfV<K, A>::words;
};
template <int K, class Card, class A>
constexpr int fixed_words = [] {
  using namespace block_columns;
  const int mail = Card::clusters ? ClusterMail::words : 0, inverses = InverseMemory<Card::inverted_at_once>::words;
  const int solve = of_doubles<A>(40) + mail + SolveMemory<Card>::words,
            finish = of_doubles<A>(32) + FinishMemory<K, Card>::words;
  const int most = solve > finish ? solve : finish;
  return most > inverses ? most : inverses;
}();
/// True if a pass of K columns, without its V, fits in shared memory.
template <int K, class Card, class A>
constexpr bool fits = fixed_words<K, Card, A> * int(sizeof(A)) <= Card::shared;

}  // namespace gpucholmod::cuda
