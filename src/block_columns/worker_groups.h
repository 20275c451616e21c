#pragma once

#include "block_columns/advance.h"

namespace gpucholmod::block_columns {

/// Multiplies V of a group, at its place `from`, by `scaling` unless that is null, and copies V to the memory `V`, with
/// leading dimension ldv.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL void leave_scaled(Warp warp, typename Warp::Arithmetic* from,
                                              const typename Warp::Arithmetic* scaling, typename Warp::Arithmetic* V,
                                              index_t ldv) {
  if (scaling) {
    State<Warp, K> state;
    get_V<Warp, K>(warp, state, from);
    rescale<K>(warp, state, scaling);
    put_V<Warp, K>(warp, state, from);
    warp.sync();
  }
  leave_V<K>(warp, from, V, ldv);
}

/// The groups of a worker: the places of their V and of the result, and the steps that TrailingUpdate and LastGroups
/// have in common.
template <class Segment, int K, class Team>
class WorkerGroups {
 protected:
  using T = typename Segment::Scalar;
  using A = typename Segment::Arithmetic;
  using Warp = typename Team::Warp;
  using Parts = BlockTransform<K>;
  using RTiles = Tiles<Segment, Warp::Card::template ahead<K>, Warp>;

  /// team.shared has, for each warp, the words of Tiles; then V of the groups behind the first s.outside, or of
  /// groups_within() groups.
  GPUCHOLMOD_HOST_DEVICE WorkerGroups(Team team, const Segment& segment, int worker, bool within)
      : team_(team), s_(segment), number_(within ? ~worker : worker),
        V_{team.shared + UPDATE_WARPS * RTiles::words, within ? groups_within(segment, share()) : 0} {}

  /// Returns whether this worker updates within the window: number_ is then negative.
  GPUCHOLMOD_HOST_DEVICE bool is_within() const { return number_ < 0; }
  GPUCHOLMOD_HOST_DEVICE Share share() const {
    return {is_within() ? ~number_ : number_, is_within() ? s_.workers_within : s_.workers, s_.blocks * GROUPS};
  }
  /// Returns the tiles of the worker in row blocks up to `end`, for `warps` warps that take them in turn.
  GPUCHOLMOD_HOST_DEVICE Range range(int warps, int end) const {
    int number = number_;
    Warp::compute_anew(number);
    const bool within = number < 0;
    return {within ? s_.workers_within : s_.workers, warps, s_.blocks * GROUPS, end,
            !within && s_.workers_within > 0 ? s_.window + 1 : 0, within ? s_.window + 1 : s_.blocks - s_.top};
  }

  /// Returns the place of V of a group, the worker's l-th.
  GPUCHOLMOD_HOST_DEVICE A* place(int l, int group) const {
    const int outside = is_within() ? 0 : s_.outside;
    return l < outside ? s_.V_outside + index_t(group) * GroupsOfV<K, A>::words : V_.of(l - outside);
  }
  /// Returns the address of row block b of a group in the result, or null.
  GPUCHOLMOD_HOST_DEVICE T* out(int b, int group) const { return s_.out ? s_.group_out(b, group) : nullptr; }

  /// Writes V of a group that comes near the diagonal, for Advance and, in place, for the workers within the window.
  GPUCHOLMOD_HOST_DEVICE void leave_near(const Warp& warp, const State<Warp, K>& state, int group) const {
    A* const to = s_.V + index_t(s_.group_place(group)) * GROUP;
    GPUCHOLMOD_UNROLL
    for (int j = 0; j < K / 8; ++j) store_columns(warp, state.V[j], to + 8 * j * s_.ldv, s_.ldv);
    warp.sync();
    warp.once([&] { Warp::add_release(s_.is_near(group / GROUPS), GROUP); });
  }

  /// Writes the remaining V of a group from its place, as no row block from b on is done, scaled so that H is I before
  /// row block b. V of right-hand sides behind all row blocks is not scaled, as H is not known there yet (Closing).
  GPUCHOLMOD_HOST_DEVICE void leave(const Warp& warp, int b, A* place, int group) const {
    const bool scaled = !std::is_same_v<Segment, typename Segment::WithSides> || b < s_.end;
    leave_scaled<K>(warp, place, scaled ? s_.transforms + index_t(b) * Parts::stride + Parts::scaling : nullptr,
                    s_.left_V + index_t(s_.group_place(group)) * GROUP, s_.ldv);
  }

  /// Computes D' <- D' + left B', where D has 16 rows, eight in each tile of D', and B is given as a tile. Rows of B
  /// before 8 * `first` are zero in these columns.
  GPUCHOLMOD_HOST_DEVICE static void add_transposed(const Warp& warp, Tile<Warp> D[2], const Left<Warp>& left,
                                                    const Tile<Warp>& B, int first = 0) {
    if (first == 0) warp.template multiply_add_half<0>(D[0], left, B);
    warp.template multiply_add_half<1>(D[1], left, B);
  }

  /// Writes sub-block a of R~ to memory. The tiles are its transpose, eight rows of R~ in each, unless products take
  /// their factors in place.
  GPUCHOLMOD_HOST_DEVICE void put(const Warp& warp, const Tile<Warp> done[2], int a, T* out) const {
    index_t ld = s_.ld;
    Warp::compute_anew(ld);
    if (!out) return;
    GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i)
      if constexpr (Warp::in_place) store_columns<Access::stream>(warp, done[i], out + i * 8 * ld + a * IB, ld);
      else store_tile<Access::stream>(warp, done[i], out + a * IB + i * 8, ld);
  }

  /// Writes the diagonal of R~, and zeros below it, in `rows` rows of a diagonal block from row `first` on, in the
  /// columns of a group.
  template <int rows>
  GPUCHOLMOD_HOST_DEVICE void put_diagonal(const Warp& warp, int group, const A* diagonal, T* out, int first) const {
    warp.sync();
    warp.each([&](int lane) {
      GPUCHOLMOD_NO_UNROLL for (int i = lane; i < GROUP * rows; i += LANES) {
        const int row = first + i % rows, column = group % GROUPS * GROUP + i / rows;
        if (row >= column) out[i / rows * s_.ld + row] = row > column ? T(0) : T(diagonal[column]);
      }
    });
  }

  Team team_;
  const Segment& s_;
  int number_;  ///< number of the worker; within the window ~ of it

 private:
  GroupsOfV<K, A> V_;
};

}  // namespace gpucholmod::block_columns
