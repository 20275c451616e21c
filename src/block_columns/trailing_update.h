#pragma once

#include "block_columns/advance.h"

namespace gpucholmod::block_columns {

/// Updates the groups of a worker, row block after row block, as transforms arrive. V of its groups stays in shared
/// memory; if that has no room for all, V of the groups that come near the diagonal first stays in V_outside. A warp
/// whose next tile is of the same group keeps V in registers, unless products take their factors in place. V of groups
/// that come near the diagonal is also passed to Advance.
///
/// With a `width` of 8 two warps share a group, eight of its columns each, and neither waits for the other. Products
/// with R' then compute eight rows of zeros besides, but R~ takes half the time: quicker if a thread block has few
/// groups left.
///
/// In place, the chain may not have read row block b of block columns up to b + window yet. So other workers, `within`
/// the window, update these block columns. They read V where it is left to Advance, and update row block b when row
/// block b + window is complete: the chain is then past all of these columns.
template <class Segment, int K, class Team, class StagingRing, int width = GROUP>
class TrailingUpdate {
  using T = typename Segment::Scalar;
  using A = typename Segment::Arithmetic;
  using Warp = typename Team::Warp;
  static constexpr bool has_sides = std::is_same_v<Segment, typename Segment::WithSides>;
  static constexpr int sharing = GROUP / width,  ///< warps that share a group
      ahead = Warp::Card::template ahead<K> * sharing < SUBS ? Warp::Card::template ahead<K> * sharing : SUBS;
  using RTiles = Tiles<Segment, ahead, Warp, width>;
  using Parts = BlockTransform<K>;
  static_assert(width == GROUP || !Warp::in_place);
  static_assert(RTiles::words <= Tiles<Segment, Warp::Card::template ahead<K>, Warp>::words);

 public:
  /// Takes over the row blocks up to `end`. team.shared has, for each warp, the words of Tiles of whole groups; then V
  /// of the groups behind the first s.outside, or of groups_within() groups.
  GPUCHOLMOD_HOST_DEVICE TrailingUpdate(Team team, const Segment& segment, int worker, bool within, int end,
                                        StagingRing& ring)
      : team_(team), s_(segment), number_(within ? ~worker : worker), end_(end),
        V_{memory_of_V(), within ? groups_within(segment, share()) : 0}, ring_(ring) {}

