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
  /// team.shared: Tiles<T, K, Warp>::words for each warp, and V of all groups.
  GPUCHOLMOD_HOST_DEVICE Rewrite(Team team, const Segment<T>& segment, const Share& share, Inbox& inbox)
      : team_(team), s_(segment), share_(share),
        V_{team.shared + REWRITE_WARPS * Tiles<T, K, Warp>::words, 0}, inbox_(inbox) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](Warp& warp) {
      cursor_[warp] = Cursor(share_, s_.first, s_.blocks, 0, s_.blocks, warp.id, REWRITE_WARPS);
      tiles_[warp] = {warp, team_.shared + warp.id * Tiles<T, K, Warp>::words, s_, share_, cursor_[warp]};
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
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, Cursor& cursor, Tiles<T, K, Warp>& tiles) {
    if (!inbox_.wait(warp, b - s_.first)) return false;
    const double* image = inbox_.slot(b - s_.first);
    for (; cursor.b == b; cursor.next(share_)) {
      const int l = cursor.l, group = share_.group(l);
      T* out = s_.out ? s_.out + index_t(group) * GROUP * s_.ld + index_t(b) * NB : nullptr;
      State<Warp, K> state;
      get_V<Warp, K>(warp, state, V_.of(l));
      rewrite(warp, image, tiles, state, out);
      if (share_.block(l) == b && out) clear_below_diagonal(warp, group % GROUPS * GROUP, out);
      put_V<Warp, K>(warp, state, V_.of(l));
      if (share_.block(l) == b + 1 + s_.window) {
        leave_V<K>(warp, state, s_, group);
        warp.sync();
        warp.once([&] { Warp::add_release(s_.is_near + share_.block(l)); });
      }
      warp.sync();
    }
    inbox_.release(warp, b - s_.first);
    return true;
  }

  /// The next tile and its V: of each sub-block Y = R_a + sigma Z_a V and V <- V - R_a'P_a, and, one behind, R~_a = C_a^-T Y_a. In
  /// this order no product waits for the one before it.
  GPUCHOLMOD_HOST_DEVICE void rewrite(const Warp& warp, const double* image, Tiles<T, K, Warp>& tiles, State<Warp, K>& state, T* out) {
    Left<Warp> Y[2];
    GPUCHOLMOD_UNROLL for (int a = 0; a <= SUBS; ++a) {
      const double *Z = image + Parts::Z + a * IB * Parts::LDK, *P = image + Parts::P + a * IB, *C = image + Parts::C + (a - 1) * IB * LDC;
      Left<Warp> R[2];
      Tile<Warp> sum[2], done[2] = {zero_tile(warp), zero_tile(warp)};
      if (a < SUBS) {
        tiles.take(warp, s_, share_, a, R);
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) sum[half] = as_tile(warp, R[half]);
      }
      if (a > 0) {
        warp.template multiply_add<1, Access::shared>(done[0], Y[0], C, LDC);
        warp.template multiply_add<1, Access::shared>(done[1], Y[0], C + 8 * LDC, LDC);
      }
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
        if (a == SUBS) break;
        const Left<Warp> V = as_left(warp, state.V[j]);
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
          warp.template multiply_add<1, Access::shared>(sum[half], V, Z + 8 * half * Parts::LDK + 8 * j, Parts::LDK);
          warp.template multiply_add<-1, Access::shared>(state.V[j], R[half], P + 8 * j * LDB + 8 * half, LDB);
        }
      }
      if (a > 0) {
        warp.template multiply_add<1, Access::shared>(done[1], Y[1], C + 8 * LDC + 8, LDC);
        if (out)
          GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
            store_tile<Access::stream>(warp, done[half], out + (a - 1) * IB + 8 * half, s_.ld);
      }
      if (a < SUBS)
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) Y[half] = as_left(warp, sum[half]);
    }
  }

  /// Of a group that begins in column `first` of a diagonal block.
  GPUCHOLMOD_HOST_DEVICE void clear_below_diagonal(const Warp& warp, int first, T* out) const {
    warp.sync();
    warp.each([&](int lane) {
      GPUCHOLMOD_NO_UNROLL for (int i = lane; i < GROUP * NB; i += LANES)
        if (i % NB > first + i / NB) out[i / NB * s_.ld + i % NB] = 0;
    });
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
  typename Team::template PerWarp<Tiles<T, K, Warp>> tiles_;
};

}  // namespace gpucholmod::block_columns
