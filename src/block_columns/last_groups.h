#pragma once

#include "block_columns/worker_groups.h"

namespace gpucholmod::block_columns {

/// The number of parts of a row block in LastGroups: a warp finds R~ of each.
constexpr int HALVES = 2;

/// The shared memory of LastGroups on a card, in words of A's; V that is relayed comes first.
template <int K, class Card, class T, class A>
struct LastGroupsSize {
  static constexpr int tiles = Card::template last_tiles<K>;  ///< tiles of a group; 0: no room
  static constexpr int EIGHT = eight_rows<Card>, sub = 2 * EIGHT, tile = SUBS * sub;  ///< words of T's
  static constexpr int words =
      LAST_GROUPS * (SUBS * GroupsOfV<K, A>::words + tiles * tile * int(sizeof(T)) / int(sizeof(A)));
};

/// Updates the last groups of a worker, at most LAST_GROUPS, row block after row block, with three warps for each
/// group. Work on the next row block needs V, not R~. So one warp finds V, and stores in shared memory V as it is
/// before each sub-block; two other warps find R~ from that, each for two sub-blocks. The first warp copies R to
/// shared memory once, for all three warps. All sums have the same order as in TrailingUpdate.
///
/// `relay` makes the warps of a group wait for each other. A turn is a row block, in two halves. A half is full when R
/// of its two sub-blocks, and V before each of them, are in shared memory; it is empty when the warp that finds R~ of
/// the half has read them.
template <class Segment, int K, class Team, class StagingRing, class Relay>
class LastGroups : WorkerGroups<Segment, K, Team> {
  using Base = WorkerGroups<Segment, K, Team>;
  using typename Base::T, typename Base::A, typename Base::Warp, typename Base::Parts;
  using Base::s_, Base::team_, Base::out;
  using Size = LastGroupsSize<K, typename Warp::Card, T, A>;
  static constexpr int tiles = Size::tiles, tile = Size::tile, sub = Size::sub, EIGHT = Size::EIGHT,
                       V_words = GroupsOfV<K, A>::words, subs = SUBS / HALVES;
  /// Numbers in a copy, copies for a column of a sub-block, and columns that a warp copies at a time.
  static constexpr int pair = 16 / int(sizeof(T)), parts = IB / pair, columns = LANES / parts;

 public:
  static constexpr bool has_room = tiles > 0;
  static_assert(!has_room || (tiles > 1 && !Warp::in_place));

  /// team.shared has Size::words; V of the groups is where TrailingUpdate has it.
  GPUCHOLMOD_HOST_DEVICE LastGroups(Team team, const Segment& segment, int worker, StagingRing& ring, Relay relay)
      : Base(team, segment, worker, false), ring_(ring), relay_(relay) {}

  /// Updates row blocks from `begin` on. If `begin` is not the first, a TrailingUpdate has put V in its place.
  GPUCHOLMOD_HOST_DEVICE void run(int begin) {
    begin_ = begin;
    const auto finds_V = [](const Warp& warp) { return part(warp) == 0; };
    team_.warps_sync([&](Warp& warp) {
      Held& held = held_[warp];
      held.end = begin;
      const Cursor<Segment::order> at(range(), this->number_, begin, number(warp));
      if (number(warp) >= LAST_GROUPS || at.b != begin) return;
      held.group = at.group;
      held.end = end_of(at.group);
      if (!finds_V(warp)) return;
      if (begin == s_.first) take_V<K>(warp, held.state, s_, at.group);
      else get_V<Warp, K>(warp, held.state, this->place(at.l, at.group));
    });
    team_.each_warp([&](Warp& warp) {
      if (!finds_V(warp)) return;
      for (int b = begin; b < begin + tiles - 1; ++b) {
        GPUCHOLMOD_UNROLL for (int half = 0; half < HALVES; ++half) fetch(warp, b, half, held_[warp]);
        Warp::end_copy();
      }
    });
    const int b = team_.each_in_step(
        begin, s_.end, finds_V,
        [&](Warp& warp, int b) {
          Held& held = held_[warp];
          return pass(warp, b, held, [&](const A* transform) { find_V(warp, b, transform, held); });
        },
        [&](Warp& warp, int b) {
          const Held& held = held_[warp];
          return pass(warp, b, held, [&](const A* transform) { find_R(warp, b, transform, held); });
        });
    Warp::template wait_for_copies<0>();
    if (b == s_.blocks || b == s_.first) return;
    team_.warps_sync([&](Warp& warp) { warp.sync(); });  // all V has been read
    team_.each_warp([&](Warp& warp) {
      const Held& held = held_[warp];
      if (!finds_V(warp) || b >= held.end) return;
      put_V<Warp, K>(warp, held.state, relayed(warp, 0));
      warp.sync();
      this->leave(warp, b, relayed(warp, 0), held.group);
    });
  }

 private:
  struct Held {
    int group;             ///< the group; not set if the warp has none
    int end;               ///< end of the group's row blocks; if the warp has no group, where run() begins
    State<Warp, K> state;  ///< V
  };

