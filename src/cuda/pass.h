#pragma once

#include <optional>
#include <vector>

#include "base/columns_of_v.h"
#include "base/task.h"
#include "block_columns/pass.h"
#include "cuda/device_group.h"
#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// Of the current device.
int attribute(cudaDeviceAttr which);

/// Returns the id of the current device.
int current_device();

/// Multiprocessors of the current device.
int multiprocessors();

/// How a pass goes on the current device.
struct Way {
  Launch launch;  ///< persistent: by segments; stepwise: by Householder steps alone
  int columns;    ///< of V in a pass: 8, 16 or 32
};

/// For k columns of V, `removed` of which are taken away, and panels of at most so many strips. A whole factor may lie
/// on a group of devices: passes are as wide as on one of them, so that any number computes the same. Throws
/// backend_unavailable where the kernels asked for do not run on this device.
template <class T>
Way way_of(index_t k, index_t removed, int panel_strips, bool whole, const Task& task,
           const DeviceGroup* devices = nullptr);

/// Returns the pivot at which a downdate has failed, or -1; the pass began with column `column`. Throws bad_diagonal,
/// and overflow, where an entry of the diagonal leaves the range of normal numbers of T.
template <class T>
index_t failing_pivot(const block_columns::PassOutcome& done, index_t column = 0);

/// Right-hand sides of a whole factor on their way between the host, where they are in page-locked memory, and a pass.
template <class T>
struct SidesOnTheWay {
  MatrixView<double> z;  ///< n x m
  MatrixView<T> dz;      ///< on the device: whole strips of columns, as high as the factor
  double* Y;             ///< m x k: what belongs to V; when a pass has been over, what is left of its columns
};

/// One pass of a modification on a GPU (inst/design/segments.md): its memory, its columns of V, and the launches of its
/// turns on one panel of the factor. Every modification on a GPU goes by passes; who has which panel when is told by
/// FactorPass, and where processes have the panels by mpi_cuda::PanelPass. The next turn is queued when the outcome of
/// the one before is known, or earlier. On the current device.
template <class T>
class Pass {
 public:
  using Turns = std::vector<block_columns::Turn>;

