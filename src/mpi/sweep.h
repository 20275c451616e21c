#pragma once

#include <atomic>

#include "cpu/stages.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Rank-k modification of a factor whose columns several processes have, by the steps and kernels of cpu::BlockedSweep,
/// to the same bits.
///
///            block of columns                    done by its owner, its threads taking its blocks in turn
///      + - - +---+ - -      for each row block b above, from the top, as far as its transform is there:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]
///          \ +---+          then find H_d for the rows of the block on its own diagonal, apply it there, and send it
///            \ d |          in one message to all who have columns on the right
///
/// Before the message of block d comes, its receivers have done with block d + 1 all but the last 64 rows: d + 1 waits
/// for one message and one block step alone, and whoever has sent is busy with the next block of its own. All
/// transforms are kept: n (k + 12) numbers or so; where right-hand sides come along, in every process, which then does
/// what it takes to them by itself.
///
/// Error: residual ratio < 30. Reference: inst/design/processes.md.
template <class T>
class SharedSweep {
 public:
  /// V: n x k, whole in each process; read only, and kept. `carries`: carry() will be called. The rest as of
  /// cpu::BlockedSweep.
  SharedSweep(Team& team, const Layout& layout, MatrixView<const T> V, index_t removed, T scale,
              Instructions instructions, int threads, bool carries);

  /// Begins with that block: V is zero above it.
  void start_at(index_t block) {
    first_ = block;
    stages_.start_at(layout_.first(block));
  }

  /// This process's part, within an operation of the team: to <- R~, which may be R; null: only the verdict is of
  /// interest. Returns the failing pivot, where this process finds it, or -1; `to` is then partly written.
  index_t run(const Columns<T>& R, const Columns<T>* to, const Poll& poll);

  /// After that, where all processes have done well: the right-hand sides, of the rows from the first block on, in each
  /// process.
  void carry(const RightHandSideView& sides) const {
    auto memory = stages_.memory_to_carry(sides.m(), layout_.n, block_width);
    stages_.carry(sides, layout_.first(first_), layout_.n, block_width, memory);
  }

 private:
  struct Workspace {
    T* Vt;
    std::vector<T> discarded;
  };
  struct Walk;

  typename cpu::Stages<T>::Strips begin(const Walk& walk, Workspace& mine, index_t b) const;
  bool modify_block(Walk& walk, Workspace& mine, index_t b, bool calling);
  void work(Walk& walk, Workspace& mine, bool calling);
  void communicate(Walk& walk);

  Team& team_;
  const Layout layout_;
  cpu::Stages<T> stages_;
  index_t first_ = 0;  ///< block to begin with
  bool carries_;       ///< right-hand sides will come along: every process gets all transforms
  index_t rows_, ldv_;
  std::vector<Workspace> workspaces_;
};

}  // namespace gpucholmod::mpi
