#pragma once

#include "block_columns/advance.h"

namespace gpucholmod::block_columns {

/// Rewrites the groups of a worker, row block after row block, as messages come; V of all of them stays in shared memory. Those
/// that come near the diagonal are left to Advance besides.
template <class T, int K, class Team, class Inbox>
class Rewrite {
  using Warp = typename Team::Warp;
  using Parts = Transform<K>;

 public:
  /// team.shared: s.places * Tiles<T, Warp>::words for each warp, and V of all groups.
  GPUCHOLMOD_HOST_DEVICE Rewrite(Team team, const Segment<T>& segment, const Share& share, Inbox& inbox)
      : team_(team), s_(segment), share_(share),
        V_{team.shared + REWRITE_WARPS * s_.places * Tiles<T, Warp>::words, share.count() > 1 ? share.count() : 1}, inbox_(inbox) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](Warp& warp) {
      cursor_[warp] = Cursor(share_, s_.first, s_.blocks, 0, s_.blocks, warp.id, REWRITE_WARPS);
      tiles_[warp] = {warp, team_.shared + warp.id * s_.places * Tiles<T, Warp>::words, s_, share_, cursor_[warp]};
      for (Cursor at(share_, s_.first, s_.first + 1, 0, s_.blocks, warp.id, REWRITE_WARPS); at.more(); at.next(share_)) {
        State<Warp, K> state;
        take_V<K>(warp, state, s_, share_.group(at.l));
        put_V<Warp, K>(warp, state, V_.of(at.l));
      }
      warp.sync();
    });
    int b = s_.first;
    GPUCHOLMOD_NO_UNROLL for (; b < s_.blocks; ++b)
      if (!team_.all_warps([&](Warp& warp) { return pass(warp, b, cursor_[warp], tiles_[warp]); })) break;
    Warp::template wait_for_copies<0>();
    if (b < s_.blocks && b > s_.first) team_.each_warp([&](Warp& warp) { leave(warp, b); });
  }

 private:
  /// Row block b, on the warp's groups. False: it is refused.
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, Cursor& cursor, Tiles<T, Warp>& tiles) {
    if (!inbox_.wait(warp, b - s_.first)) return false;
    const double* image = inbox_.slot(b - s_.first);
    for (; cursor.b == b; cursor.next(share_)) {
      const int l = cursor.l;
      const Diagonal diagonal = share_.block(l) == b ? Diagonal{-(share_.group(l) % GROUPS) * GROUP} : Diagonal{};
      T* out = s_.out ? s_.out + index_t(share_.group(l)) * GROUP * s_.ld + index_t(b) * NB : nullptr;
      State<Warp, K> state;
      get_V<Warp, K>(warp, state, V_.of(l));
      Left<Warp> Y[2];
      GPUCHOLMOD_UNROLL for (int a = 0; a <= SUBS; ++a) {  // C_a of a sub-block when the next one has been begun
        Left<Warp> begun[2];
        if (a < SUBS) {
          Left<Warp> R[2];
          tiles.take(warp, s_, share_, R);
          begin_sub_block<K>(warp, state, a, image, R, begun);
        }
        if (a > 0 && out) finish_sub_block(warp, a - 1, image + Parts::C, Y, out, diagonal);
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) Y[half] = begun[half];
      }
      put_V<Warp, K>(warp, state, V_.of(l));
      if (share_.block(l) == b + 1 + s_.window) {
        leave_V<K>(warp, state, s_, share_.group(l));
        warp.sync();
        warp.once([&] { Warp::add_release(s_.is_near + share_.block(l)); });
      }
      warp.sync();
    }
    inbox_.release(warp, b - s_.first);
    return true;
  }

  /// R~_a = C_a^-T Y_a, to memory.
  GPUCHOLMOD_HOST_DEVICE void finish_sub_block(const Warp& warp, int a, const double* C, const Left<Warp> Y[2], T* out,
                                               Diagonal diagonal) const {
    Tile<Warp> R[2];
    multiply_by_C(warp, C + a * IB * LDC, Y, R);
    GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
      const int row = a * IB + 8 * half;
      if (diagonal.crosses()) clear_below(warp, R[half], diagonal, row);
      store_tile<Access::stream>(warp, R[half], out + row, s_.ld);
    }
  }

  /// Row block b is refused: V of what is left to do, scaled so that H is I again.
  GPUCHOLMOD_HOST_DEVICE void leave(const Warp& warp, int b) {
    const double* scaling = s_.messages + index_t(b) * Parts::words + Parts::T;
    for (Cursor at(share_, b, b + 1, 0, s_.blocks, warp.id, REWRITE_WARPS); at.more(); at.next(share_)) {
      State<Warp, K> state;
      get_V<Warp, K>(warp, state, V_.of(at.l));
      rescale<K>(warp, state, scaling);
      leave_V<K>(warp, state, s_, share_.group(at.l));
    }
  }

  Team team_;
  const Segment<T>& s_;
  Share share_;
  GroupsOfV<K> V_;
  Inbox& inbox_;
  typename Team::template PerWarp<Cursor> cursor_;
  typename Team::template PerWarp<Tiles<T, Warp>> tiles_;
};

}  // namespace gpucholmod::block_columns
