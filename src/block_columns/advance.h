#pragma once

#include "block_columns/apply.h"
#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// V of a worker's groups in shared memory: a tile for each 8 columns of V.
template <int K>
struct GroupsOfV {
  static constexpr int words = GROUP * K;
  double* at;
  int slots;  ///< groups there is room for; a group has the place of the one `slots` before it
  GPUCHOLMOD_HOST_DEVICE double* of(int l) const { return at + l % slots * words; }
};

template <class Warp, int K>
GPUCHOLMOD_HOST_DEVICE void get_V(const Warp& warp, State<Warp, K>& state, const double* from) {
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = load_tile<Access::shared>(warp, from + j * 8 * GROUP, 8);
}
template <class Warp, int K>
GPUCHOLMOD_HOST_DEVICE void put_V(const Warp& warp, const State<Warp, K>& state, double* to) {
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) store_tile(warp, state.V[j], to + j * 8 * GROUP, 8);
}

/// Where the warps of Advance say that they are done, behind a word for each group.
GPUCHOLMOD_HOST_DEVICE int* advance_left(int* arrived, const Share& share) { return arrived + share.count(); }
GPUCHOLMOD_HOST_DEVICE int local_words(const Share& share) { return share.count() + ADVANCE_WARPS; }

/// Room for the groups of a worker that are between Rewrite and the chain. When Rewrite is past row block b, and hands over block
/// column b + 1 + window, P_b is known, so block column b has been handed to the chain, and its place is free.
template <class T>
GPUCHOLMOD_HOST_DEVICE int near_groups(const Segment<T>& s, const Share& share) {
  const int all = share.count(), few = ((s.window + 1) * GROUPS + GROUPS - 1 + share.workers - 1) / share.workers;
  return s.window >= s.blocks || few > all ? (all > 1 ? all : 1) : few;
}

/// V of a worker's groups, and of those that Advance begins with; the two are in the same place where rewriting comes last.
/// `arrived` as in Advance. Ends in a barrier.
template <int K, class T, class Team>
GPUCHOLMOD_HOST_DEVICE void begin_worker(Team team, const Segment<T>& s, const Share& share, GroupsOfV<K> V, GroupsOfV<K> near_V,
                                         int* arrived) {
  const index_t ldv = index_t(s.blocks) * NB;
  const int first = share.first_from(s.first * GROUPS), count = share.count();
  team.threads_sync([&](int thread) {
    if (thread < ADVANCE_WARPS) advance_left(arrived, share)[thread] = 0;
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < (count - first) * GroupsOfV<K>::words; i += team.size() * LANES) {
      const int l = first + i / GroupsOfV<K>::words, q = i / GROUP % K, m = i % GROUP;
      const bool is_near = share.block(l) <= s.first + s.window;
      const int at = q / 8 * 8 * GROUP + m * 8 + q % 8;
      const double v = s.V[q * ldv + index_t(share.group(l)) * GROUP + m];
      V.of(l)[at] = v;
      if (is_near) near_V.of(l)[at] = v;
      if (i % GroupsOfV<K>::words == 0) arrived[l] = is_near;
    }
  });
}

/// The order in which a warp takes its groups: row block after row block, of each those that begin no further left than
/// block column b + `nearest`, and no further right than b + `farthest`.
class Cursor {
 public:
  int b = 0, l = 0;

  Cursor() = default;
  /// Of row blocks [begin, end), for a warp of so many.
  GPUCHOLMOD_HOST_DEVICE Cursor(const Share& share, int begin, int end, int nearest, int farthest, int warp, int warps)
      : b(begin), l(warp), end_(end), nearest_(nearest), farthest_(farthest), warps_(warps), least_(warp) {
    seek(share);
  }
  GPUCHOLMOD_HOST_DEVICE bool more() const { return b < end_; }
  GPUCHOLMOD_HOST_DEVICE void leave() { b = end_; }
  GPUCHOLMOD_HOST_DEVICE void next(const Share& share) {
    l += warps_;
    seek(share);
  }

 private:
  GPUCHOLMOD_HOST_DEVICE void seek(const Share& share) {
    for (; b < end_; ++b, l = least_) {
      while (share.group(least_) < (b + nearest_) * GROUPS) least_ += warps_;
      if (l < least_) l = least_;
      if (share.group(l) < share.groups && share.group(l) < (b + farthest_ + 1) * GROUPS) return;
    }
  }

  int end_ = 0, nearest_ = 0, farthest_ = 0, warps_ = 1;
  int least_ = 0;  ///< the warp's first group that is near enough
};

/// Takes V of groups near the diagonal past the row blocks before it, by P alone, as P comes, and hands it to the chain.
template <class T, int K, class Team, class Inbox>
class Advance {
  using Warp = typename Team::Warp;
  static constexpr int prefetched = 4;  ///< row blocks ahead of the one that is fetched

