#pragma once

#include "base/types.h"

/// What the files of batches share.
namespace gpucholmod::c {

/// Is true if a matrix of so many columns has `each` of them for every member. Does not multiply, which may overflow.
inline bool has_columns(index_t cols, index_t each, index_t count) {
  if (count == 0 || each == 0) return cols == 0;
  return cols % count == 0 && cols / count == each;
}

}  // namespace gpucholmod::c
