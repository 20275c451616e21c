#pragma once

#include "block_columns/advance.h"

namespace gpucholmod::block_columns {

template <int K>
struct RewriteTiles {
  static constexpr int sub_blocks = K > 16 ? 2 : SUBS;  ///< of R in shared memory, for each warp
  static constexpr int words = REWRITE_WARPS * sub_blocks * IB * GROUP;
};

/// Rewrites the groups of a worker, row block after row block, as messages come; V of all of them stays in shared memory.
template <class T, int K, class Team, class Inbox>
class Rewrite {
  using Warp = typename Team::Warp;
  using Parts = Transform<K>;

 public:
  /// team.shared: RewriteTiles<K>::words. `V`: of all groups; `near_V` and `arrived`: those of Advance.
  GPUCHOLMOD_HOST_DEVICE Rewrite(Team team, const Segment<T>& segment, const Share& share, GroupsOfV<K> V, GroupsOfV<K> near_V,
                                 int* arrived, Inbox& inbox)
      : team_(team), s_(segment), share_(share), V_(V), near_V_(near_V), arrived_(arrived), inbox_(inbox) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    typename Team::template PerWarp<Cursor> cursors;
    team_.each_warp([&](Warp& warp) {
      cursors[warp] = Cursor(share_, s_.first, s_.blocks, 0, s_.blocks, warp.id, REWRITE_WARPS);
      if (s_.rewrite_last) {
        inbox_.wait(warp, 0);
        V_again(warp);
      }
      GPUCHOLMOD_NO_UNROLL for (int a = 0; a < AHEAD; ++a) fetch(warp, cursors[warp], a);
    });
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first; b < s_.blocks; ++b)
      if (!team_.all_warps([&](Warp& warp) { return pass(warp, b, cursors[warp]); })) {
        Warp::template wait_for_copies<0>();
        if (b > s_.first) team_.each_warp([&](Warp& warp) { leave(warp, b); });
        return;
      }
  }

 private:
  GPUCHOLMOD_HOST_DEVICE index_t offset(int b, int l) const {
    return index_t(share_.group(l)) * GROUP * s_.ld + index_t(b) * NB;
  }
  /// Sub-blocks of R that a warp has in hand or on their way, eight rows of its columns after the other, without gaps.
  static constexpr int AHEAD = RewriteTiles<K>::sub_blocks, EIGHT = 8 * GROUP;
  GPUCHOLMOD_HOST_DEVICE T* place(const Warp& warp, int a) const {
    return reinterpret_cast<T*>(team_.shared) + (warp.id * AHEAD + a % AHEAD) * 2 * EIGHT;
  }

  /// Begins to copy sub-block a of what the cursor is at, if there is anything: one copy.
  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, const Cursor& at, int a) const {
    constexpr int words = 16 / int(sizeof(T)), parts = IB / words, columns = LANES / parts;  // that a warp copies at a time
    if (at.more())
      warp.each([&](int lane) {
        const int column = lane / parts, row = lane % parts * words;
        const T* from = s_.R + offset(at.b, at.l) + a * IB + column * s_.ld + row;
        T* to = place(warp, a) + row / 8 * EIGHT + column * 8 + row % 8;
        GPUCHOLMOD_UNROLL for (int i = 0; i < GROUP; i += columns) Warp::copy_16(to + i * 8, from + i * s_.ld);
      });
    Warp::end_copy();
  }

  /// Row block b, on the warp's groups. False: it is refused.
  GPUCHOLMOD_HOST_DEVICE bool pass(const Warp& warp, int b, Cursor& cursor) {
    if (!inbox_.wait(warp, b - s_.first)) return false;
    const double* image = inbox_.slot(b - s_.first);
    while (cursor.b == b) {
      const int l = cursor.l;
      const Diagonal diagonal = share_.block(l) == b ? Diagonal{-(share_.group(l) % GROUPS) * GROUP} : Diagonal{};
      T* out = s_.out ? s_.out + offset(b, l) : nullptr;
      State<Warp, K> state;
      get_V<Warp, K>(warp, state, V_.of(l));
      const Cursor now = cursor;
      cursor.next(share_);
      Left<Warp> Y[2];
      GPUCHOLMOD_UNROLL for (int a = 0; a <= SUBS; ++a) {  // C_a of a sub-block when the next one has been begun
        Left<Warp> begun[2];
        if (a < SUBS) {
          Warp::template wait_for_copies<AHEAD - 1>();
          warp.sync();
          Left<Warp> R[2];
          GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) R[half] = load_left(warp, place(warp, a) + half * EIGHT, 8);
          warp.sync();
          if (a + AHEAD < SUBS) fetch(warp, now, a + AHEAD);
          else fetch(warp, cursor, a + AHEAD - SUBS);
          begin_sub_block<K>(warp, state, a, image, R, begun);
        }
        if (a > 0 && out) finish_sub_block(warp, a - 1, image + Parts::C, Y, out, diagonal);
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) Y[half] = begun[half];
      }
      put_V<Warp, K>(warp, state, V_.of(l));
      if (share_.block(l) == b + 1 + s_.window) {
        put_V<Warp, K>(warp, state, near_V_.of(l));
        warp.sync();
        warp.once([&] { Warp::store_local(arrived_ + l, 1); });
      }
      warp.sync();
    }
    inbox_.release(warp, b - s_.first);
    return true;
  }

  /// V as it is at the start, to where Advance has had it, when that is done.
  GPUCHOLMOD_HOST_DEVICE void V_again(const Warp& warp) const {
    GPUCHOLMOD_NO_UNROLL for (int i = 0; i < ADVANCE_WARPS; ++i)
      while (Warp::load_local(advance_left(arrived_, share_) + i) == 0) Warp::pause();
    warp.sync();
    const index_t ldv = index_t(s_.blocks) * NB;
    for (Cursor at(share_, s_.first, s_.first + 1, 0, s_.blocks, warp.id, REWRITE_WARPS); at.more(); at.next(share_)) {
      State<Warp, K> state;
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        state.V[j] = load_columns(warp, s_.V + 8 * j * ldv + index_t(share_.group(at.l)) * GROUP, ldv);
      put_V<Warp, K>(warp, state, V_.of(at.l));
    }
    warp.sync();
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
    const index_t ldv = index_t(s_.blocks) * NB;
    for (Cursor at(share_, b, b + 1, 0, s_.blocks, warp.id, REWRITE_WARPS); at.more(); at.next(share_)) {
      State<Warp, K> state;
      get_V<Warp, K>(warp, state, V_.of(at.l));
      rescale<K>(warp, state, scaling);
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        store_transposed(warp, state.V[j], s_.V + 8 * j * ldv + index_t(share_.group(at.l)) * GROUP, ldv);
    }
  }

  Team team_;
  const Segment<T>& s_;
  Share share_;
  GroupsOfV<K> V_, near_V_;
  int* arrived_;
  Inbox& inbox_;
};

}  // namespace gpucholmod::block_columns
