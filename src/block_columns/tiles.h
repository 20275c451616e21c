#pragma once

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

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

/// Sub-blocks of R, of the columns of a group, on their way to one warp, in the order of a cursor: by way of as many places in
/// shared memory as V of K columns leaves room for. All that changes from one sub-block to the next is known to the compiler:
/// a warp that has a tile to itself waits for every instruction.
template <class T, int K, class Warp>
class Tiles {
  static constexpr int ahead = K > 16 ? 2 : SUBS;  ///< places
  static constexpr int EIGHT = 8 * GROUP;          ///< eight rows of all columns after the other, without gaps
  static constexpr int pair = 16 / int(sizeof(T)), parts = IB / pair, columns = LANES / parts;  ///< that a warp copies at a time

 public:
  static constexpr int words = ahead * IB * GROUP;  ///< doubles of shared memory, whatever T is

  Tiles() = default;
  GPUCHOLMOD_HOST_DEVICE Tiles(const Warp& warp, double* memory, const Segment<T>& s, const Share& share, const Cursor& at)
      : memory_(reinterpret_cast<T*>(memory)), at_(at) {
    point(warp, s, share);
    GPUCHOLMOD_UNROLL for (int a = 0; a < ahead; ++a) fetch(warp, a);
  }

  /// Sub-block a of the next tile, as left factors of products: its columns by eight rows each. What comes later begins to come.
  GPUCHOLMOD_HOST_DEVICE void take(const Warp& warp, const Segment<T>& s, const Share& share, int a, Left<Warp> R[2]) {
    Warp::template wait_for_copies<ahead - 1>();
    warp.sync();
    GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) R[half] = load_left(warp, place(a) + half * EIGHT, 8);
    warp.sync();
    if (a == SUBS - ahead) {
      at_.next(share);
      point(warp, s, share);
    }
    fetch(warp, (a + ahead) % SUBS);
  }

 private:
  GPUCHOLMOD_HOST_DEVICE T* place(int a) const { return memory_ + a % ahead * 2 * EIGHT; }

  /// To what comes from now on.
  GPUCHOLMOD_HOST_DEVICE void point(const Warp& warp, const Segment<T>& s, const Share& share) {
    more_ = at_.more();
    if (!more_) return;
    const T* tile = s.R + index_t(share.group(at_.l)) * GROUP * s.ld + index_t(at_.b) * NB;
    warp.each([&](int lane) {
      GPUCHOLMOD_UNROLL for (int i = 0; i < GROUP / columns; ++i)
        from_[i][lane] = tile + (i * columns + lane / parts) * s.ld + lane % parts * pair;
    });
  }

  /// Begins to copy sub-block a, if there is anything: one copy.
  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, int a) {
    if (more_)
      warp.each([&](int lane) {
        const int row = lane % parts * pair;
        T* to = place(a) + row / 8 * EIGHT + lane / parts * 8 + row % 8;
        GPUCHOLMOD_UNROLL for (int i = 0; i < GROUP / columns; ++i)
          Warp::copy_16(to + i * columns * 8, from_[i][lane] + a * IB);
      });
    Warp::end_copy();
  }

  T* memory_ = nullptr;
  Cursor at_;  ///< the tile that is fetched
  bool more_ = false;
  typename Warp::template PerLane<const T*> from_[GROUP / columns];  ///< where a lane begins in it
};

}  // namespace gpucholmod::block_columns
