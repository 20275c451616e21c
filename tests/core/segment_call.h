#pragma once

#include <climits>
#include <functional>
#include <memory>

#include "block_columns/cards.h"
#include "block_columns/pass.h"
#include "grid_call.h"

/// Modifications by segments, every team of warps a thread. What takes the compiler long is compiled once, in
/// segment_double.cpp and segment_float.cpp.
namespace gpucholmod::block_columns {

/// Called before each team begins.
using Disturb = std::function<void(const char* role, int number)>;
/// On the simulated card.
template <int K, class Card = Card90, class S>
void run_segment_on_host(const S& s, const Disturb& disturb);

}  // namespace gpucholmod::block_columns

namespace gpucholmod::test {

/// What GPU is simulated: Card90, Card80 or Card86.
enum class Simulated { clusters, data_centre, graphics };

struct SegmentsRun {
  int workers = 3, finishers = 2;
  int window = 24;
  Into into = Into::other_memory;
  unsigned delay = 0;  ///< teams that begin late are chosen by it
  int advancers = 2;  ///< where there are several ranks, WORKERS_OF_STRIP of each
  int panels = 0;  ///< of so many strips each; 0: the factor in one piece
  bool by_steps = false;
  bool apart = false;  ///< its diagonal blocks and last strip lie apart from a factor in one piece
  block_columns::Scaling scaling = {};
  Simulated card = Simulated::clusters;
  /// The last columns of V, which are taken away where others are added; -1: as the problem's sign says.
  index_t removed = -1;
  /// That the factor lies on, in one piece: then `workers` of each, a multiple of WORKERS_OF_STRIP; each has memory of
  /// its own.
  int ranks = 1;
  int lead = 0;  ///< whose strips, of the factor's first, are the first rank's
  int workers_within = 2;  ///< in place; where there are several ranks, WORKERS_OF_STRIP of each
  bool outside = false;  ///< V of what is updated beyond the window is not in shared memory
  int halved = INT_MAX;  ///< the row block from which on two warps update a group, where a card's products allow that
};
/// Returns `how` with V outside of shared memory.
inline SegmentsRun outside(SegmentsRun how) {
  how.outside = true;
  return how;
}
/// Returns `how` with two warps to a group from row block `from` on.
inline SegmentsRun halved(int from, SegmentsRun how) {
  how.halved = from;
  return how;
}

/// What Pass in src/cuda/pass.h is on a GPU; every team of warps a thread.
template <class T>
class HostPass {
 public:
  virtual ~HostPass() = default;
  /// Strips [first, end), which are next, in all their turns.
  virtual block_columns::PassOutcome run_panel(int first, int end, const T* R, T* out, index_t ld,
                                               const SegmentsRun& how) = 0;
  /// A whole factor, with right-hand sides that come along: as FactorPass::run() behind take_sides(); `rest` as in
  /// carry().
  virtual block_columns::PassOutcome run_with_sides(const T* R, T* out, index_t ld, T* z, MatrixView<const double> Y,
                                                    double* rest, const SegmentsRun& how) = 0;
  /// As FactorPass::carry().
  virtual void carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m,
                     const SegmentsRun& how) = 0;
};

/// V: n rows, of which the pass takes its columns.
template <class T>
std::unique_ptr<HostPass<T>> host_pass(const double* V, index_t n, const block_columns::PassColumns& columns,
                                       index_t ldv, int strips, Simulated card = Simulated::clusters);

template <class T>
struct SegmentsResult {
  Stored<T> R;       ///< n x n, upper
  Stored<T> memory;  ///< what R is a part of
  bool input_kept;   ///< no bit of the factor that was modified is different now
  block_columns::PassOutcome done;
};

/// V of no more columns than a pass has.
template <class T = double>
SegmentsResult<T> run_segments(const Problem<double>& p, const SegmentsRun& how = {});

}  // namespace gpucholmod::test
