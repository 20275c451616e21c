#pragma once

#include "block_columns/apply.h"
#include "block_columns/tiles.h"

namespace gpucholmod::block_columns {

/// The place of V of several groups, in one piece of memory: a tile for each 8 columns of V.
template <int K, class A>
struct GroupsOfV {
  static constexpr int words = GROUP * K;
  A* at;
  int slots;  ///< number of groups with room; a group takes the place of the group `slots` before it; 0: all
  GPUCHOLMOD_HOST_DEVICE A* of(int l) const { return at + (slots == 0 ? l : l % slots) * words; }
};

/// Returns the place of V(c, q) in the memory of V of a group: c, a column of the group; q, a column of V.
GPUCHOLMOD_HOST_DEVICE constexpr int place_of_V(int q, int c) { return q / 8 * (8 * GROUP) + c * 8 + q % 8; }

/// Loads V of a group from its place.
template <class Warp, int K>
GPUCHOLMOD_HOST_DEVICE void get_V(const Warp& warp, State<Warp, K>& state, const typename Warp::Arithmetic* from) {
  GPUCHOLMOD_UNROLL
  for (int j = 0; j < K / 8; ++j) state.V[j] = load_tile<Access::shared>(warp, from + j * 8 * GROUP, 8);
}
/// Stores V of a group at its place.
template <class Warp, int K>
GPUCHOLMOD_HOST_DEVICE void put_V(const Warp& warp, const State<Warp, K>& state, typename Warp::Arithmetic* to) {
  GPUCHOLMOD_UNROLL
  for (int j = 0; j < K / 8; ++j) store_tile(warp, state.V[j], to + j * 8 * GROUP, 8);
}

/// Returns the number of groups for which a thread block needs room, if it works on `columns` block columns at a time:
/// the same number for each of its warps. The group that follows a finished group takes the finished group's place.
GPUCHOLMOD_HOST_DEVICE int groups_in_hand(const Share& share, int columns, int warps) {
  const int all = share.count(), few = (columns * GROUPS + share.workers - 1) / share.workers,
            most = few < all ? few : all;
  return (most > 1 ? most + warps - 1 : warps) / warps * warps;
}
/// Returns the number of groups that a thread block advances at a time.
template <class S>
GPUCHOLMOD_HOST_DEVICE int near_groups(const S& s, const Share& share) {
  return groups_in_hand(share, s.window - REACH, ADVANCE_WARPS);
}
/// Returns the number of groups that a thread block updates within the window at a time.
template <class S>
GPUCHOLMOD_HOST_DEVICE int groups_within(const S& s, const Share& share) {
  return groups_in_hand(share, s.window + 1, UPDATE_WARPS);
}

/// Loads V of a group from global memory.
template <int K, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void take_V(const Warp& warp, State<Warp, K>& state, const S& s, int group) {
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    state.V[j] =
        load_columns<Access::transform>(warp, s.V + 8 * j * s.ldv + index_t(s.group_place(group)) * GROUP, s.ldv);
}
/// Copies V of a group from global memory to its place `to`; with few registers.
template <int K, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void bring_V(const Warp& warp, const S& s, int group, typename S::Arithmetic* to) {
  const typename S::Arithmetic* from = s.V + index_t(s.group_place(group)) * GROUP;
  warp.each([&](int lane) {
    GPUCHOLMOD_NO_UNROLL for (int i = lane; i < K * GROUP; i += LANES)
      to[place_of_V(i / GROUP, i % GROUP)] =
          Warp::template read<Access::transform>(from + i / GROUP * s.ldv + i % GROUP);
  });
}
/// Copies V of a group from its place `from` to the memory `V`, with leading dimension ldv; with few registers.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void leave_V(const Warp& warp, const typename Warp::Arithmetic* from,
                                    typename Warp::Arithmetic* V, index_t ldv) {
  warp.each([&](int lane) {
    GPUCHOLMOD_NO_UNROLL for (int i = lane; i < K * GROUP; i += LANES)
      V[i / GROUP * ldv + i % GROUP] = from[place_of_V(i / GROUP, i % GROUP)];
  });
}

/// Takes V of groups near the diagonal past the row blocks before the diagonal, by P alone, as P arrives, and hands V
/// to the chain. If ranks have row blocks of their own (Segment::adds_up()), hands the change of V by this rank's row
/// blocks to add_up() instead. `alike`: sums have the same order in every column of V (in products that take their
/// factors in place, the order depends on the column).
template <class Segment, int K, class Team, class StagingRing, bool alike = false>
class Advance {
  using Warp = typename Team::Warp;
  using A = typename Segment::Arithmetic;
  using RTiles = Tiles<Segment, Warp::Card::template ahead<K>, Warp>;
  static constexpr bool in_place = Warp::in_place && !alike;
  static_assert(!in_place || (Segment::order == Order::forward && std::is_same_v<typename Segment::Scalar, A>));