  GPUCHOLMOD_HOST_DEVICE Range range() const { return Base::range(LAST_GROUPS, s_.end); }
  /// Returns the row block behind the last one that this worker updates in a group.
  GPUCHOLMOD_HOST_DEVICE int end_of(int group) const { return group / GROUPS - range().nearest + 1; }
  /// Returns the number of the warp's group among the last groups; LAST_GROUPS or more: the warp has no group. part()
  /// returns 0 for the warp that finds V, 1 and 2 for the warps that find R~ of the first and of the second half.
  GPUCHOLMOD_HOST_DEVICE static int number(const Warp& warp) { return warp.id / WARPS_OF_GROUP; }
  GPUCHOLMOD_HOST_DEVICE static int part(const Warp& warp) { return warp.id % WARPS_OF_GROUP; }

  /// Returns the place of V before sub-block a; R_place() returns that of a half of row block b of R.
  GPUCHOLMOD_HOST_DEVICE A* relayed(const Warp& warp, int a) const {
    return team_.shared + (number(warp) * SUBS + a) * V_words;
  }
  GPUCHOLMOD_HOST_DEVICE T* R_place(const Warp& warp, int b, int half) const {
    T* const all = reinterpret_cast<T*>(team_.shared + LAST_GROUPS * SUBS * V_words);
    return all + (number(warp) * tiles + unsigned(b - begin_) % tiles) * tile + half * subs * sub;
  }

  /// Begins to copy a half of row block b of R, if there is such a row block.
  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, int b, int half, const Held& held) const {
    if (b >= held.end || b >= s_.end) return;
    index_t ld = s_.ld;
    Warp::compute_anew(ld);
    const T* const from = s_.group_in(b, held.group) + half * subs * IB;
    T* const to = R_place(warp, b, half);
    warp.each([&](int lane) {
      const int row = lane % parts * pair, column = lane / parts;
      GPUCHOLMOD_UNROLL for (int n = 0; n < subs; ++n)
        GPUCHOLMOD_UNROLL for (int i = 0; i < GROUP; i += columns)
          Warp::copy_16(to + n * sub + row / 8 * EIGHT + (i + column) * 8 + row % 8,
                        from + (i + column) * ld + n * IB + row);
    });
  }
  /// Loads a sub-block of R as left factors.
  GPUCHOLMOD_HOST_DEVICE void load(const Warp& warp, const T* from, Left<Warp> R[2]) const {
    GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i) R[i] = load_left(warp, from + i * EIGHT, 8);
  }

  /// Calls f(transform) if the warp's group has row block b. Returns false if the row block is rejected.
  template <class F>
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, const Held& held, F&& f) {
    if (!ring_.wait(warp, b - s_.first)) return false;
    if (b < held.end) f(ring_.slot(b - s_.first));
    ring_.release(warp, b - s_.first);
    return true;
  }

  /// Computes V <- V - R_a'P_a for the sub-blocks in turn.
  GPUCHOLMOD_HOST_DEVICE void find_V(const Warp& warp, int b, const A* transform, Held& held) {
    Warp::template wait_for_copies<tiles - 2>();
    warp.sync();
    GPUCHOLMOD_UNROLL for (int half = 0; half < HALVES; ++half) {
      Left<Warp> R[subs][2];
      GPUCHOLMOD_UNROLL for (int n = 0; n < subs; ++n) load(warp, R_place(warp, b, half) + n * sub, R[n]);
      relay_.wait_empty(warp, number(warp), half, b - begin_);
      fetch(warp, b + tiles - 1, half, held);
      GPUCHOLMOD_UNROLL for (int n = 0; n < subs; ++n) {
        const int a = half * subs + n;
        put_V<Warp, K>(warp, held.state, relayed(warp, a));
        subtract<K>(warp, held.state.V, R[n], transform + Parts::P + a * IB);
      }
      relay_.fill(warp, number(warp), half);
    }
    Warp::end_copy();
    if (held.group / GROUPS == b + 1 + s_.window) this->leave_near(warp, held.state, held.group);
  }

  /// Computes R~_a = C_a^-T R_a + (sigma C_a^-T Z_a) V for the sub-blocks of a half.
  GPUCHOLMOD_HOST_DEVICE void find_R(const Warp& warp, int b, const A* transform, const Held& held) {
    const int half = part(warp) - 1;
    T* const to = out(b, held.group);
    relay_.wait(warp, number(warp), half, b - begin_);
    const T* const R_half = R_place(warp, b, half);
    GPUCHOLMOD_UNROLL for (int n = 0; n < subs; ++n) {
      const int a = half * subs + n;
      const A *Z = transform + Parts::Z + a * K / 8 * LEFT, *C = transform + Parts::C + a * 2 * LEFT;
      State<Warp, K> state;
      Left<Warp> R[2];
      load(warp, R_half + n * sub, R);
      get_V<Warp, K>(warp, state, relayed(warp, a));
      if (n == subs - 1) relay_.release(warp, number(warp), half);
      Tile<Warp> done[2] = {zero_tile(warp), zero_tile(warp)};
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        this->add_transposed(warp, done, as_left(warp, state.V[j]),
                             as_tile(warp, load_stored_left(warp, Z + j * LEFT)));
      GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i)
        this->add_transposed(warp, done, R[i], as_tile(warp, load_stored_left(warp, C + i * LEFT)), i);
      this->put(warp, done, a, to);
    }
    if (to && held.group / GROUPS == b)
      this->template put_diagonal<subs * IB>(warp, held.group, transform + Parts::diagonal, to, half * subs * IB);
  }

  int begin_ = 0;
  StagingRing& ring_;
  Relay relay_;
  typename Team::template PerWarp<Held> held_;
};

}  // namespace gpucholmod::block_columns
