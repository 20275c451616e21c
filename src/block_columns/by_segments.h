#pragma once

#include "base/types.h"
#include "block_columns/transform.h"

namespace gpucholmod::block_columns {

/// What a modification by segments has come to.
struct BySegments {
  index_t pivot = -1;  ///< where a downdate failed
  int fallbacks = 0;   ///< row blocks by Householder steps
  int rescalings = 0;  ///< segments that ended before the last row block, and not with their first
};

/// All row blocks of a factor: segments of unscaled steps, each up to the row block that the guard refuses. With that the
/// next one begins, V being scaled so that H = I again; where it refuses that block too, Householder steps take it.
///
///   segment(first)    does row blocks from `first` on; returns the one refused, or -1
///   householder(b)    does row block b; returns the failing pivot in the block, or -1
template <class RunSegment, class Householder>
BySegments by_segments(int blocks, RunSegment&& segment, Householder&& householder) {
  BySegments done;
  for (int first = 0; first < blocks;) {
    const int refused = segment(first);
    if (refused < 0) break;
    if (refused > first) {
      ++done.rescalings;
      first = refused;
      continue;
    }
    const int failing = householder(refused);
    if (failing >= 0) {
      done.pivot = index_t(refused) * NB + failing;
      break;
    }
    ++done.fallbacks;
    first = refused + 1;
  }
  return done;
}

}  // namespace gpucholmod::block_columns
