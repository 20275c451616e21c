#pragma once

#include <algorithm>
#include <climits>

#include "cuda/device_group.h"
#include "cuda/segment_launch.cuh"

/// Functions that assign thread blocks to the roles of a segment, and test whether a pass has room
/// (inst/design/segments.md), on the current device.
namespace gpucholmod::cuda {

/// The usual number of thread blocks that finish. With 16 columns of V, one takes 7 us for a row block of its own and
/// 0.7 us for each row block of the others, while the chain takes 1.1 us a row block (H200): `finishers` cannot keep
/// up.
constexpr int finishers = 8;
/// The larger number of thread blocks that finish, which do keep up with the chain. A factor of more than
/// `blocks_for_many` row blocks waits for memory instead, and a GPU that runs fewer than `least_for_many` thread blocks
/// at once needs them to update.
constexpr int many_finishers = 16, blocks_for_many = 100, least_for_many = 96;

/// The look-ahead distance: row blocks by which V is advanced ahead of the trailing update; why:
/// inst/design/segments.md.
constexpr int window = 16;
/// The look-ahead distance with many finishers: such a pass waits for the chain, not for memory. On several ranks,
/// where transforms take longer to arrive, the distance is `window_on_several`. In place it is always `window`: longer
/// distances took longer there (log/tried.md, "More thread blocks within the window").
constexpr int window_with_many = 24, window_on_several = 32;
static_assert(window > block_columns::REACH && window_with_many > window && window_on_several > window);

/// The number of thread blocks on each of several ranks, or of a GPU that runs few at once, that update within the
/// window, in place.
constexpr int workers_within = block_columns::WORKERS_OF_STRIP;
/// Returns that number for one GPU that runs at least `least_for_many` thread blocks at once. With 24 thread blocks,
/// each has at most three groups at a time in the 17 block columns within the window. Measured: log/tried.md, "More
/// thread blocks within the window".
template <int K>
constexpr int many_within(int blocks) {
  return K <= 16 ? 24 : blocks <= 256 ? 32 : 16;
}

/// Returns the number of thread blocks of a launch that run at once on the rank that has the fewest, in whole clusters;
/// 0 if a rank has no kernel.
template <class Launch>
int least_at_once(const DeviceGroup& devices) {
  int least = INT_MAX, unit = 1;
  for (int i = 0; i < devices.ranks(); ++i) {
    const CurrentDevice current(devices.device(i));
    if (!Launch::if_it_runs([&](auto card, int most) {
          unit = in_clusters<decltype(card)>(1);
          return least = std::min(least, most);
        }))
      return 0;
  }
  return least / devices.side_by_side() / unit * unit;
}

/// The work of a launch: all of a segment, or again, on a panel to its right, what the segment has done.
enum class Part { all, again };

/// Divides the thread blocks of a launch, `most` of which run at once, between the roles. `finishers` of them finish,
/// and `workers_within` update within the window. V of the groups updated beyond the window lies in shared memory as
/// far as there is room. Returns false if there are too few thread blocks, or too little shared memory for V.
template <class Card, int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, int most, int finishers, int workers_within) {
  using namespace block_columns;
  const int groups = s.blocks * GROUPS;
  const bool all = part == Part::all;
  s.solvers = all ? K / CHAIN_COLUMNS * Card::cluster : 0;
  const int far = s.several() ? window_on_several : finishers == many_finishers ? window_with_many : window;
  s.window = !all ? s.blocks - s.top : s.in_place() ? window : far;
  const int first = s.top < 0 ? 0 : 1 + REACH;  // the first block column that is advanced
  // Groups to be advanced at a time.
  const int ahead = std::max(0, std::min(s.end - first, s.window - REACH)) * GROUPS;
  const int ranks = s.several() ? s.device_ranks : 1, at_once = ADVANCE_WARPS * ranks,
            unit = s.several() ? WORKERS_OF_STRIP : in_clusters<Card>(1);
  const int advancers = all ? ((ahead + at_once - 1) / at_once + unit - 1) / unit * unit : 0;  // on this rank
  s.advancers = advancers * ranks;
  s.finishers = all ? finishers : 0;
  const int within = all && s.in_place() ? workers_within : 0;
  const int left = most - s.solvers - advancers - s.finishers - within;
  int here = std::min(left, in_clusters<Card>(groups));
  if (s.several())
    here = std::min(here / WORKERS_OF_STRIP, (s.blocks / BLOCKS + ranks - 1) / ranks) * WORKERS_OF_STRIP;
  s.workers = here * ranks;
  s.workers_within = within * ranks;
  const int last = LAST_GROUPS * s.workers, near = within > 0 ? s.window + 1 : 0;
  s.by_three = groups <= last ? s.top : std::max(s.blocks - near - last / GROUPS, 0);
  if (s.workers <= 0) return false;
  if (s.solvers + advancers + s.finishers + within + here > most) return false;
  constexpr int room = WorkerMemory<K, Card, A>::template groups<SegmentOf<T, A>>;
  // Within the window each warp of a pass in place has a group at least.
  static_assert(!computes_with<T, A, Card> || !fits<K, Card, A> || room >= UPDATE_WARPS);
  constexpr int few = strips_in_shared * BLOCKS * GROUPS;
  if (Share{0, s.workers, std::min(groups, few)}.count() > room) return false;
  const int of_each = Share{0, s.workers, groups}.count();
  s.outside = groups <= few ? 0 : GPUCHOLMOD_V_OUTSIDE ? of_each : std::max(of_each - room, 0);
  if (s.advancers > 0 && AdvanceMemory<K, Card, A>::words(s, Share{0, s.advancers, s.end * GROUPS}) * int(sizeof(A)) >
                             Card::shared)
    return false;
  return within == 0 || groups_within(s, Share{0, s.workers_within, groups}) <= room;
}

