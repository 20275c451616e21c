#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "block_columns/turns.h"

/// The passes of a modification, and the memory that each pass needs, for the code that runs them.
namespace gpucholmod::block_columns {

constexpr index_t most_columns = 32;  ///< columns of V in one pass at most; more take several passes
constexpr index_t margin = 32;        ///< leading dimension of a panel minus its rows

inline int strips_of(index_t n) { return int((n + STRIP - 1) / STRIP); }

/// Returns the width to which k <= most_columns columns of V are padded.
inline int padded_width(index_t k) { return k <= 8 ? 8 : k <= 16 ? 16 : 32; }

/// Returns f(std::integral_constant<int, width>()) for a padded width.
template <class F>
decltype(auto) with_width(int width, F&& f) {
  switch (width) {
    case 8: return f(std::integral_constant<int, 8>());
    case 16: return f(std::integral_constant<int, 16>());
    default: return f(std::integral_constant<int, 32>());
  }
}

/// Describes columns [first, first + count) of V in one pass, the last `removed` of which are removed.
struct PassColumns {
  index_t first, count, removed;

  index_t added() const { return count - removed; }
  bool mixed() const { return removed > 0 && removed < count; }
  /// Returns the number of columns of V in the pass, with its padding.
  int width() const { return mixed() ? 2 * HALF : padded_width(count); }
  double sigma() const { return added() > 0 ? 1 : -1; }
  double sigma2() const { return removed > 0 ? -1 : 1; }
  /// Calls f(column of the pass, column of V, number of columns) for each run of columns that are consecutive in both.
  template <class F>
  void each(F&& f) const {
    if (!mixed()) return f(index_t(0), first, count);
    f(index_t(0), first, added());
    f(index_t(HALF), first + added(), removed);
  }
};

/// Returns the passes, of at most `width` columns each, for k columns of V, the last `removed` of which are removed.
/// Added columns are first. The last added and the first removed columns share a pass if that saves one.
inline std::vector<PassColumns> passes_of(index_t k, index_t removed, index_t width) {
  const index_t added = k - removed, last = added % width, first = removed % width;
  const bool shared = width == 2 * HALF && last > 0 && first > 0 && last <= HALF && first <= HALF;
  std::vector<PassColumns> passes;
  index_t at = 0;
  const auto take = [&](index_t count, index_t takes_away) {
    if (count > 0) passes.push_back({at, count, takes_away});
    at += count;
  };
  while (at + width <= added) take(width, 0);
  if (shared) {
    take(last + first, first);
  } else {
    take(last, 0);
  }
  while (at < k) take(std::min(width, k - at), std::min(width, k - at));
  return passes;
}

/// Returns the width of the widest pass, if there is room for passes of any width.
inline int widest_pass(index_t k, index_t removed) {
  int width = 8;
  for (const PassColumns& pass : passes_of(k, removed, most_columns)) width = std::max(width, pass.width());
  return width;
}

/// The number of strips whose V is always in shared memory while it is updated; V of more strips may be outside.
constexpr int strips_in_shared = 2;

/// Describes the memory of a pass, in doubles: V and transforms of the whole factor, and what the segments of a panel,
/// or of the widest of several panels, need. The memory is one piece, as an allocation takes as long as a launch.
struct SegmentSize {
  int columns;  ///< columns of V: 8, 16 or 32
  int strips, panel_strips;
  int side_strips = 0;     ///< strips of right-hand sides, the last of `strips` and of `panel_strips`
  int updated_strips = 0;  ///< strips that one launch updates, if these may be more than `panel_strips`

  int blocks() const { return (strips - side_strips) * BLOCKS; }

  index_t V() const { return 0; }
  index_t transforms() const { return index_t(strips) * STRIP * columns; }
  index_t handed() const {
    return transforms() + (index_t(strips) * BLOCKS + 1) * with_width(columns, [](auto K) {
                            return index_t(BlockTransform<decltype(K)::value>::stride);
                          });
  }
  index_t inverses() const { return handed() + index_t(panel_strips) * BLOCKS * LDB * columns; }
  index_t links() const { return inverses() + index_t(panel_strips) * BLOCKS * INVERSE; }
  index_t V_outside() const { return links() + index_t(panel_strips) * BLOCKS * INVERSE; }
  /// Returns the place of the array of Looked, one for each piece of V; PassInts follow.
  index_t looks() const {
    const int most = std::max(panel_strips, updated_strips);
    return V_outside() + (most > strips_in_shared ? index_t(most) * STRIP * columns : 0);
  }
  index_t ints() const { return looks() + most_pieces * index_t(sizeof(Looked) / sizeof(double)); }
  index_t words() const { return ints() + (PassInts::words(panel_strips * BLOCKS) + 1) / 2; }
  double bytes() const { return double(sizeof(double)) * double(words()); }
};

}  // namespace gpucholmod::block_columns
