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

/// Columns [first, first + count) of V, which a pass adds or takes away.
struct PassColumns {
  index_t first, count;
  Sign sign;
};

/// The passes for k columns of V, the last `removed` of which are taken away, of at most `width` columns each.
inline std::vector<PassColumns> passes_of(index_t k, index_t removed, index_t width) {
  std::vector<PassColumns> passes;
  const index_t added = k - removed;
  for (index_t first = 0; first < k; first += passes.back().count) {
    const bool adds = first < added;
    passes.push_back({first, std::min(width, (adds ? added : k) - first), adds ? Sign::update : Sign::downdate});
  }
  return passes;
}

/// The memory of a pass, in doubles: of the whole factor V and messages, and of a panel, or the widest of several, what
/// its own segments need. It is one piece: to allocate takes as long as to launch.
struct SegmentSize {
  int columns;  ///< of V: 8, 16 or 32
  int strips, panel_strips;

  index_t V() const { return 0; }
  index_t messages() const { return index_t(strips) * STRIP * columns; }
  index_t handed() const {
    return messages() + (index_t(strips) * BLOCKS + 1) * with_width(columns, [](auto K) { return index_t(Message<decltype(K)::value>::stride); });
  }
  index_t inverses() const { return handed() + index_t(panel_strips) * BLOCKS * LDB * columns; }
  index_t links() const { return inverses() + index_t(panel_strips) * BLOCKS * INVERSE; }
  index_t ints() const { return links() + index_t(panel_strips) * BLOCKS * INVERSE; }
  index_t words() const { return ints() + (PassInts::words(panel_strips * BLOCKS) + 1) / 2; }
  double bytes() const { return double(sizeof(double)) * double(words()); }
};

}  // namespace gpucholmod::block_columns
