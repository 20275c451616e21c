#pragma once

#include <algorithm>
#include <vector>

#include "base/held_batch.h"
#include "c/options.h"

/// Functions that the files of batches share.
namespace gpucholmod::c {

/// Returns whether a matrix of `cols` columns has `each` columns for every member. Does not multiply, because the
/// product may overflow.
inline bool has_columns(index_t cols, index_t each, index_t count) {
  if (count == 0 || each == 0) return cols == 0;
  return cols % count == 0 && cols / count == each;
}

/// Returns the task of a call. V must be a matrix that can exist, with the rows of the members of R. Throws
/// bad_argument.
BatchTask task_of(const gpucholmod_batch_modification& what, const HeldBatch& R, const Options& options);

}  // namespace gpucholmod::c
