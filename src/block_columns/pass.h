#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "block_columns/turns.h"

/// The passes of a modification, and the memory that each takes; for whoever runs them.
namespace gpucholmod::block_columns {

constexpr index_t most_columns = 32;  ///< of V in one pass; more go in several
constexpr index_t margin = 32;        ///< the leading dimension of a panel is that much more than its rows

inline int strips_of(index_t n) { return int((n + STRIP - 1) / STRIP); }

/// The width that k <= most_columns columns of V are padded to.
inline int padded_width(index_t k) { return k <= 8 ? 8 : k <= 16 ? 16 : 32; }

/// f(std::integral_constant<int, width>()) for a padded width.
template <class F>
decltype(auto) with_width(int width, F&& f) {
  switch (width) {
    case 8: return f(std::integral_constant<int, 8>());
    case 16: return f(std::integral_constant<int, 16>());
    default: return f(std::integral_constant<int, 32>());
  }
}

/// Columns [first, first + count) of V in one pass, the last `removed` of which are taken away.
struct PassColumns {
  index_t first, count, removed;

  index_t added() const { return count - removed; }
  bool mixed() const { return removed > 0 && removed < count; }
  /// Of V in the pass.
  int width() const { return mixed() ? 2 * HALF : padded_width(count); }
  double sigma() const { return added() > 0 ? 1 : -1; }
  double sigma2() const { return removed > 0 ? -1 : 1; }
  /// f(column of the pass, column of V, how many), where they lie one behind the other in both.
  template <class F>
  void each(F&& f) const {
    if (!mixed()) return f(index_t(0), first, count);
    f(index_t(0), first, added());
    f(index_t(HALF), first + added(), removed);
  }
};

/// The passes for k columns of V, the last `removed` of which are taken away, of at most `width` columns each: first
/// what is added. The last columns of that and the first of the others share a pass, where that saves one.
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

/// The width of the widest of them, where there is room for any.
inline int widest_pass(index_t k, index_t removed) {
  int width = 8;
  for (const PassColumns& pass : passes_of(k, removed, most_columns)) width = std::max(width, pass.width());
  return width;
}

/// V of so many strips is in shared memory while it is updated; V of more may be outside.
constexpr int strips_in_shared = 2;

/// The memory of a pass, in doubles: of the whole factor V and transforms, and of a panel, or the widest of several,
/// what its own segments need. It is one piece: to allocate takes as long as to launch.
struct SegmentSize {
  int columns;  ///< of V: 8, 16 or 32
  int strips, panel_strips;
  int side_strips = 0;     ///< of both, the last: right-hand sides
  int updated_strips = 0;  ///< that one launch updates, where those may be more than `panel_strips`

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
  /// What V holds, a Looked for each piece; then, next to it, PassInts.
  index_t looks() const {
    const int most = std::max(panel_strips, updated_strips);
    return V_outside() + (most > strips_in_shared ? index_t(most) * STRIP * columns : 0);
  }
  index_t ints() const { return looks() + most_pieces * index_t(sizeof(Looked) / sizeof(double)); }
  index_t words() const { return ints() + (PassInts::words(panel_strips * BLOCKS) + 1) / 2; }
  double bytes() const { return double(sizeof(double)) * double(words()); }
};

}  // namespace gpucholmod::block_columns
