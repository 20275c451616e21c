#pragma once

#include <climits>
#include <functional>
#include <memory>

#include "block_columns/cards.h"
#include "block_columns/pass.h"
#include "grid_call.h"

/// Modifications by segments on a simulated card, every team of warps a thread. Code that takes long to compile is
/// compiled once, in segment_double.cpp and segment_float.cpp.
namespace gpucholmod::block_columns {

/// A function that is called before each team begins.
using Disturb = std::function<void(const char* role, int number)>;
/// Runs a segment on the simulated card.
template <int K, class Card = Card90, class S>
void run_segment_on_host(const S& s, const Disturb& disturb);

}  // namespace gpucholmod::block_columns

namespace gpucholmod::test {

/// The GPU that is simulated: Card90, Card80 or Card86.
enum class Simulated { clusters, data_centre, graphics };

struct SegmentsRun {
  int workers = 3, finishers = 2;
  int window = 24;
  Into into = Into::other_memory;
  unsigned delay = 0;  ///< number that chooses the teams that begin late; 0: none does
  int advancers = 2;  ///< number of thread blocks that advance; with several ranks, WORKERS_OF_STRIP of each
  int panels = 0;  ///< number of strips of each panel; 0: the factor in one piece
  bool by_steps = false;
  bool apart = false;  ///< True if diagonal blocks and last strip lie apart from a factor in one piece
  block_columns::Scaling scaling = {};
  Simulated card = Simulated::clusters;
  /// The number of last columns of V that are taken away, while the others are added; -1: as the problem's sign says.
  index_t removed = -1;
  /// The number of ranks, each with memory of its own, that hold a factor in one piece. With several ranks, `workers`
  /// is the number of each, a multiple of WORKERS_OF_STRIP.
  int ranks = 1;
  int lead = 0;  ///< device rank of the first rank: its strips are number lead, lead + ranks, ...
  int workers_within = 2;  ///< number that update within the window, in place; several ranks: WORKERS_OF_STRIP of each
  int outside = 0;  ///< number of each worker's first groups, beyond the window, whose V is not in shared memory
  /// True if three warps update a group as soon as each worker has LAST_GROUPS groups at most, if the card has room.
  bool by_three = false;
};
/// Returns `how` with V of the first `groups` groups of each worker outside of shared memory, or of all.
inline SegmentsRun outside(SegmentsRun how, int groups = INT_MAX) {
  how.outside = groups;
  return how;
}
/// Returns `how` with three warps to a group as soon as each worker has LAST_GROUPS groups at most.
inline SegmentsRun by_three(SegmentsRun how) {
  how.by_three = true;
  return how;
}

/// A pass, as Pass in src/cuda/pass.h is on a GPU; every team of warps is a thread.
template <class T>
class HostPass {
 public:
  virtual ~HostPass() = default;
  /// Modifies strips [first, end), which are next, in all their turns.
  virtual block_columns::PassOutcome run_panel(int first, int end, const T* R, T* out, index_t ld,
                                               const SegmentsRun& how) = 0;
  /// Modifies a whole factor, and right-hand sides along with it, as FactorPass::run() does after take_sides(); `rest`
  /// as in carry().
  virtual block_columns::PassOutcome run_with_sides(const T* R, T* out, index_t ld, T* z, MatrixView<const double> Y,
                                                    double* rest, const SegmentsRun& how) = 0;
  /// Modifies right-hand sides behind all panels, as FactorPass::carry() does.
  virtual void carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m,
                     const SegmentsRun& how) = 0;
};

/// Returns a pass, which takes its columns from V (n rows).
template <class T>
std::unique_ptr<HostPass<T>> host_pass(const double* V, index_t n, const block_columns::PassColumns& columns,
                                       index_t ldv, int strips, Simulated card = Simulated::clusters);

template <class T>
struct SegmentsResult {
  Stored<T> R;       ///< n x n, upper
  Stored<T> memory;  ///< memory that R is a part of
  bool input_kept;   ///< True if no bit of the given factor has changed
  block_columns::PassOutcome done;
};

/// Modifies a factor by one pass; V has no more columns than a pass.
template <class T = double>
SegmentsResult<T> run_segments(const Problem<double>& p, const SegmentsRun& how = {});

}  // namespace gpucholmod::test