 public:
  /// Uses team.shared: RTiles::words for each warp, and V of near_groups() groups.
  GPUCHOLMOD_HOST_DEVICE Advance(Team team, const Segment& segment, const Share& share, StagingRing& ring)
      : team_(team), s_(segment), share_(share),
        V_{team.shared + ADVANCE_WARPS * RTiles::words, near_groups(segment, share)}, ring_(ring) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    const int end = s_.last() - 1 - REACH;
    team_.each_warp([&](Warp& warp) {
      tiles_[warp] = {warp, team_.shared + warp.id * RTiles::words, s_, range(),
                      {range(), share_.worker, begin(), warp.id}};
    });
    GPUCHOLMOD_NO_UNROLL for (int b = begin(); b < end; b = s_.own_row_block(b + 1))
      if (!team_.all_warps([&](Warp& warp) { return pass(warp, b, tiles_[warp], held_[warp]); })) break;
    Warp::template wait_for_copies<0>();
  }

 private:
  /// The V of the group that a warp has in hand.
  struct Held {
    bool is = false;  ///< true if the next tile is of the same group
    State<Warp, K> state;
  };

  GPUCHOLMOD_HOST_DEVICE Range range() const {
    return {s_.sharing(), ADVANCE_WARPS, s_.last() * GROUPS, s_.last() - 1 - REACH, 1 + REACH, s_.window - REACH,
            s_.adds_up() ? (s_.device_ranks - 1) * BLOCKS : 0};
  }
  GPUCHOLMOD_HOST_DEVICE int begin() const { return s_.own_row_block(s_.first); }

  /// Takes the warp's groups past row block b. Returns false if no more P will arrive.
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, RTiles& tiles, Held& held) {
    const int number = s_.number_of_row_block(b);
    if (!ring_.wait(warp, number)) return false;
    const A* P = ring_.slot(number);
    while (tiles.at().b == b) {
      const int group = tiles.at().group, l = tiles.at().l, c = group / GROUPS;
      State<Warp, K>& state = held.state;
      if (!held.is && !begin(warp, state, b, group, l)) {
        tiles.leave(range());  // but the warp still releases the slots that are filled
        break;
      }
      GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
        if constexpr (in_place) {
          subtract<K>(warp, state.V, tiles.take(warp, a), RTiles::EIGHT, P + a * IB);
        } else {
          Left<Warp> R[2];
          tiles.take(warp, a, R);
          subtract<K>(warp, state.V, R, P + a * IB);
        }
        tiles.next(warp, s_, range(), a);
      }
      held.is = false;
      if (c <= s_.own_row_block(b + 1) + REACH) hand_over(warp, state, group);
      else if (tiles.at().group == group) held.is = true;
      else put_V<Warp, K>(warp, state, V_.of(l));
      warp.sync();
    }
    ring_.release(warp, number);
    return true;
  }

  /// Loads V of a group as it is before row block b. Returns false if this V never arrives, as a row block before b is
  /// rejected.
  GPUCHOLMOD_HOST_DEVICE bool begin(const Warp& warp, State<Warp, K>& state, int b, int group, int l) const {
    const int c = group / GROUPS;
    if (b > begin() && b > c - s_.window) {
      get_V<Warp, K>(warp, state, V_.of(l));
      return true;
    }
    if (s_.adds_up()) {
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = zero_tile(warp);
      return true;
    }
    if (c > s_.first + s_.window) {  // V comes from the trailing update
      const typename Warp::Wait wait;
      while (Warp::load_acquire(s_.is_near(c)) < NB) {
        if (is_over<Warp>(s_, b)) return false;
        wait.pause();
      }
      warp.sync();
    }
    take_V<K>(warp, state, s_, group);
    return true;
  }

  GPUCHOLMOD_HOST_DEVICE void hand_over(const Warp& warp, const State<Warp, K>& state, int group) const {
    const int c = group / GROUPS;
    A* to = (s_.adds_up() ? s_.template partial<K>(s_.device_rank, c) : s_.handed + index_t(c) * K * LDB) +
            s_.group_place(group) % GROUPS * GROUP;
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) store_columns(warp, state.V[j], to + 8 * j * LDB, LDB);
    warp.sync();
    warp.once([&] { Warp::add_release(s_.of_first(s_.adds_up() ? s_.is_near(c) : s_.has_V(c)), 1, s_.is_led()); });
  }

  Team team_;
  const Segment& s_;
  Share share_;
  GroupsOfV<K, A> V_;
  StagingRing& ring_;
  typename Team::template PerWarp<RTiles> tiles_;
  typename Team::template PerWarp<Held> held_;
};

/// Adds up V of every `count`-th block column and the changes of this V by all ranks, and hands the sum to the chain.
/// V has K columns, those of the chain. The sum always has the same order, so that a repeated solve has the same bits.
template <int K, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void add_up(const Warp& warp, const S& s, int number, int count) {
  using A = typename S::Arithmetic;
  GPUCHOLMOD_NO_UNROLL for (int c = s.start() + 1 + REACH + number; c < s.last(); c += count) {
    const int begun = (c - 1 - REACH) / BLOCKS + 1;  // ranks with a row block that block column c is taken past
    const int ranks = begun < s.device_ranks ? begun : s.device_ranks;
    if (!wait_until(warp, s.is_near(c), ranks * GROUPS, &s.state()->stop, true)) return;
    const A* const V = s.V + index_t(s.place(c)) * NB;
    A* const to = s.handed + index_t(c) * K * LDB;
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int i = lane; i < K * NB; i += LANES) {
        const int at = i / NB * LDB + i % NB;
        A sum = Warp::template read<Access::transform>(V + i / NB * s.ldv + i % NB);
        GPUCHOLMOD_NO_UNROLL for (int rank = 0; rank < ranks; ++rank)
          sum += Warp::template read<Access::transform>(s.template partial<K>(rank, c) + at);
        to[at] = sum;
      }
    });
    warp.sync();
    warp.once([&] { Warp::add_release(s.has_V(c), GROUPS); });
  }
}

}  // namespace gpucholmod::block_columns
