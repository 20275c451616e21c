#pragma once

#include "block_columns/last_groups.h"

namespace gpucholmod::block_columns {

/// Updates the groups of a worker, row block after row block, as transforms arrive. V of its groups stays in shared
/// memory; if that has no room for all, V of the groups that come near the diagonal first stays in V_outside. A warp
/// whose next tile is of the same group keeps V in registers, unless products take their factors in place. V of groups
/// that come near the diagonal is also passed to Advance.
///
/// In place, the chain may not have read row block b of block columns up to b + window yet. So other workers, `within`
/// the window, update these block columns. They read V where it is left to Advance, and update row block b when row
/// block b + window is complete: the chain is then past all of these columns.
template <class Segment, int K, class Team, class StagingRing>
class TrailingUpdate : WorkerGroups<Segment, K, Team> {
  using Base = WorkerGroups<Segment, K, Team>;
  using typename Base::T, typename Base::A, typename Base::Warp, typename Base::Parts, typename Base::RTiles;
  using Base::s_, Base::team_, Base::is_within, Base::place, Base::out;

 public:
  /// Takes over the row blocks up to `end`.
  GPUCHOLMOD_HOST_DEVICE TrailingUpdate(Team team, const Segment& segment, int worker, bool within, int end,
                                        StagingRing& ring)
      : Base(team, segment, worker, within), end_(end), ring_(ring) {}

  /// Returns whether row blocks are left for LastGroups.
  GPUCHOLMOD_HOST_DEVICE bool run() {
    team_.each_warp([&](Warp& warp) {
      tiles_[warp] = {warp, team_.shared + warp.id * RTiles::words, s_, range(), cursor(warp, range(), s_.first)};
      each_group(warp, s_.first, [&](int l, int group) { bring(warp, l, group); });
      warp.sync();
    });
    int b = s_.first;
    GPUCHOLMOD_NO_UNROLL for (; b < end_; ++b)
      if (!team_.all_warps([&](Warp& warp) { return pass(warp, b, tiles_[warp], held_[warp]); })) break;
    Warp::template wait_for_copies<0>();
    const bool goes_on = b == end_ && b < s_.end;
    if (b < s_.blocks && b > s_.first)
      team_.warps_sync([&](Warp& warp) {
        if (held_[warp].is) put_V<Warp, K>(warp, held_[warp].state, held_[warp].place);
        warp.sync();
        if (!goes_on) leave_all(warp, b);
      });
    return goes_on;
  }

 private:
  /// Describes the group that a warp works on.
  struct Held {
    bool is = false;       ///< true if the next tile is of this group too, and `state` has its V
    int column;            ///< block column
    A* place;              ///< place of V while the warp works on other groups
    T* out;                ///< address to which the tile is written, row block after row block; null: none
    State<Warp, K> state;  ///< V
  };

  GPUCHOLMOD_HOST_DEVICE Range range() const { return Base::range(UPDATE_WARPS, end_); }
  /// Returns the cursor at which a warp begins row block b.
  GPUCHOLMOD_HOST_DEVICE Cursor<Segment::order> cursor(const Warp& warp, const Range& range, int b) const {
    return {range, this->share().worker, b, warp.id};
  }

  /// Calls f(l, group) for the warp's groups in row block b.
  template <class F>
  GPUCHOLMOD_HOST_DEVICE void each_group(const Warp& warp, int b, F&& f) const {
    Range one = range();
    one.end = b + 1;
    for (auto at = cursor(warp, one, b); at.b == b; at.next(one)) f(at.l, at.group);
  }

  /// Copies V of a group from global memory to its place: V as it is at the start, or as other workers have left it.
  GPUCHOLMOD_HOST_DEVICE void bring(const Warp& warp, int l, int group) const {
    const int c = group / GROUPS;
    if (is_within() && c > s_.first + s_.window) {
      const typename Warp::Wait wait;
      while (Warp::load_acquire(s_.is_near(c)) < NB) wait.pause();
      warp.sync();
    }
    bring_V<K>(warp, s_, group, place(l, group));
    warp.sync();
  }

  /// Begins a group at row block b: reads V, and finds the places of V and of the result.
  GPUCHOLMOD_HOST_DEVICE void begin(const Warp& warp, int b, const Cursor<Segment::order>& at, Held& held) const {
    held.column = at.group / GROUPS;
    held.place = place(at.l, at.group);
    held.out = out(b, at.group);
    if (is_within() && held.column == b + s_.window && b > s_.first) bring(warp, at.l, at.group);
    get_V<Warp, K>(warp, held.state, held.place);
  }
  /// Ends row block b of a group: writes the diagonal, leaves V near the diagonal, and stores V unless `next`, the
  /// cursor, is at the same group.
  GPUCHOLMOD_HOST_DEVICE void end(const Warp& warp, int b, int group, const Cursor<Segment::order>& next,
                                  const A* transform, Held& held) const {
    if (held.column == b && held.out)
      this->template put_diagonal<NB>(warp, group, transform + Parts::diagonal, held.out, 0);
    if (held.column == b + 1 + s_.window) this->leave_near(warp, held.state, group);
    held.is = !Warp::in_place && next.group == group;
    if (held.is) {
      if (held.out) held.out += NB;
    } else if (!Warp::in_place) {
      put_V<Warp, K>(warp, held.state, held.place);
      warp.sync();
    }
  }

