#pragma once

#include <algorithm>
#include <climits>

#include "cuda/crew.h"
#include "cuda/segment_launch.cuh"

/// How many blocks of threads each role of a segment gets, and whether there is room for a pass (inst/design/segments.md). On the current device.
namespace gpucholmod::cuda {

/// A row block takes one of them 5 us, with 32 columns 11, and the chain 1; twice as many where nobody else has use for a block.
constexpr int finishers = 8;

/// Row blocks near the diagonal whose columns are advanced ahead of being rewritten; measured: inst/design/segments.md.
constexpr int window = 16;
static_assert(window > block_columns::REACH);

/// Blocks of threads that relay messages, on each owner but the first: a message takes one of them some 5 us.
constexpr int relays = 4;
static_assert(relays <= finishers);  // where the first owner has room for these, the others have for those

/// What a launch does of a segment; `again`: what it has done, to a panel to its right.
enum class Part { all, chain, rest, again };

/// Shares the blocks of threads of a launch, `most` of which run at once, out between the roles. False where V does not find room in
/// shared memory.
template <class Card, int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, int most) {
  using namespace block_columns;
  if constexpr (!computes_with<T, A, Card> || !fits<K, Card, A>) return false;
  const int groups = s.blocks * GROUPS;
  const bool with_chain = part == Part::all || part == Part::chain;
  s.solvers = !with_chain ? 0 : K / CHAIN_COLUMNS * Card::cluster;
  s.window = part == Part::all ? window : s.blocks - s.top;
  const int first = s.top < 0 ? 0 : 1 + REACH;  // block column that is advanced
  const int ahead = std::max(0, std::min(s.blocks, 1 + s.window) - first) * GROUPS;  // groups to be advanced at a time
  s.advancers = !with_chain ? 0 : std::min(in_clusters<Card>((ahead + ADVANCE_WARPS - 1) / ADVANCE_WARPS), most - s.solvers);
  if (part == Part::chain) s.advancers = std::max(s.advancers, in_clusters<Card>(4));  // somebody has to invert
  s.finishers = part == Part::chain || part == Part::again ? 0 : finishers;
  const int left = most - s.solvers - s.advancers - s.finishers;
  int here = part == Part::chain ? 0 : std::min(left, in_clusters<Card>(groups));
  if (s.several()) here = std::min(here / WORKERS_OF_STRIP, (s.blocks / BLOCKS + s.owners - 1) / s.owners) * WORKERS_OF_STRIP;
  s.workers = s.several() ? here * s.owners : here;
  if (K > 16 && s.finishers > 0 && left - here >= finishers) s.finishers += finishers;
  if ((part == Part::all && ahead > 0 && s.advancers <= 0) || (part != Part::chain && s.workers <= 0)) return false;
  if (s.solvers + s.advancers + s.finishers + here > most) return false;
  int words = fixed_words<K, Card, A>;
  if (s.advancers > 0) words = std::max(words, AdvanceMemory<K, Card, A>::words(s, Share{0, s.advancers, groups}));
  if (s.workers > 0) words = std::max(words, WorkerMemory<K, Card, A>::template words<SegmentOf<T, A>>(Share{0, s.workers, groups}));
  return words * int(sizeof(A)) <= Card::shared;
}

/// The same for the current device, or for one of so many parts of it, and whether it has kernels.
template <int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, int parts = 1) {
  return SegmentLaunch<modify_segment<T, K, A>>::if_it_runs([&](auto card, int most) {
    using Card = typename decltype(card)::template With<A>;
    const int unit = in_clusters<Card>(1);
    return assign_roles<Card, K, T, A>(s, part, most / parts / unit * unit);
  });
}

/// The same for the first of several owners, the current one, where all have room for as many.
template <int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, const Crew& crew) {
  using Launch = SegmentLaunch<modify_segment<T, K, A>>;
  s.owners = crew.owners();
  int least = INT_MAX;
  for (int i = 0; i < crew.owners(); ++i) {
    const CurrentDevice current(crew.device(i));
    if (!Launch::if_it_runs([&](auto, int most) { return least = std::min(least, most); })) return false;
  }
  return Launch::if_it_runs([&](auto card, int) {
    using Card = typename decltype(card)::template With<A>;
    const int unit = in_clusters<Card>(1);
    return assign_roles<Card, K, T, A>(s, part, least / crew.side_by_side() / unit * unit);
  });
}

/// f(A()), A being what segments of a factor of T's are computed with on the current device.
template <class T, class F>
auto with_arithmetic(F&& f) {
  if constexpr (std::is_same_v<T, double> || !has_single) {
    return f(double());
  } else {
    return SegmentLaunch<modify_segment<T, block_columns::CHAIN_COLUMNS, double>>::with_its_card(
        [&](auto card) { return f(typename decltype(card)::template Arithmetic<T>()); });
  }
}

/// Whether V of a whole factor, or of a panel, finds room in shared memory, of which the current device has so many parts, and there are kernels.
template <class T>
bool has_room(int columns, int blocks, bool whole, int parts) {
  return with_arithmetic<T>([&](auto arithmetic) {
    using A = decltype(arithmetic);
    return block_columns::with_width(columns, [&](auto width) {
      constexpr int K = decltype(width)::value;
      SegmentOf<T, A> s{};
      s.blocks = s.end = blocks;
      s.top = whole ? 0 : -1;
      return (!whole || assign_roles<K, T, A>(s, Part::all, parts)) && assign_roles<K, T, A>(s, Part::chain) &&
             assign_roles<K, T, A>(s, Part::rest, parts);
    });
  });
}

/// Whether several owners have room for a pass of a whole factor together, and the first for the chain.
template <class T>
bool fits_on(const Crew& crew, int columns, int blocks) {
  return block_columns::with_width(columns, [&](auto width) {
    constexpr int K = decltype(width)::value;
    return with_arithmetic<T>([&](auto arithmetic) {
      using A = decltype(arithmetic);
      SegmentOf<T, A> s{};
      s.blocks = s.end = blocks;
      return assign_roles<K, T, A>(s, Part::chain) && assign_roles<K, T, A>(s, Part::all, crew) && assign_roles<K, T, A>(s, Part::rest, crew);
    });
  });
}

}  // namespace gpucholmod::cuda