  /// Queues the columns of V that the pass begins with (n rows; what is behind them counts as zero), from the device,
  /// or host memory that may be reused on return where it is pageable.
  void prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream);
  /// The same of columns that nobody has looked at, each times a number if `scaled` is not null, and a look at them:
  /// nothing of the pass is done where a number is no plain one (largest_plain).
  void send_unseen(const double* V, index_t n, index_t ldv, const std::vector<ScaledColumn>* scaled,
                   cudaStream_t stream);
  /// Queues turn `turn` of the panel.
  void start_turn(int turn, cudaStream_t stream) const;
  /// Queues a copy of the panel's outcome, to page-locked memory of outcome_bytes().
  void fetch_outcome(void* to, cudaStream_t stream) const;
  std::size_t outcome_bytes() const { return outcome_bytes_of(size_); }
  /// Returns the same for a pass of that size.
  static std::size_t outcome_bytes_of(const block_columns::SegmentSize& size) {
    return look_room + sizeof(int) * std::size_t(block_columns::PassInts::outcome_words(size.panel_strips *
                                                                                      block_columns::BLOCKS));
  }
  /// Reads what the columns of V hold that are added, or taken away: where they were looked at.
  block_columns::Looked looked(const void* fetched, bool removed) const;
  /// Reads the panel's outcome behind `turn`, pivots counted from its first row; nothing where another turn is needed.
  std::optional<block_columns::PassOutcome> outcome(void* fetched, int turn);

  Launch launch() const { return launch_; }
  int ranks() const { return devices_ ? devices_->ranks() : 1; }
  int blocks() const { return size_.blocks(); }

 protected:
  /// `devices`: the ranks that a whole factor lies on, if they are several, from the strip `strip` of one on. Throws
  /// out_of_memory.
  Pass(Pool& pool, Launch launch, const block_columns::SegmentSize& size, const block_columns::PassColumns& columns,
       block_columns::Scaling scaling, DeviceGroup* devices = nullptr, int strip = 0);

  /// Places strips [first, end) below row blocks of `above` strips, whose transforms begin at place `transform`. R,
  /// out: behind these row blocks.
  block_columns::Segment<T> placed(int first, int end, int above, index_t transform, const T* R, T* out,
                                   index_t ld) const;
  /// Queues what every panel begins with: flags of its row blocks, from block `from` on. Where `before` needs turns
  /// behind number `turn`, or V holds what is no plain number, all that is queued until the next panel begins does
  /// nothing.
  void begin(int from, const Pass* before, int turn, cudaStream_t stream) const;
  /// How much of the last turn is repeated: nothing of its segment, which is not over; all, and it has to be closed
  /// first; all.
  enum class Last { open, to_close, closed };
  /// Queues what the turns have done, on `panel`, which lies to the right of where they did it.
  void repeat(const block_columns::Segment<T>& panel, const Turns& turns, Last last, cudaStream_t stream) const;
  /// Queues what closes a segment; `turn`: see close_segment().
  void close(const block_columns::Segment<T>& segment, int turn, cudaStream_t stream) const;

  /// Columns of V, in double, to where the pass has them, and back from there: with leading dimension `rows`, and one
  /// of their own. Before: zeros there, unless all is sent.
  void clear_columns(index_t m, index_t rows, cudaStream_t stream) const;
  void send(const double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const;
  /// Where send() puts columns in double before they become what the pass computes with.
  double* place_in_double() const { return single_ ? memory() + size_.ints() / 2 : memory(); }
  void fetch(double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const;
  /// Queues, by one kernel, the way of right-hand sides to the device, Y to row `first` of the pass's columns, z if
  /// `all`; and back from there.
  void take_sides(const SidesOnTheWay<T>& sides, index_t first, bool all, cudaStream_t stream) const;
  void give_sides(const SidesOnTheWay<T>& sides, index_t first, bool all, cudaStream_t stream) const;

  double* memory() const { return dmemory_.data(); }
  block_columns::PassInts ints() const { return {reinterpret_cast<int*>(memory() + size_.ints())}; }
  bool by_steps() const { return launch_ == Launch::stepwise; }
  /// Bytes of a number that the pass computes with.
  std::size_t word_bytes() const { return single_ ? sizeof(float) : sizeof(double); }
  const block_columns::SegmentSize& size() const { return size_; }
  index_t rows() const { return index_t(size_.strips) * block_columns::STRIP; }

  block_columns::Segment<T> panel_{};
  Turns turns_{{0, 0}};  ///< so far; the segment of the last one is not over

 private:
  static constexpr std::size_t look_room = sizeof(block_columns::Looked) * block_columns::most_pieces;
  block_columns::Looked* looks() const {
    return reinterpret_cast<block_columns::Looked*>(memory() + size_.looks());
  }
  /// Which of the factor's strips are a rank's, counted from its first: Segment::device_rank.
  int strips_of_rank(int rank) const { return (rank + on_ - strip_ % on_) % on_; }
  /// A turn, on every rank.
  template <int K, class A>
  void start_on_ranks(int turn, cudaStream_t stream) const;
  template <int K, class A>
  void start_turn(int turn, cudaStream_t stream) const;
  template <int K, class A>
  void close(const block_columns::Segment<T>& segment, int turn, cudaStream_t stream) const;
  /// f(the pass's part of Y, as what it computes with).
  template <class F>
  void with_sides(const SidesOnTheWay<T>& sides, index_t first, F&& f) const;
  /// f(width of the pass, A()), A being what it computes with; its words take the first part of memory() where they are
  /// not doubles.
  template <class F>
  void with_words(F&& f) const;

  Launch launch_;
  bool single_;  ///< computes with floats
  block_columns::SegmentSize size_;
  block_columns::PassColumns columns_;
  block_columns::Scaling scaling_;
  PoolBuffer<double> dmemory_;
  int pieces_ = 0;        ///< of each column of V that are looked at
  int on_, strip_;        ///< ranks, and the strip that it begins with
  DeviceGroup* devices_;  ///< null where the first rank does it alone
};

/// Takes on each device but the first the memory that a pass needs there, so that none of it is missing later. Throws
/// out_of_memory.
void reserve(DeviceGroup& devices, const block_columns::SegmentSize& size);

}  // namespace gpucholmod::cuda