/// Divides the thread blocks as above, with many finishers and many workers within the window if they pay. In place, if
/// there are too few thread blocks, tries half the finishers and half of `workers_within`, then half the finishers
/// alone, as shared memory has to hold V of all groups that a worker updates there. On a card of 9.0 half the workers
/// have no room there for 32 columns of V of their groups.
template <class Card, int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, int most) {
  if constexpr (!computes_with<T, A, Card> || !fits<K, Card, A>) return false;
  const bool runs_many = most >= least_for_many;
  const int within = runs_many && !s.several() ? many_within<K>(s.blocks) : workers_within;
  if (runs_many && s.blocks <= blocks_for_many && assign_roles<Card, K, T, A>(s, part, most, many_finishers, within))
    return true;
  if (assign_roles<Card, K, T, A>(s, part, most, finishers, within)) return true;
  if (!s.in_place()) return false;
  return (!s.several() && assign_roles<Card, K, T, A>(s, part, most, finishers / 2, workers_within / 2)) ||
         assign_roles<Card, K, T, A>(s, part, most, finishers / 2, workers_within);
}

/// Divides the thread blocks as above on the current device, or on one of `parts` parts of the device. Returns false
/// also if the device has no kernels.
template <int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, int parts = 1) {
  return SegmentLaunch<modify_segment<T, K, A>>::if_it_runs([&](auto card, int most) {
    using Card = typename decltype(card)::template With<A>;
    const int unit = in_clusters<Card>(1);
    return assign_roles<Card, K, T, A>(s, part, most / parts / unit * unit);
  });
}

/// Divides the thread blocks as above on the first of several ranks, which is current, so that every rank has room for
/// its share. Returns false also if a rank has no kernel.
template <int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, const DeviceGroup& devices) {
  using Launch = SegmentLaunch<modify_segment<T, K, A>>;
  s.device_ranks = devices.ranks();
  s.together = true;
  const int most = least_at_once<Launch>(devices);
  return most > 0 && Launch::if_it_runs([&](auto card, int) {
    return assign_roles<typename decltype(card)::template With<A>, K, T, A>(s, part, most);
  });
}

/// Returns f(A()), where segments of a factor of T's are computed with A's on the current device.
template <class T, class F>
auto with_arithmetic(F&& f) {
  if constexpr (std::is_same_v<T, double> || !has_single) {
    return f(double());
  } else {
    return SegmentLaunch<modify_segment<T, block_columns::CHAIN_COLUMNS, double>>::with_its_card(
        [&](auto card) { return f(typename decltype(card)::template Arithmetic<T>()); });
  }
}

/// Returns whether the current device, or one of `parts` parts of the device, has kernels for a whole factor or a
/// panel, and enough thread blocks for all roles in place, which takes more thread blocks. Returns false as well if
/// shared memory has no room for V of a whole factor and fewer thread blocks would update than solve: two narrower
/// passes leave more thread blocks to update, and should be quicker.
template <class T>
bool has_room(int columns, int blocks, bool whole, int parts) {
  return with_arithmetic<T>([&](auto arithmetic) {
    using A = decltype(arithmetic);
    return block_columns::with_width(columns, [&](auto width) {
      SegmentOf<T, A> s{};
      s.blocks = s.end = blocks;
      s.top = whole ? 0 : -1;
      const bool runs = assign_roles<decltype(width)::value, T, A>(s, Part::all, parts);
      if (!whole || !s.outside || columns == block_columns::CHAIN_COLUMNS) return runs;
      return runs && s.workers + s.workers_within >= s.solvers;
    });
  });
}

/// Returns whether several ranks together have room for a pass over a whole factor.
template <class T>
bool fits_on(const DeviceGroup& devices, int columns, int blocks) {
  return block_columns::with_width(columns, [&](auto width) {
    return with_arithmetic<T>([&](auto arithmetic) {
      using A = decltype(arithmetic);
      SegmentOf<T, A> s{};
      s.blocks = s.end = blocks;
      return assign_roles<decltype(width)::value, T, A>(s, Part::all, devices);
    });
  });
}

}  // namespace gpucholmod::cuda