  /// Updates row blocks from `begin` on. If `begin` is not the first, another TrailingUpdate has put V in its place.
  /// Returns whether row blocks are left for another TrailingUpdate.
  GPUCHOLMOD_HOST_DEVICE bool run(int begin) {
    team_.each_warp([&](Warp& warp) {
      tiles_[warp] = {warp, team_.shared + warp.id * RTiles::words, s_, range(), cursor(warp, range(), begin)};
      if (begin == s_.first) each_group(warp, begin, [&](int l, int group) { bring(warp, l, group); });
      warp.sync();
    });
    int b = begin;
    GPUCHOLMOD_NO_UNROLL for (; b < end_; ++b)
      if (!team_.all_warps([&](Warp& warp) { return pass(warp, b, tiles_[warp], held_[warp]); })) break;
    Warp::template wait_for_copies<0>();
    const bool goes_on = b == end_ && b < s_.end;
    if (b < s_.blocks && b > s_.first)
      team_.warps_sync([&](Warp& warp) {
        if (held_[warp].is) put_V<Warp, K, width>(warp, held_[warp].state, held_[warp].place);
        warp.sync();
        if (!goes_on) leave(warp, b);
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

  /// Returns whether this worker updates within the window: number_ is then negative.
  GPUCHOLMOD_HOST_DEVICE bool is_within() const { return number_ < 0; }
  GPUCHOLMOD_HOST_DEVICE Share share() const {
    return {is_within() ? ~number_ : number_, is_within() ? s_.workers_within : s_.workers, s_.blocks * GROUPS};
  }
  GPUCHOLMOD_HOST_DEVICE Range range() const {
    int number = number_;
    Warp::compute_anew(number);
    const bool within = number < 0;
    return {within ? s_.workers_within : s_.workers, UPDATE_WARPS / sharing, s_.blocks * GROUPS, end_,
            !within && s_.workers_within > 0 ? s_.window + 1 : 0, within ? s_.window + 1 : s_.blocks - s_.top};
  }

  /// Returns the cursor at which a warp begins row block b: the end if the warp has no other to share groups with.
  GPUCHOLMOD_HOST_DEVICE Cursor<Segment::order> cursor(const Warp& warp, const Range& range, int b) const {
    Cursor<Segment::order> at(range, share().worker, b, warp.id / sharing);
    if (warp.id / sharing >= range.warps) at.leave(range);
    return at;
  }
  /// Returns the first of its group's columns that a warp updates.
  GPUCHOLMOD_HOST_DEVICE static int first_column(const Warp& warp) { return warp.id % sharing * width; }

  /// Returns where V in shared memory begins.
  GPUCHOLMOD_HOST_DEVICE A* memory_of_V() const {
    return team_.shared + UPDATE_WARPS * Tiles<Segment, Warp::Card::template ahead<K>, Warp>::words;
  }

  /// Returns the warp's own part of the place of V of a group, the worker's l-th.
  GPUCHOLMOD_HOST_DEVICE A* place(const Warp& warp, int l, int group) const {
    const int outside = is_within() ? 0 : s_.outside;
    A* const V = l < outside ? s_.V_outside + index_t(group) * GroupsOfV<K, A>::words : V_.of(l - outside);
    return V + first_column(warp) * 8;
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
    bring_V<K, width>(warp, s_, group, first_column(warp), place(warp, l, group));
    warp.sync();
  }

  /// Writes V of a group that comes near the diagonal, for Advance and, in place, for the workers within the window.
  GPUCHOLMOD_HOST_DEVICE void leave_near(const Warp& warp, const State<Warp, K>& state, int group, int c) const {
    A* const to = s_.V + index_t(s_.group_place(group)) * GROUP + first_column(warp);
    GPUCHOLMOD_UNROLL
    for (int j = 0; j < K / 8; ++j)
      store_columns<Access::shared, width>(warp, state.V[j], to + 8 * j * s_.ldv, s_.ldv);
    warp.sync();
    warp.once([&] { Warp::add_release(s_.is_near(c), width); });
  }

  /// Begins a group at row block b: reads V, and finds the places of V and of the result.
  GPUCHOLMOD_HOST_DEVICE void begin(const Warp& warp, int b, const Cursor<Segment::order>& at, Held& held) const {
    held.column = at.group / GROUPS;
    held.place = place(warp, at.l, at.group);
    held.out = out(warp, b, at.group);
    if (is_within() && held.column == b + s_.window && b > s_.first) bring(warp, at.l, at.group);
    get_V<Warp, K, width>(warp, held.state, held.place);
  }
  /// Returns the address of row block b of a group in the result, from the warp's first column on, or null.
  GPUCHOLMOD_HOST_DEVICE T* out(const Warp& warp, int b, int group) const {
    return s_.out ? s_.group_out(b, group) + first_column(warp) * s_.ld : nullptr;
  }
  /// Ends row block b of a group: writes the diagonal, leaves V near the diagonal, and stores V unless `next`, the
  /// cursor, is at the same group.
  GPUCHOLMOD_HOST_DEVICE void end(const Warp& warp, int b, int group, const Cursor<Segment::order>& next,
                                  const A* transform, Held& held) const {
    if (held.column == b && held.out)
      put_diagonal(warp, group % GROUPS * GROUP + first_column(warp), transform + Parts::diagonal, held.out);
    if (held.column == b + 1 + s_.window) leave_near(warp, held.state, group, held.column);
    held.is = !Warp::in_place && next.group == group;
    if (held.is) {
      if (held.out) held.out += NB;
    } else if (!Warp::in_place) {
      put_V<Warp, K, width>(warp, held.state, held.place);
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
      if (s_.is_apart(b, group)) held.out = out(warp, b, group);
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
      Tile<Warp> R_tile[2];
      tiles.take(warp, a, R, width == GROUP ? nullptr : R_tile);
      if constexpr (later)
        GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) Z_left[j] = load_stored_left(warp, Z + j * LEFT);
      if (a > 0 && later) put(warp, done, a - 1, out);
      GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i) done[i] = zero_tile(warp);
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
        if constexpr (!later) Z_left[j] = load_stored_left(warp, Z + j * LEFT);
        if constexpr (width == GROUP) add_transposed(warp, done, as_left(warp, state.V[j]), as_tile(warp, Z_left[j]));
        else warp.template multiply_add_half<0>(done[0], Z_left[j], state.V[j]);
      }
      tiles.next(warp, s_, range(), a);
      const auto add_R = [&](int half) {
        const Left<Warp> C_left = load_stored_left(warp, C + half * LEFT);
        if constexpr (width == GROUP) add_transposed(warp, done, R[half], as_tile(warp, C_left), half);
        else warp.template multiply_add_half<0>(done[0], C_left, R_tile[half]);
      };
      if constexpr (later) {
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
          subtract_half<K>(warp, state.V, R[half], P + 8 * half);
          add_R(half);
        }
      } else {
        add_R(0);
        add_R(1);
        put(warp, done, a, out);
        subtract<K>(warp, state.V, R, P);
      }
    }
    if (later) put(warp, done, SUBS - 1, out);
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
      put(warp, done, a, out);
    }
  }

  /// Writes sub-block a of R~ to memory: of a whole group its transpose, eight rows of R~ in each tile.
  GPUCHOLMOD_HOST_DEVICE void put(const Warp& warp, const Tile<Warp> done[2], int a, T* out) const {
    index_t ld = s_.ld;
    Warp::compute_anew(ld);
    if (!out) return;
    if constexpr (width == GROUP && !Warp::in_place) {
      store_tile<Access::stream>(warp, done[0], out + a * IB, ld);
      store_tile<Access::stream>(warp, done[1], out + a * IB + 8, ld);
    } else {
      GPUCHOLMOD_UNROLL for (int i = 0; i < width / 8; ++i)
        store_columns<Access::stream>(warp, done[i], out + i * 8 * ld + a * IB, ld);
    }
  }

  /// Computes D' <- D' + left B', where D has 16 rows, eight in each tile of D', and B is given as a tile. Rows of B
  /// before 8 * `first` are zero in these columns.
  GPUCHOLMOD_HOST_DEVICE static void add_transposed(const Warp& warp, Tile<Warp> D[2], const Left<Warp>& left,
                                                    const Tile<Warp>& B, int first = 0) {
    if (first == 0) warp.template multiply_add_half<0>(D[0], left, B);
    warp.template multiply_add_half<1>(D[1], left, B);
  }

  /// Writes the diagonal of R~, and zeros below it, in the warp's columns, from column `first` of a diagonal block on.
  GPUCHOLMOD_HOST_DEVICE void put_diagonal(const Warp& warp, int first, const A* diagonal, T* out) const {
    warp.sync();
    warp.each([&](int lane) {
      GPUCHOLMOD_NO_UNROLL for (int i = lane; i < width * NB; i += LANES) {
        const int row = i % NB, column = first + i / NB;
        if (row >= column) out[i / NB * s_.ld + row] = row > column ? T(0) : T(diagonal[column]);
      }
    });
  }

  /// Writes the remaining V, as no row block from b on is done, scaled so that H is I before row block b. V of
  /// right-hand sides behind all row blocks is not scaled, as H is not known there yet (Closing).
  GPUCHOLMOD_HOST_DEVICE void leave(const Warp& warp, int b) const {
    const bool scaled = !has_sides || b < s_.end;
    const A* scaling = s_.transforms + index_t(b) * Parts::stride + Parts::scaling;
    each_group(warp, b, [&](int l, int group) {
      if (is_within() && group / GROUPS == b + s_.window) bring(warp, l, group);
      if (scaled) {
        State<Warp, K> state;
        get_V<Warp, K, width>(warp, state, place(warp, l, group));
        rescale<K>(warp, state, scaling);
        put_V<Warp, K, width>(warp, state, place(warp, l, group));
        warp.sync();
      }
      leave_V<K, width>(warp, place(warp, l, group), s_, group, first_column(warp), s_.left_V);
    });
  }

  Team team_;
  const Segment& s_;
  int number_;  ///< number of the worker; within the window ~ of it
  int end_;     ///< end of the row blocks
  GroupsOfV<K, A> V_;
  StagingRing& ring_;
  typename Team::template PerWarp<RTiles> tiles_;
  typename Team::template PerWarp<Held> held_;
};

/// Updates the groups of a worker in all row blocks. A warp takes a whole group, but half a group from row block
/// s.halved on, except within the window.
template <class Segment, int K, class Team, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void update_groups(Team team, const Segment& s, int worker, bool within, StagingRing& ring) {
  int halved = s.end;
  if constexpr (!Team::Warp::in_place)
    if (!within && s.halved < s.end) halved = s.halved > s.first ? s.halved : s.first;
  if (halved > s.first &&
      !TrailingUpdate<Segment, K, Team, StagingRing>(team, s, worker, within, halved, ring).run(s.first))
    return;
  if constexpr (!Team::Warp::in_place)
    TrailingUpdate<Segment, K, Team, StagingRing, GROUP / 2>(team, s, worker, within, s.end, ring).run(halved);
}

}  // namespace gpucholmod::block_columns
