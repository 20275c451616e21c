#pragma once

#include <algorithm>
#include <vector>

#include "base/held_batch.h"
#include "c/options.h"

/// What the files of batches share.
namespace gpucholmod::c {

/// Is true if a matrix of so many columns has `each` of them for every member. Does not multiply, which may overflow.
inline bool has_columns(index_t cols, index_t each, index_t count) {
  if (count == 0 || each == 0) return cols == 0;
  return cols % count == 0 && cols / count == each;
}

/// Returns the task of a call, whose V can exist and has the rows of the members of R. Throws bad_argument.
BatchTask task_of(const gpucholmod_batch_modification& what, const HeldBatch& R, const Options& options);

}  // namespace gpucholmod::c
