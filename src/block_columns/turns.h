#pragma once

#include <optional>

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// How far a pass has come: it goes by turns, each of which is a row block by Householder steps, if it begins with one,
/// and a segment of unscaled steps behind that, up to the row block that the guard rejects. Zero at the start.
struct Progress {
  int first;       ///< row block that the turn's segment begins with
  int steps;       ///< 1: the one before it is done by steps
  int fallbacks;   ///< row blocks by steps
  int rescalings;  ///< segments that have ended before the last row block, and not with their first
  int renewals;    ///< segments within which H has been renewed
  int turns;       ///< before this one
};

/// The turn behind one whose segment, of row blocks up to `blocks`, has come to `state`. V has been scaled so that H =
/// I before the rejected row block; where the guard would reject that again, steps take it.
GPUCHOLMOD_HOST_DEVICE Progress next_turn(const Progress& before, const SegmentState& state, int blocks) {
  const int rejected = blocks - state.left / 2,
            renewals = before.renewals + (state.renewed > 0 && state.renewed <= rejected);
  if (state.left == 0) return {blocks, 0, before.fallbacks, before.rescalings, renewals, before.turns};
  const int steps = state.left % 2 == 1 || rejected == before.first;
  return {rejected + steps, steps, before.fallbacks + steps, before.rescalings + (rejected > before.first), renewals,
          before.turns + 1};
}

/// Sets of flags, which turns have alternately: a turn clears its own, and reads in the other how the one before has
/// ended.
constexpr int FLAG_SETS = 2;

/// What the launches of a pass share, in ints: zero at the start.
struct PassInts {
  static constexpr int state = 0, inverted = sizeof(PassState) / sizeof(int), linked = inverted + 1,
                       progress = linked + 1, flags = progress + FLAG_SETS * sizeof(Progress) / sizeof(int);
  int* at;

  GPUCHOLMOD_HOST_DEVICE static index_t words(int blocks) {
    return flags + index_t(FLAG_SETS) * Segment<double>::flag_words(blocks);
  }
  /// As many as it takes to tell what has become of the pass.
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
  /// How far the pass has come behind `turn`.
  GPUCHOLMOD_HOST_DEVICE Progress behind(int turn, int blocks) const {
    return next_turn(progress_of(turn), state_of(turn, blocks), blocks);
  }
};

/// A turn of a pass, in row blocks of the factor: its first, and whether the one before that is done by steps.
struct Turn {
  int first, steps;
};

/// Whether behind `turn` all row blocks are done: then the next pass may begin.
GPUCHOLMOD_HOST_DEVICE bool is_done(const PassInts& ints, int turn, int blocks) {
  const Progress progress = ints.behind(turn, blocks);
  return ints.pass_state().stop == 0 && progress.first == blocks && !progress.steps;
}

/// A pass over so many row blocks, behind one of its turns.
struct PassEnd {
  PassInts ints;
  int turn, blocks;
  GPUCHOLMOD_HOST_DEVICE bool is_done() const { return block_columns::is_done(ints, turn, blocks); }
};

/// What a pass has come to.
struct PassOutcome {
  index_t pivot = -1;  ///< the row in which the pass has been stopped
  int fallbacks = 0;   ///< row blocks by steps
  int rescalings = 0;  ///< segments that ended early
  int renewals = 0;    ///< segments within which H was renewed; for tests
  int turns = 1;       ///< that it took
  Stop stop = not_stopped;
  double entry = 0;    ///< of the diagonal, where that is why it has been stopped
};

/// Behind `turn`; nothing where the pass is not over.
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
