#pragma once

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// Describes the tiles that the warps of a thread block take: in row block b, up to `end`, the groups of one of
/// `workers` workers in `reach` block columns from b + `nearest` on. `others`: if each rank has row blocks of its own
/// (Segment::adds_up()), the number of row blocks of other ranks between two strips of this rank; a cursor then begins
/// at the first row block of a strip.
struct Range {
  int workers, warps, groups, end, nearest, reach, others = 0;
};

/// The order in which a warp takes its groups: row block after row block. Loop invariants are in the range, which every
/// call receives: to keep them here would cost registers.
template <Order order>
class Cursor {
 public:
  int b = 0, l = 0, group = 0;

  Cursor() = default;
  GPUCHOLMOD_HOST_DEVICE Cursor(const Range& range, int worker, int begin, int warp)
      : b(begin), least_(warp), least_group_(worker + warp * range.workers) {
    seek(range);
  }
  GPUCHOLMOD_HOST_DEVICE void leave(const Range& range) { b = range.end; }
  /// Moves to the next group. Returns false if the cursor has taken the short way, of a few instructions: to the same
  /// group of the next row block, as the warp has no other group there. The long way may lead to that group too.
  GPUCHOLMOD_HOST_DEVICE bool next(const Range& range) {
    if (b + 1 < alone_until_) {
      ++b;
      return false;
    }
    seek_next(range);
    return true;
  }

 private:
  GPUCHOLMOD_HOST_DEVICE void seek_next(const Range& range) {
    l += range.warps;
    group += range.warps * range.workers;
    if (is_in(range, group)) return;
    next_row_block(range);
    seek(range);
  }
  GPUCHOLMOD_HOST_DEVICE bool is_in(const Range& range, int g) const {
    return g < range.groups && g < nearest(range) + range.reach * GROUPS;
  }
  /// Returns the first group number within reach at row block b.
  GPUCHOLMOD_HOST_DEVICE int nearest(const Range& range) const { return (b + range.nearest) * GROUPS; }
  GPUCHOLMOD_HOST_DEVICE void next_row_block(const Range& range) {
    ++b;
    if (order == Order::back && b % BLOCKS == 0) b += range.others;
  }
  GPUCHOLMOD_HOST_DEVICE void seek(const Range& range) {
    for (; b < range.end; next_row_block(range)) {
      while (least_group_ < nearest(range)) {
        least_ += range.warps;
        least_group_ += range.warps * range.workers;
      }
      l = least_;
      group = least_group_;
      if (is_in(range, group)) break;
    }
    alone_until_ = order == Order::forward ? alone_until(range) : 0;
  }
  /// Returns the row block before which the warp has this group, its least, and no other; b or less if the warp has
  /// other groups already.
  GPUCHOLMOD_HOST_DEVICE int alone_until(const Range& range) const {
    const int other = group + range.warps * range.workers, until = group / GROUPS - range.nearest + 1,
              comes = other < range.groups ? other / GROUPS - range.nearest - range.reach + 1 : range.end;
    const int least = until < comes ? until : comes;
    return least < range.end ? least : range.end;
  }

  int least_ = 0, least_group_ = 0;  ///< the warp's first group from nearest() on
  int alone_until_ = 0;              ///< value of alone_until()
};

/// The words of shared memory from eight rows of all columns of a group, column after column without gaps, to the next
/// eight rows.
template <class Card>
constexpr int eight_rows = 8 * GROUP + (Card::gaps ? GROUP / 2 : 0);

/// Brings sub-blocks of R to one warp through places in shared memory, in the order of a cursor, `ahead` of them in
/// advance. A sub-block is sixteen rows of the columns of a group (with Order::back sixteen columns of its rows). The
/// compiler knows all that changes from one sub-block to the next, as a warp that has a tile to itself waits for every
/// instruction.
template <class Segment, int ahead, class Warp>
class Tiles {
  using T = typename Segment::Scalar;
  static constexpr bool forward = Segment::order == Order::forward;
  using Cursor = block_columns::Cursor<Segment::order>;
  /// Numbers in a copy, copies for a column of a sub-block, and columns that a warp copies at a time.
  static constexpr int pair = 16 / int(sizeof(T)), parts = IB / pair, columns = LANES / parts;
  static_assert(SUBS % ahead == 0);

 public:
  static constexpr int EIGHT = eight_rows<typename Warp::Card>;
  /// The size of shared memory on a card, in words of the arithmetic, whatever T is.
  template <class Card>
  static constexpr int words_on = ahead * 2 * eight_rows<Card>;
  static constexpr int words = words_on<typename Warp::Card>;

  Tiles() = default;
  GPUCHOLMOD_HOST_DEVICE Tiles(const Warp& warp, typename Segment::Arithmetic* memory, const Segment& s,
                               const Range& range, const Cursor& at)
      : memory_(reinterpret_cast<T*>(memory)), at_(at) {
    point(warp, s, range);
    GPUCHOLMOD_UNROLL for (int a = 0; a < ahead; ++a) fetch(warp, s, a);
  }

