#pragma once

#include <cstddef>
#include <limits>

#include "base/error.h"
#include "base/types.h"

namespace gpucholmod {

/// Returns whether an object of rows x cols numbers of `size` bytes each can exist: it has at most PTRDIFF_MAX bytes.
inline bool can_exist(index_t rows, index_t cols, std::size_t size) {
  constexpr index_t small = index_t(1) << (4 * sizeof(index_t) - 4);  // below it no division, which takes long
  if (size <= 64 && rows < small && cols < small) return true;
  return rows == 0 || cols <= std::numeric_limits<index_t>::max() / index_t(size) / rows;
}

/// Returns the bytes of rows x cols numbers of `size` bytes each. Throws out_of_memory if no object can be so large.
inline std::size_t bytes_of(index_t rows, index_t cols, std::size_t size) {
  constexpr index_t most = std::numeric_limits<index_t>::max();
  if (!can_exist(rows, cols, size))
    throw out_of_memory("no object in memory can be so large", double(rows) * double(cols) * double(size),
                        double(most));
  return std::size_t(rows) * std::size_t(cols) * size;
}

}  // namespace gpucholmod