 public:
  /// `arrived`: local_words(); one for each group of the worker, not zero once its V is in `V`.
  GPUCHOLMOD_HOST_DEVICE Advance(Team team, const Segment<T>& segment, const Share& share, GroupsOfV<K> V, int* arrived,
                                 Inbox& inbox)
      : team_(team), s_(segment), share_(share), V_(V), arrived_(arrived), inbox_(inbox) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    go();
    team_.each_warp([&](Warp& warp) {
      warp.sync();
      warp.once([&] { Warp::store_local(advance_left(arrived_, share_) + warp.id, 1); });
    });
  }

 private:
  GPUCHOLMOD_HOST_DEVICE void go() {
    const int end = s_.blocks - 1 - REACH;
    typename Team::template PerWarp<Cursor> cursors;
    typename Team::template PerWarp<Column<Warp>> columns;
    team_.each_warp([&](Warp& warp) {
      const Cursor cursor(share_, s_.first, end, 1 + REACH, s_.window, warp.id, ADVANCE_WARPS);
      if (cursor.more())
        GPUCHOLMOD_UNROLL for (int i = 0; i < NB / 8; ++i) fetch(warp, columns[warp], cursor, i);
      cursors[warp] = cursor;
    });
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first; b < end; ++b)
      if (!team_.all_warps([&](Warp& warp) { return pass(warp, b, cursors[warp], columns[warp]); })) return;
  }

  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, Column<Warp>& column, const Cursor& at, int i) const {
    fetch_rows<Access::transform>(warp, column.rows[i],
                                  s_.R + index_t(share_.group(at.l)) * GROUP * s_.ld + index_t(at.b) * NB + 8 * i, s_.ld);
  }

  /// What the group needs some row blocks later, into the second-level cache.
  GPUCHOLMOD_HOST_DEVICE void prefetch(const Warp& warp, const Cursor& at) const {
    const int b = at.b + prefetched < share_.block(at.l) ? at.b + prefetched : share_.block(at.l);
    constexpr int line = 128 / int(sizeof(T)), lines = NB / line;
    const T* from = s_.R + index_t(share_.group(at.l)) * GROUP * s_.ld + index_t(b) * NB;
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int i = lane; i < GROUP * lines; i += LANES) Warp::prefetch(from + i / lines * s_.ld + i % lines * line);
    });
  }

  /// Row block b, on the warp's groups. False: nothing comes any more.
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, Cursor& cursor, Column<Warp>& column) {
    if (!inbox_.wait(warp, b - s_.first)) return false;
    const double* P = inbox_.slot(b - s_.first);
    while (cursor.b == b) {
      const int l = cursor.l;
      if (!wait_for_V(warp, b, l)) {
        cursor.leave();
        break;
      }
      State<Warp, K> state;
      get_V<Warp, K>(warp, state, V_.of(l));
      cursor.next(share_);
      const bool more = cursor.more(), last = share_.block(l) == b + 1 + REACH;
      if (more) prefetch(warp, cursor);
      GPUCHOLMOD_UNROLL for (int i = 0; i < NB / 8; ++i) {
        GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
          warp.template multiply_add<-1, Access::shared>(state.V[j], column.rows[i], P + 8 * j * LDB + 8 * i, LDB);
        if (more && !last) fetch(warp, column, cursor, i);
      }
      if (last) {  // before anything is fetched: to hand over means to wait for it
        hand_over(warp, state, l);
        if (more)
          GPUCHOLMOD_UNROLL for (int i = 0; i < NB / 8; ++i) fetch(warp, column, cursor, i);
      } else {
        put_V<Warp, K>(warp, state, V_.of(l));
      }
      warp.sync();
    }
    inbox_.release(warp, b - s_.first);
    return true;
  }

  /// Waits for V of a group. False: it does not come, as a row block before b is refused.
  GPUCHOLMOD_HOST_DEVICE bool wait_for_V(const Warp& warp, int b, int l) const {
    while (Warp::load_local(arrived_ + l) == 0) {
      if (is_over<Warp>(s_, b)) return false;
      Warp::pause();
    }
    warp.sync();
    return true;
  }

  GPUCHOLMOD_HOST_DEVICE void hand_over(const Warp& warp, const State<Warp, K>& state, int l) const {
    double* to = s_.handed + index_t(share_.block(l)) * K * LDB + share_.group(l) % GROUPS * GROUP;
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) store_transposed(warp, state.V[j], to + 8 * j * LDB, LDB);
    warp.sync();
    warp.once([&] { Warp::add_release(s_.has_V + share_.block(l)); });
  }

  Team team_;
  const Segment<T>& s_;
  Share share_;
  GroupsOfV<K> V_;
  int* arrived_;
  Inbox& inbox_;
};

}  // namespace gpucholmod::block_columns
