#pragma once

#include <optional>

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// Describes how far a pass has come. A pass consists of turns: a row block by Householder steps, if the turn begins
/// with one, then a segment of unscaled steps up to the row block that the guard rejects. Zero at the start.
struct Progress {
  int first;       ///< first row block of the turn's segment
  int steps;       ///< 1 if the row block before `first` is done by Householder steps
  int fallbacks;   ///< number of row blocks by Householder steps
  int rescalings;  ///< number of segments that have ended before the last row block, but not with their first
  int renewals;    ///< number of segments within which H has been renewed
  int turns;       ///< number of turns before this one
};

/// Returns the turn that follows `before`, whose segment, of row blocks up to `blocks`, has come to `state`. V has been
/// scaled so that H = I before the rejected row block. Householder steps take this row block if the guard would reject
/// it again.
GPUCHOLMOD_HOST_DEVICE Progress next_turn(const Progress& before, const SegmentState& state, int blocks) {
  const int rejected = blocks - state.left / 2,
            renewals = before.renewals + (state.renewed > 0 && state.renewed <= rejected);
  if (state.left == 0) return {blocks, 0, before.fallbacks, before.rescalings, renewals, before.turns};
  const int steps = state.left % 2 == 1 || rejected == before.first;
  return {rejected + steps, steps, before.fallbacks + steps, before.rescalings + (rejected > before.first), renewals,
          before.turns + 1};
}

/// The number of sets of flags, which turns use alternately. A turn clears its own set, and reads in the other set how
/// the turn before has ended.
constexpr int FLAG_SETS = 2;

/// Describes the ints that the launches of a pass share: zero at the start.
struct PassInts {
  static constexpr int state = 0, inverted = sizeof(PassState) / sizeof(int), linked = inverted + 1,
                       progress = linked + 1, flags = progress + FLAG_SETS * sizeof(Progress) / sizeof(int);
  int* at;

  GPUCHOLMOD_HOST_DEVICE static index_t words(int blocks) {
    return flags + index_t(FLAG_SETS) * Segment<double>::flag_words(blocks);
  }
  /// Returns the number of ints that tell the outcome of the pass.
  static index_t outcome_words(int blocks) {
    return flags + Segment<double>::flag_words(blocks) + Segment<double>::state_words;
  }
  GPUCHOLMOD_HOST_DEVICE PassState& pass_state() const { return *reinterpret_cast<PassState*>(at + state); }
  GPUCHOLMOD_HOST_DEVICE Progress& progress_of(int turn) const {
    return reinterpret_cast<Progress*>(at + progress)[turn % FLAG_SETS];
  }
  GPUCHOLMOD_HOST_DEVICE int* flags_of(int turn, int blocks) const {
    return at + flags + turn % FLAG_SETS * Segment<double>::flag_words(blocks);
  }
  GPUCHOLMOD_HOST_DEVICE const SegmentState& state_of(int turn, int blocks) const {
    return *reinterpret_cast<const SegmentState*>(flags_of(turn, blocks));
  }
  /// Returns how far the pass has come after `turn`.
  GPUCHOLMOD_HOST_DEVICE Progress behind(int turn, int blocks) const {
    return next_turn(progress_of(turn), state_of(turn, blocks), blocks);
  }
};

/// A turn of a pass, in row blocks of the factor: the first of its segment; 1 if the row block before is done by steps.
struct Turn {
  int first, steps;
};

/// Returns whether all row blocks are done after `turn`, so that the next pass may begin.
GPUCHOLMOD_HOST_DEVICE bool is_done(const PassInts& ints, int turn, int blocks) {
  const Progress progress = ints.behind(turn, blocks);
  return ints.pass_state().stop == 0 && progress.first == blocks && !progress.steps;
}

/// The end of a pass over `blocks` row blocks: its ints, and the turn after which the pass may be done.
struct PassEnd {
  PassInts ints;
  int turn, blocks;
  GPUCHOLMOD_HOST_DEVICE bool is_done() const { return block_columns::is_done(ints, turn, blocks); }
};

/// The outcome of a pass.
struct PassOutcome {
  index_t pivot = -1;  ///< row in which the pass was stopped; -1: none
  int fallbacks = 0;   ///< number of row blocks by Householder steps
  int rescalings = 0;  ///< number of segments that ended early
  int renewals = 0;    ///< number of segments within which H was renewed; for tests
  int turns = 1;       ///< number of turns of the pass
  Stop stop = not_stopped;
  double entry = 0;    ///< entry of the diagonal, if the pass was stopped because of it
};

/// Returns the outcome of a pass after `turn`; nothing if the pass is not over.
inline std::optional<PassOutcome> outcome(const PassInts& ints, int turn, int blocks) {
  const Progress progress = ints.behind(turn, blocks);
  const PassState& state = ints.pass_state();
  if (state.stop)
    return PassOutcome{state.pivot,        progress.fallbacks - 1, progress.rescalings, progress.renewals,
                       progress.turns + 1, Stop(state.stop),       state.get_entry()};
  if (!is_done(ints, turn, blocks)) return std::nullopt;
  return PassOutcome{-1, progress.fallbacks, progress.rescalings, progress.renewals, progress.turns + 1};
}

}  // namespace gpucholmod::block_columns