  /// Returns the cursor, which is at the tile that is taken next.
  GPUCHOLMOD_HOST_DEVICE const Cursor& at() const { return at_; }
  /// Moves the cursor to its end: no more tiles are taken.
  GPUCHOLMOD_HOST_DEVICE void leave(const Range& range) { at_.leave(range); }

  /// Waits for sub-block a of the next tile. Returns its address, for products that take it in place and end before
  /// next() is called. Columns are stored by eight rows each: EIGHT words, row r of column c at c * 8 + r.
  GPUCHOLMOD_HOST_DEVICE const T* take(const Warp& warp, int a) const {
    Warp::template wait_for_copies<ahead - 1>();
    warp.sync();
    return place(a);
  }
  /// Waits for sub-block a of the next tile, its columns by eight rows each, and loads it as left factors of products.
  /// The caller then calls next().
  GPUCHOLMOD_HOST_DEVICE void take(const Warp& warp, int a, Left<Warp> R[2]) const {
    Warp::template wait_for_copies<ahead - 1>();
    warp.sync();
    GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
      R[half] = forward ? load_left(warp, place(a) + half * EIGHT, 8) : load_rows(warp, place(a) + half * 8 * 8);
  }
  /// Releases the place of sub-block a, and begins to copy a later sub-block to it.
  GPUCHOLMOD_HOST_DEVICE void next(const Warp& warp, const Segment& s, const Range& range, int a) {
    warp.sync();
    if (a == SUBS - ahead) {
      if (at_.next(range) || s.is_apart(at_.b, at_.group)) point(warp, s, range);
      else point_below(warp);
    }
    fetch(warp, s, (a + ahead) % SUBS);
  }

 private:
  GPUCHOLMOD_HOST_DEVICE T* place(int a) const { return memory_ + a % ahead * 2 * EIGHT; }

  /// Points to the tile at the cursor, for the copies that follow.
  GPUCHOLMOD_HOST_DEVICE void point(const Warp& warp, const Segment& s, const Range& range) {
    more_ = at_.b < range.end;
    if (!more_) return;
    const index_t line = index_t(s.group_place(at_.group)) * GROUP, block = index_t(s.place(at_.b)) * NB;
    const T* tile = forward ? s.group_in(at_.b, at_.group) : s.R + block * s.ld + line;
    step_ = forward ? IB : IB * s.ld;
    warp.each([&](int lane) { from_[lane] = tile + lane / parts * s.ld + lane % parts * pair; });
  }

  /// Points to the same columns of the row block below.
  GPUCHOLMOD_HOST_DEVICE void point_below(const Warp& warp) {
    warp.each([&](int lane) { from_[lane] += NB; });
  }

  /// Begins to copy sub-block a, if there is one. Each call counts as one copy.
  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, const Segment& s, int a) {
    if (more_)
      warp.each([&](int lane) {
        index_t ld = s.ld;
        Warp::compute_anew(ld);
        const int row = lane % parts * pair;
        const T* from = from_[lane] + a * (forward ? index_t(IB) : step_);
        T* to = place(a) + row / 8 * EIGHT + lane / parts * 8 + row % 8;
        GPUCHOLMOD_UNROLL for (int i = 0; i < GROUP / columns; ++i)
          Warp::copy_16(forward ? to + i * columns * 8 : place(a) + spot(row, i * columns + lane / parts),
                        from + i * columns * ld);
      });
    Warp::end_copy();
  }

  /// Returns the index, in a place, of a copy of rows from `row` on of a column; all columns of eight rows follow one
  /// another. With Order::back columns 0, 2, 4, 6 of eight come first, and in the second half of the even and of the
  /// odd columns rows 4 to 7 come first, so that load_rows() is free of bank conflicts.
  GPUCHOLMOD_HOST_DEVICE static int spot(int row, int column) {
    const int place = forward ? column : column / 8 * 8 + column % 2 * 4 + column % 8 / 2;
    return row / 8 * EIGHT + place * 8 + (forward ? row % 8 : row % 8 ^ (place & 2) * 2);
  }

  /// Returns sixteen rows by eight columns of a place as a left factor.
  GPUCHOLMOD_HOST_DEVICE static Left<Warp> load_rows(const Warp& warp, const T* p) {
    Left<Warp> left;
    warp.each([&](int lane) {
      const int t = thread_in_group(lane);
      const T* at = p + t * 8 + (group_id(lane) ^ (t & 2) * 2);
      const auto word = [](const T* from) { return typename Segment::Arithmetic(Warp::shared_word(from)); };
      left[lane] = {{word(at), word(at + EIGHT), word(at + 4 * 8), word(at + EIGHT + 4 * 8)}};
    });
    return left;
  }

  T* memory_ = nullptr;
  index_t step_ = IB;  ///< distance in R from a sub-block to the next
  Cursor at_;  ///< the tile that is fetched
  bool more_ = false;
  typename Warp::template PerLane<const T*> from_;  ///< address at which a lane begins in the tile that is fetched
};

}  // namespace gpucholmod::block_columns
