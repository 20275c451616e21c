#pragma once

#include <optional>
#include <vector>

#include "base/columns_of_v.h"
#include "base/task.h"
#include "block_columns/pass.h"
#include "cuda/device_group.h"
#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// Returns an attribute of the current device.
int attribute(cudaDeviceAttr which);

/// Returns the id of the current device.
int current_device();

/// Returns the number of multiprocessors of the current device.
int multiprocessors();

/// Describes how passes run on the current device.
struct Way {
  Launch launch;  ///< persistent: by segments; stepwise: by Householder steps alone
  int columns;    ///< columns of V in a pass: 8, 16 or 32
};

/// Returns the way for k columns of V, `removed` of which are taken away, and panels of at most `panel_strips` strips.
/// A whole factor may lie on a group of devices: passes are as wide as on one device, so that any number of devices
/// computes the same result. Throws backend_unavailable if the kernels asked for do not run on this device.
template <class T>
Way way_of(index_t k, index_t removed, int panel_strips, bool whole, const Task& task,
           const DeviceGroup* devices = nullptr);

/// Returns the pivot at which a downdate has failed, or -1. `column`: the column that pivots of `done` are counted
/// from. Throws bad_diagonal if an entry of the diagonal is too small for a normal number of T, and overflow if it is
/// too large.
template <class T>
index_t failing_pivot(const block_columns::PassOutcome& done, index_t column = 0);

/// Holds the right-hand sides of a whole factor, which travel between page-locked memory of the host and a pass.
template <class T>
struct SidesOnTheWay {
  MatrixView<double> z;  ///< n x m
  MatrixView<T> dz;      ///< right-hand sides on the device: whole strips of columns, as tall as the factor
  double* Y;             ///< m x k: a column for each column of V; a pass leaves in its columns what remains of them
};

/// Runs one pass of a modification on a GPU (inst/design/segments.md): holds its memory and its columns of V, and
/// launches its turns on one panel of the factor. Every modification on a GPU consists of passes. The order of the
/// panels is decided by FactorPass or, if processes have the panels, by mpi_cuda::PanelPass. The next turn is queued
/// when the outcome of the turn before is known, or earlier. The pass runs on the current device.
template <class T>
class Pass {
 public:
  using Turns = std::vector<block_columns::Turn>;