  /// Updates row block b of the warp's groups. Returns false if the row block is rejected.
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, RTiles& tiles, Held& held) {
    if (!ring_.wait(warp, b - s_.first)) return false;
    const A* transform = ring_.slot(b - s_.first);
    while (tiles.at().b == b) {
      const int group = tiles.at().group;
      if (!held.is) begin(warp, b, tiles.at(), held);
      if (s_.is_apart(b, group)) held.out = out(b, group);
      if constexpr (Warp::in_place) update_in_place(warp, transform, tiles, held.state, held.place, held.out);
      else update(warp, transform, tiles, held.state, held.out);
      end(warp, b, group, tiles.at(), transform, held);
    }
    ring_.release(warp, b - s_.first);
    return true;
  }

  /// Updates the next tile and its V: in each sub-block R~_a = C_a^-T R_a + (sigma C_a^-T Z_a) V and V <- V - R_a'P_a.
  /// Registers hold the factors in the order in which products take them. In this order of work no product waits for
  /// the one before.
  GPUCHOLMOD_HOST_DEVICE void update(const Warp& warp, const A* transform, RTiles& tiles, State<Warp, K>& state,
                                      T* out) {
    // True if R~_a is written when sub-block a + 1 has arrived. More columns leave no registers for that: R~_a is then
    // written while V is computed.
    constexpr bool later = K <= 16;
    Tile<Warp> done[2];
    GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
      const A *Z = transform + Parts::Z + a * K / 8 * LEFT, *C = transform + Parts::C + a * 2 * LEFT,
              *P = transform + Parts::P + a * IB;
      Left<Warp> R[2], Z_left[K / 8];
      tiles.take(warp, a, R);
      if constexpr (later)
        GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) Z_left[j] = load_stored_left(warp, Z + j * LEFT);
      if (a > 0 && later) this->put(warp, done, a - 1, out);
      GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i) done[i] = zero_tile(warp);
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
        if constexpr (!later) Z_left[j] = load_stored_left(warp, Z + j * LEFT);
        this->add_transposed(warp, done, as_left(warp, state.V[j]), as_tile(warp, Z_left[j]));
      }
      tiles.next(warp, s_, range(), a);
      const auto add_R = [&](int half) {
        this->add_transposed(warp, done, R[half], as_tile(warp, load_stored_left(warp, C + half * LEFT)), half);
      };
      if constexpr (later) {
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
          subtract_half<K>(warp, state.V, R[half], P + 8 * half);
          add_R(half);
        }
      } else {
        add_R(0);
        add_R(1);
        this->put(warp, done, a, out);
        subtract<K>(warp, state.V, R, P);
      }
    }
    if (later) this->put(warp, done, SUBS - 1, out);
  }

  /// Updates the next tile if products take their factors in place: V is stored in its place after each sub-block.
  GPUCHOLMOD_HOST_DEVICE void update_in_place(const Warp& warp, const A* transform, RTiles& tiles,
                                               State<Warp, K>& state, A* sV, T* out) {
    static_assert(std::is_same_v<T, A>);
    GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
      const A *Z = transform + Parts::Z + a * K / 8 * LEFT, *C = transform + Parts::C + a * 2 * LEFT,
              *P = transform + Parts::P + a * IB;
      Tile<Warp> done[2] = {zero_tile(warp), zero_tile(warp)};
      const A* R = tiles.take(warp, a);
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        warp.template multiply_add_in_place<1, 2>(done, Z + j * LEFT, 8, sV + j * 8 * GROUP, 8, 64);
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
        warp.template multiply_add_in_place<1, 2>(done, C + half * LEFT, 8, R + half * RTiles::EIGHT, 8, 64);
      subtract<K>(warp, state.V, R, RTiles::EIGHT, P);
      tiles.next(warp, s_, range(), a);
      put_V<Warp, K>(warp, state, sV);
      this->put(warp, done, a, out);
    }
  }

  /// Writes the remaining V of the warp's groups, as no row block from b on is done.
  GPUCHOLMOD_HOST_DEVICE void leave_all(const Warp& warp, int b) const {
    each_group(warp, b, [&](int l, int group) {
      if (is_within() && group / GROUPS == b + s_.window) bring(warp, l, group);
      this->leave(warp, b, place(l, group), group);
    });
  }

  int end_;  ///< end of the row blocks
  StagingRing& ring_;
  typename Team::template PerWarp<RTiles> tiles_;
  typename Team::template PerWarp<Held> held_;
};

/// Updates the groups of a worker in all row blocks. One warp updates a group; from row block s.by_three on three warps
/// do, beyond the window and if the card has room.
template <class Segment, int K, class Team, class StagingRing, class Relay>
GPUCHOLMOD_HOST_DEVICE void update_groups(Team team, const Segment& s, int worker, bool within, StagingRing& ring,
                                          Relay relay) {
  using Last = LastGroups<Segment, K, Team, StagingRing, Relay>;
  int by_three = s.end;
  if constexpr (Last::has_room)
    if (!within && s.by_three < s.end) by_three = s.by_three > s.first ? s.by_three : s.first;
  if (by_three > s.first &&
      !TrailingUpdate<Segment, K, Team, StagingRing>(team, s, worker, within, by_three, ring).run())
    return;
  if constexpr (Last::has_room) Last(team, s, worker, ring, relay).run(by_three);
}

}  // namespace gpucholmod::block_columns
