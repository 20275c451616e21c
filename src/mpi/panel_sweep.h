#pragma once

#include <vector>

#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Runs a rank-k modification of a factor whose panels are on the GPUs of several processes. The owner of a panel
/// modifies the panel's diagonal block as a factor of its own, in all passes, and sends the transforms in one message
/// to all processes that have panels on the right:
///
///            panel                               on the GPU of its owner:
///      + - - +---+ - - -     for each panel b on the left, when the message of b is there:
///        \   | b |             the rows of b in the panel, and the panel's rows of V    (follow)
///          \ +---+           then
///            \ d |             the diagonal block, whose transforms are the message     (modify)
///
/// The owner of panel b + 1 first applies the message of b to that panel, modifies the panel and sends its message.
/// Then the owner applies the message of b to its other panels. So other processes wait for one message and one panel
/// alone. The bits are the same with any number of processes.
///
/// Error: that of a pass (inst/design/segments.md). Reference: inst/design/processes.md.
template <class T>
class PanelSweep {
 public:
  /// Wraps V (n x k, scaled as the factor is, whole in each process) and the task. `scale`: the number that multiplies
  /// the result. Process 0 carries right-hand sides, and sends them to all in the end.
  PanelSweep(Team& team, const Layout& layout, MatrixView<const double> V, const Task& task, double scale);

  /// Agrees on the way of all GPUs, within an operation of the team, and returns whether V needs several passes.
  bool in_passes(const Columns<T>& R);

  /// Does this process's part, within an operation of the team: to <- R~. `to` may be R; null: a dry run, for one pass
  /// alone. `original`: R is by * original at the beginning, and may be overwritten. Returns the failing pivot if this
  /// process finds it, or -1.
  index_t run(const Columns<T>& R, const Columns<T>* to, const Columns<T>& original, double by, const Poll& poll,
              Work& work);

 private:
  /// Returns the other processes that need the message of panel b.
  std::vector<int> receivers(index_t b) const;
  MatrixView<const double> own_rows(std::vector<double>& rows) const;
  index_t modify(index_t b);
  index_t first_pivot(index_t b, const std::vector<double>& V, index_t pivot) const;
  void tell_right_sides();

  Team& team_;
  const Layout layout_;
  MatrixView<const double> V_;
  const Task& task_;
  double scale_;
  PanelWay way_;
  std::unique_ptr<PanelModification<T>> gpu_;
  const Columns<T>* original_ = nullptr;
  double by_ = 1;
  bool carries_;
};

}  // namespace gpucholmod::mpi
