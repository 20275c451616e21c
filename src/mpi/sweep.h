#pragma once

#include <atomic>

#include "cpu/stages.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Runs a rank-k modification of a factor whose columns are dealt out over processes, by the steps and kernels of
/// cpu::BlockedSweep and with the same bits.
///
///            block of columns                    done by its owner, whose threads take the owner's blocks in turn
///      + - - +---+ - -      for each row block b above, from the top, when its transform is there:
///        \   | b |             [ R_b; Vt ] <- H_b [ R_b; Vt ]
///          \ +---+          then find H_d for the rows of the block on its own diagonal, apply H_d there, and send
///            \ d |          H_d in one message to all processes that have columns on the right
///
/// The owner of block d + 1 has done all rows above that block's diagonal but the last 64 before the message of block d
/// comes. So block d + 1 waits for one message and one block step alone, and the sender works on its own next block.
/// All transforms are kept. With r rows in a row block of the kernels (8 with AVX-512, otherwise 4) and k > 4, they are
/// n (k + r + 1) numbers for an update, and n (k + 2 r + 2) for a downdate. If right-hand sides are carried, every
/// process receives all transforms and applies them to the right-hand sides by itself.
///
/// Error: residual ratio < 30. Reference: inst/design/processes.md.
template <class T>
class SharedSweep {
 public:
  /// Wraps V (n x k, whole in each process), which is only read and has to outlive the sweep. `carries`: carry() will
  /// be called. Other arguments: as of cpu::BlockedSweep.
  SharedSweep(Team& team, const Layout& layout, MatrixView<const T> V, index_t removed, T scale,
              Instructions instructions, int threads, bool carries);

  /// Makes the sweep begin with `block`, above which V is zero.
  void start_at(index_t block) {
    first_ = block;
    stages_.start_at(layout_.first(block));
  }

  /// Does this process's part, within an operation of the team: to <- R~. `to` may be R; null: a dry run. Returns the
  /// failing pivot if this process finds it, or -1. With a failing pivot, `to` is partly written.
  index_t run(const Columns<T>& R, const Columns<T>* to, const Poll& poll);

  /// Modifies the right-hand sides, from the rows of the first block on, in each process. Called after run() has
  /// succeeded in all processes.
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
  index_t first_ = 0;  ///< block that the sweep begins with
  bool carries_;       ///< True if right-hand sides are carried: every process receives all transforms
  index_t rows_, ldv_;
  std::vector<Workspace> workspaces_;
};

}  // namespace gpucholmod::mpi
