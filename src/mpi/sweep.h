#pragma once

#include <array>
#include <atomic>

#include "cpu/blocked.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Rank-k modification of a factor whose columns several processes have, by the steps and kernels of cpu::BlockedSweep, to the same bits.
///
///            block of columns                    done by its owner, its threads taking its blocks in turn
///      + - - +---+ - -      for each row block b above, from the top, as far as its transform is there:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]
///          \ +---+          then find H_d for the rows of the block on its own diagonal, apply it there, and send it, in one message,
///            \ d |          to all who have columns on the right
///
/// Before the message of block d comes, its receivers have done with block d + 1 all but the last 64 rows: d + 1 waits for one message and one
/// block step alone, and whoever has sent is busy with the next block of its own. All transforms are kept: n (k + 12) numbers or so.
///
/// Error: residual ratio < 30. Reference: inst/design/processes.md.
template <class T>
class SharedSweep {
 public:
  /// V: n x k, whole in each process; read only, and kept. The rest as of cpu::BlockedSweep.
  SharedSweep(Team& team, const Layout& layout, MatrixView<const T> V, index_t removed, T scale, Instructions instructions, int threads);

  /// This process's part, within an operation of the team: to <- R~, which may be R; null: only the verdict is of interest. Returns the failing
  /// pivot, where this process finds it, or -1; `to` is then partly written.
  index_t run(const Columns<T>& R, const Columns<T>* to, const Poll& poll);

 private:
  struct Stage {
    T* transform(index_t row) const { return transforms + (row >> (kernels->rows == 8 ? 3 : 2)) * words; }
    const cpu::Kernels<T>* kernels;
    index_t first, k;  ///< columns of V
    index_t words;     ///< of a transform
    T* transforms;
  };
  struct Workspace {
    T *Vt, *block;
    std::vector<T> discarded;
  };
  struct Walk;
  using Strips = std::array<cpu::Strip<T>, 2>;  ///< as each stage sees it

  void add_stage(const cpu::Kernels<T>& kernels, index_t first, index_t k);
  Strips begin(const Walk& walk, Workspace& mine, index_t b) const;
  void apply(Strips& strips, index_t row, index_t end, index_t column) const;
  void scale_rows(const cpu::Strip<T>& strip, index_t row, index_t end, index_t first) const;
  bool modify_block(Walk& walk, Workspace& mine, index_t b, bool calling);
  void work(Walk& walk, Workspace& mine, bool calling);
  void communicate(Walk& walk);

  Team& team_;
  const Layout layout_;
  MatrixView<const T> V_;
  T scale_;
  index_t count_ = 0;  ///< of stages
  std::array<Stage, 2> stages_;
  index_t rows_, ldv_;
  cpu::Scratch<T> scratch_;
  std::vector<Workspace> workspaces_;
};

}  // namespace gpucholmod::mpi
