#pragma once

#include "base/types.h"
#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// What a modification by segments has come to.
struct BySegments {
  index_t pivot = -1;  ///< where a downdate failed
  int fallbacks = 0;   ///< row blocks by Householder steps
  int rescalings = 0;  ///< segments that ended before the last row block, and not with their first
};

/// How a segment has ended.
struct SegmentEnd {
  int refused;         ///< the row block that the guard has refused, or -1
  int failing = -1;    ///< where the Householder steps before it have failed, in their row block; the segment is then worth nothing
  bool again = false;  ///< the guard would refuse it with H = I before it too
};

/// `failing`: as above. The segment had row blocks up to `blocks`.
inline SegmentEnd end_of(const SegmentState& state, int blocks, int failing) {
  return {state.left > 0 ? blocks - state.left / 2 : -1, failing, state.left % 2 == 1};
}

/// All row blocks of a factor: segments of unscaled steps, each up to the row block that the guard refuses. With that the
/// next one begins, V being scaled so that H = I again, or, where it would refuse that block again, Householder steps take it first.
///
///   segment(first)    does row blocks from `first` on, of which there may be none; returns how it has ended
///   householder(b)    begins to do row block b; the segment that follows waits for it
template <class RunSegment, class Householder>
BySegments by_segments(RunSegment&& segment, Householder&& householder) {
  BySegments done;
  bool stepped = false;
  for (int first = 0;;) {
    const SegmentEnd end = segment(first);
    if (end.failing >= 0) {
      done.pivot = index_t(first - 1) * NB + end.failing;
      break;
    }
    done.fallbacks += stepped;
    if (end.refused < 0) break;
    stepped = end.again || end.refused == first;
    done.rescalings += end.refused > first;
    first = end.refused;
    if (stepped) householder(first++);
  }
  return done;
}

}  // namespace gpucholmod::block_columns