  /// Queues a copy of the columns of V that the pass begins with (n rows; rows behind them count as zero). V is in the
  /// memory of the device or of the host; pageable host memory may be reused on return.
  void prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream);
  /// Queues a copy as prepare() does, of columns that nobody has looked at, each times a number if `scaled` is not
  /// null, and a look at the columns. The pass becomes a no-op if a number is not plain (largest_plain).
  void send_unseen(const double* V, index_t n, index_t ldv, const std::vector<ScaledColumn>* scaled,
                   cudaStream_t stream);
  /// Queues turn number `turn` of the panel.
  void start_turn(int turn, cudaStream_t stream) const;
  /// Queues a copy of the panel's outcome to page-locked memory of outcome_bytes().
  void fetch_outcome(void* to, cudaStream_t stream) const;
  std::size_t outcome_bytes() const { return outcome_bytes_of(size_); }
  /// Returns outcome_bytes() of a pass of that size.
  static std::size_t outcome_bytes_of(const block_columns::SegmentSize& size) {
    return look_room + sizeof(int) * std::size_t(block_columns::PassInts::outcome_words(size.panel_strips *
                                                                                      block_columns::BLOCKS));
  }
  /// Returns the findings in the columns of V that are added or, if `removed`, taken away; zeros if the device has not
  /// looked at V.
  block_columns::Looked looked(const void* fetched, bool removed) const;
  /// Returns the panel's outcome behind `turn`, with pivots counted from the panel's first row; nothing if another turn
  /// is needed.
  std::optional<block_columns::PassOutcome> outcome(void* fetched, int turn);

  Launch launch() const { return launch_; }
  int ranks() const { return devices_ ? devices_->ranks() : 1; }
  int blocks() const { return size_.blocks(); }

 protected:
  /// Allocates the memory of the pass. `devices`: the device ranks of a whole factor, if there are several; `strip`:
  /// the strip of the factor that the pass begins with. Throws out_of_memory.
  Pass(Pool& pool, Launch launch, const block_columns::SegmentSize& size, const block_columns::PassColumns& columns,
       block_columns::Scaling scaling, DeviceGroup* devices = nullptr, int strip = 0);

  /// Returns the segment of strips [first, end), above which there are row blocks of `above` strips, whose transforms
  /// begin at place `transform`. R and `out` point to the first row behind these row blocks.
  block_columns::Segment<T> placed(int first, int end, int above, index_t transform, const T* R, T* out,
                                   index_t ld) const;
  /// Queues the beginning of a panel, which clears the flags of its row blocks; the first segment begins with row block
  /// `from`. Work that is queued until the next panel begins becomes a no-op if `before` needs turns behind number
  /// `turn`, or if V holds a number that is not plain.
  void begin(int from, const Pass* before, int turn, cudaStream_t stream) const;
  /// The state of the last turn's segment when turns are repeated: open (none of the segment is repeated), to be closed
  /// (before the segment is repeated), or closed (the segment is repeated).
  enum class Last { open, to_close, closed };
  /// Queues on `panel` the work that the turns have done on the columns to its left.
  void repeat(const block_columns::Segment<T>& panel, const Turns& turns, Last last, cudaStream_t stream) const;
  /// Queues the launch of close_segment(), which explains `turn`.
  void close(const block_columns::Segment<T>& segment, int turn, cudaStream_t stream) const;

  /// Queues zeros for the pass's columns, with leading dimension `rows`, unless m rows of V fill them all.
  void clear_columns(index_t m, index_t rows, cudaStream_t stream) const;
  /// Queues a copy of m rows of the pass's columns of V, in double, to row `first` of the pass's columns, which have
  /// leading dimension `rows`.
  void send(const double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const;
  /// Returns where send() puts columns in double, before they are converted to what the pass computes with.
  double* place_in_double() const { return single_ ? memory() + size_.ints() / 2 : memory(); }
  /// Queues a copy of m rows of the pass's columns, from row `first` on, back to V.
  void fetch(double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const;
  /// Queues one kernel that brings right-hand sides to the device: Y to row `first` of the pass's columns, and z if
  /// `all`.
  void take_sides(const SidesOnTheWay<T>& sides, index_t first, bool all, cudaStream_t stream) const;
  /// Queues one kernel that brings what is left of Y, and z~ if `all`, back to the host.
  void give_sides(const SidesOnTheWay<T>& sides, index_t first, bool all, cudaStream_t stream) const;

  double* memory() const { return dmemory_.data(); }
  block_columns::PassInts ints() const { return {reinterpret_cast<int*>(memory() + size_.ints())}; }
  bool by_steps() const { return launch_ == Launch::stepwise; }
  /// Returns the bytes of a number that the pass computes with.
  std::size_t word_bytes() const { return single_ ? sizeof(float) : sizeof(double); }
  const block_columns::SegmentSize& size() const { return size_; }
  index_t rows() const { return index_t(size_.strips) * block_columns::STRIP; }

  block_columns::Segment<T> panel_{};
  Turns turns_{{0, 0}};  ///< turns so far; the segment of the last turn is still open

 private:
  static constexpr std::size_t look_room = sizeof(block_columns::Looked) * block_columns::most_pieces;
  block_columns::Looked* looks() const {
    return reinterpret_cast<block_columns::Looked*>(memory() + size_.looks());
  }
  /// Returns Segment::device_rank of a rank: the number of its first strip, counted from the first strip of the pass.
  int strips_of_rank(int rank) const { return (rank + on_ - strip_ % on_) % on_; }
  /// Queues a turn on every rank.
  template <int K, class A>
  void start_on_ranks(int turn, cudaStream_t stream) const;
  template <int K, class A>
  void start_turn(int turn, cudaStream_t stream) const;
  template <int K, class A>
  void close(const block_columns::Segment<T>& segment, int turn, cudaStream_t stream) const;
  /// Calls f() with the pass's part of Y, in the scalars that the pass computes with.
  template <class F>
  void with_sides(const SidesOnTheWay<T>& sides, index_t first, F&& f) const;
  /// Calls f(width of the pass, A()), where the pass computes with A's. Words that are not doubles fill the first part
  /// of memory().
  template <class F>
  void with_words(F&& f) const;

  Launch launch_;
  bool single_;  ///< True if the pass computes with floats
  block_columns::SegmentSize size_;
  block_columns::PassColumns columns_;
  block_columns::Scaling scaling_;
  PoolBuffer<double> dmemory_;
  int pieces_ = 0;        ///< pieces of each column of V that the device looks at
  int on_, strip_;        ///< number of ranks of the factor, and the strip of the factor that the pass begins with
  DeviceGroup* devices_;  ///< null if the first rank does the pass alone
};

/// Allocates on each device but the first the memory that a pass needs there, so that none is missing later. Throws
/// out_of_memory.
void reserve(DeviceGroup& devices, const block_columns::SegmentSize& size);

}  // namespace gpucholmod::cuda
