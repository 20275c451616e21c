#pragma once

#include "block_columns/apply.h"
#include "block_columns/tiles.h"

namespace gpucholmod::block_columns {

/// V of groups in one piece of memory: a tile for each 8 columns of V.
template <int K, class A>
struct GroupsOfV {
  static constexpr int words = GROUP * K;
  A* at;
  int slots;  ///< groups there is room for, a group having the place of the one `slots` before it; 0: all
  GPUCHOLMOD_HOST_DEVICE A* of(int l) const { return at + (slots == 0 ? l : l % slots) * words; }
};

/// Where column q of V of a group's column c lies there.
GPUCHOLMOD_HOST_DEVICE constexpr int place_of_V(int q, int c) { return q / 8 * (8 * GROUP) + c * 8 + q % 8; }

/// V of a group, or of eight of its columns, from its place; and to it.
template <class Warp, int K, int columns = GROUP>
GPUCHOLMOD_HOST_DEVICE void get_V(const Warp& warp, State<Warp, K>& state, const typename Warp::Arithmetic* from) {
  GPUCHOLMOD_UNROLL
  for (int j = 0; j < K / 8; ++j) state.V[j] = load_tile<Access::shared, columns>(warp, from + j * 8 * GROUP, 8);
}
template <class Warp, int K, int columns = GROUP>
GPUCHOLMOD_HOST_DEVICE void put_V(const Warp& warp, const State<Warp, K>& state, typename Warp::Arithmetic* to) {
  GPUCHOLMOD_UNROLL
  for (int j = 0; j < K / 8; ++j) store_tile<Access::shared, columns>(warp, state.V[j], to + j * 8 * GROUP, 8);
}

/// Room for what of a block's groups is in hand at a time, of so many block columns, the same for each of its warps:
/// the group that comes when one is done has that one's place.
GPUCHOLMOD_HOST_DEVICE int groups_in_hand(const Share& share, int columns, int warps) {
  const int all = share.count(), few = (columns * GROUPS + share.workers - 1) / share.workers,
            most = few < all ? few : all;
  return (most > 1 ? most + warps - 1 : warps) / warps * warps;
}
/// What is advanced at a time, and what is updated within the window.
template <class S>
GPUCHOLMOD_HOST_DEVICE int near_groups(const S& s, const Share& share) {
  return groups_in_hand(share, s.window - REACH, ADVANCE_WARPS);
}
template <class S>
GPUCHOLMOD_HOST_DEVICE int groups_within(const S& s, const Share& share) {
  return groups_in_hand(share, s.window + 1, UPDATE_WARPS);
}

/// V of a group in global memory.
template <int K, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void take_V(const Warp& warp, State<Warp, K>& state, const S& s, int group) {
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    state.V[j] =
        load_columns<Access::transform>(warp, s.V + 8 * j * s.ldv + index_t(s.group_place(group)) * GROUP, s.ldv);
}
/// Of so many of its columns, from `first` on, to their place in shared memory, and from there to the memory `V`; with
/// few registers.
template <int K, int columns = GROUP, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void bring_V(const Warp& warp, const S& s, int group, int first, typename S::Arithmetic* to) {
  const typename S::Arithmetic* from = s.V + index_t(s.group_place(group)) * GROUP + first;
  warp.each([&](int lane) {
    GPUCHOLMOD_NO_UNROLL for (int i = lane; i < K * columns; i += LANES)
      to[place_of_V(i / columns, i % columns)] =
          Warp::template read<Access::transform>(from + i / columns * s.ldv + i % columns);
  });
}
template <int K, int columns = GROUP, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void leave_V(const Warp& warp, const typename S::Arithmetic* from, const S& s, int group,
                                    int first, typename S::Arithmetic* V) {
  V += index_t(s.group_place(group)) * GROUP + first;
  warp.each([&](int lane) {
    GPUCHOLMOD_NO_UNROLL for (int i = lane; i < K * columns; i += LANES)
      V[i / columns * s.ldv + i % columns] = from[place_of_V(i / columns, i % columns)];
  });
}

/// Takes V of groups near the diagonal past the row blocks before it, by P alone, as P comes, and hands it to the
/// chain, or, where ranks have row blocks of their own (Segment::adds_up()), what is taken off to add_up(). `alike`:
/// every column of V has its sums in the same order, wherever it is (products that take their factors in place differ
/// in that).
template <class Segment, int K, class Team, class StagingRing, bool alike = false>
class Advance {
  using Warp = typename Team::Warp;
  using A = typename Segment::Arithmetic;
  using RTiles = Tiles<Segment, Warp::Card::template ahead<K>, Warp>;
  static constexpr bool in_place = Warp::in_place && !alike;
  static_assert(!in_place || (Segment::order == Order::forward && std::is_same_v<typename Segment::Scalar, A>));

 public:
  /// team.shared: RTiles::words for each warp, and V of near_groups() groups.
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
  /// What a warp has of the group at hand: V.
  struct Held {
    bool is = false;  ///< whether the next tile is this group's too
    State<Warp, K> state;
  };

  GPUCHOLMOD_HOST_DEVICE Range range() const {
    return {s_.sharing(), ADVANCE_WARPS, s_.last() * GROUPS, s_.last() - 1 - REACH, 1 + REACH, s_.window - REACH,
            s_.adds_up() ? (s_.device_ranks - 1) * BLOCKS : 0};
  }
  GPUCHOLMOD_HOST_DEVICE int begin() const { return s_.own_row_block(s_.first); }

  /// Row block b, on the warp's groups. False: nothing comes any more.
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, RTiles& tiles, Held& held) {
    const int number = s_.number_of_row_block(b);
    if (!ring_.wait(warp, number)) return false;
    const A* P = ring_.slot(number);
    while (tiles.at().b == b) {
      const int group = tiles.at().group, l = tiles.at().l, c = group / GROUPS;
      State<Warp, K>& state = held.state;
      if (!held.is && !begin(warp, state, b, group, l)) {
        tiles.leave(range());  // but goes on to release what comes
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

  /// V of a group before row block b. False: it does not come, as a row block before b is rejected.
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
    if (c > s_.first + s_.window) {  // updated up to here
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

/// Adds up what all ranks have taken off V of every count-th block column, V of the chain's columns, and hands it to
/// the chain: always in the same order, so that a solution has the same bits again.
template <int K, class Warp, class S>
GPUCHOLMOD_HOST_DEVICE void add_up(const Warp& warp, const S& s, int number, int count) {
  using A = typename S::Arithmetic;
  GPUCHOLMOD_NO_UNROLL for (int c = s.start() + 1 + REACH + number; c < s.last(); c += count) {
    const int begun = (c - 1 - REACH) / BLOCKS + 1;  // ranks that have a row block for c to be taken past
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
