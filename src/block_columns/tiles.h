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

/// Sub-blocks of R, of the columns of a group, on their way to one warp, in the order of a cursor: by way of a ring of places in
/// shared memory, as many as the segment says.
template <class T, class Warp>
class Tiles {
 public:
  static constexpr int words = IB * GROUP;  ///< doubles that a place takes

  Tiles() = default;
  GPUCHOLMOD_HOST_DEVICE Tiles(const Warp& warp, double* memory, const Segment<T>& s, const Share& share, const Cursor& at)
      : memory_(reinterpret_cast<T*>(memory)), places_(s.places), at_(at) {
    for (int i = 0; i < places_; ++i) fetch(warp, s, share, i);
  }

  /// The next sub-block, as left factors of products: its columns by eight rows each. What comes later begins to come.
  GPUCHOLMOD_HOST_DEVICE void take(const Warp& warp, const Segment<T>& s, const Share& share, Left<Warp> R[2]) {
    wait();
    warp.sync();
    GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) R[half] = load_left(warp, place(taken_) + half * EIGHT, 8);
    warp.sync();
    fetch(warp, s, share, taken_++);
  }

 private:
  static constexpr int EIGHT = 8 * GROUP;  // eight rows of all columns after the other, without gaps
  GPUCHOLMOD_HOST_DEVICE T* place(int i) const { return memory_ + (i & (places_ - 1)) * words; }

  /// Begins to copy what comes next, if there is anything: one copy.
  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, const Segment<T>& s, const Share& share, int to) {
    constexpr int pair = 16 / int(sizeof(T)), parts = IB / pair, columns = LANES / parts;  // that a warp copies at a time
    if (at_.more()) {
      const T* R = s.R + index_t(share.group(at_.l)) * GROUP * s.ld + index_t(at_.b) * NB + a_ * IB;
      warp.each([&](int lane) {
        const int column = lane / parts, row = lane % parts * pair;
        const T* from = R + column * s.ld + row;
        T* at = place(to) + row / 8 * EIGHT + column * 8 + row % 8;
        GPUCHOLMOD_UNROLL for (int i = 0; i < GROUP; i += columns) Warp::copy_16(at + i * 8, from + i * s.ld);
      });
      if (++a_ == SUBS) {
        a_ = 0;
        at_.next(share);
      }
    }
    Warp::end_copy();
  }

  /// Until the oldest copy is there.
  GPUCHOLMOD_HOST_DEVICE void wait() const {
    if (places_ == 8) Warp::template wait_for_copies<7>();
    else if (places_ == 4) Warp::template wait_for_copies<3>();
    else Warp::template wait_for_copies<1>();
  }

  T* memory_ = nullptr;
  int places_ = 2;
  Cursor at_;      ///< what is fetched next, and of it
  int a_ = 0;      ///< sub-block a
  int taken_ = 0;
};

}  // namespace gpucholmod::block_columns
