#pragma once

#include <vector>

#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Rank-k modification of a factor whose panels lie on the GPUs of several processes. A panel's diagonal block is
/// modified as a factor of its own, by all passes, and what that has done is one message to all who have panels on the
/// right:
///
///            panel                               on the GPU of its owner:
///      + - - +---+ - - -     for each panel b on the left, when its message is there:
///        \   | b |             its rows in the panel, and the panel's rows of V    (follow)
///          \ +---+           then
///            \ d |             the diagonal block, into a message                  (modify)
///
/// Who owns the panel behind b brings that past b first, modifies it and sends its message, and then does the rest of
/// b: so a message and a panel are all that others wait for. The same bits with any number of processes.
///
/// Error: that of a pass (inst/design/segments.md). Reference: inst/design/processes.md.
template <class T>
class PanelSweep {
 public:
  /// V: n x k, scaled as the factor is, whole in each process. `scale`: of the result. Right-hand sides are carried by
  /// process 0, and told to all.
  PanelSweep(Team& team, const Layout& layout, MatrixView<const double> V, const Task& task, double scale);

  /// Whether V goes in several passes: known to all in an operation of the team, which this is part of.
  bool in_passes(const Columns<T>& R);

  /// This process's part, within an operation of the team: to <- R~, which may be R; null: only the verdict is of
  /// interest, where there is one pass. `original`: by * original is what R begins with; R itself may be overwritten.
  /// Returns the failing pivot, where this process finds it, or -1.
  index_t run(const Columns<T>& R, const Columns<T>* to, const Columns<T>& original, double by, const Poll& poll,
              Work& work);

 private:
  /// Those of the others that need what a panel has done.
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
