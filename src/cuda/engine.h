#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/task.h"
#include "block_columns/pass.h"
#include "cuda/device_group.h"
#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// How a factor that stays on a GPU lies in its memory: column-major, column j at data + j * ld, R upper.
///
/// The order is rounded up to a whole number of strips; behind row and column n the factor is continued by the identity
/// (ones on the diagonal, zeros above it), so that no kernel has to look for an edge. The strict lower triangle is zero
/// within diagonal blocks of order NB; elsewhere it is never read and holds anything. There is room for more strips,
/// which hold anything, but zeros in that place.
struct Layout {
  index_t n, padded, room, ld;
  int strip = 0;  ///< of the factor, that it begins with

  explicit Layout(index_t order, index_t capacity = 0)
      : n(order), padded(rounded(order)), room(std::max(padded, rounded(capacity))), ld(room + block_columns::margin) {}
  index_t words() const { return ld * room; }
  int strips() const { return int(padded / block_columns::STRIP); }

  /// Of its first rows and columns.
  Layout leading(index_t order) const { return with(order, rounded(order), room); }
  /// Of what lies behind its first rows, a whole number of strips.
  Layout behind(index_t rows) const {
    Layout made = with(n - rows, padded - rows, room - rows);
    made.strip += int(rows / block_columns::STRIP);
    return made;
  }

 private:
  static index_t rounded(index_t order) { return index_t(block_columns::strips_of(order)) * block_columns::STRIP; }
  Layout with(index_t order, index_t height, index_t space) const {
    Layout made = *this;
    made.n = order;
    made.padded = height;
    made.room = space;
    return made;
  }
};

/// Of the current device.
int attribute(cudaDeviceAttr which);

/// Multiprocessors of the current device.
int multiprocessors();

/// How a pass goes on the current device.
struct Way {
  Launch launch;  ///< persistent: by segments; stepwise: by Householder steps alone
  int columns;    ///< of V in a pass: 8, 16 or 32
};

/// For k columns of V, `removed` of which are taken away, and panels of at most so many strips. A whole factor may lie
/// on a group of devices: passes are as wide as one of them has room for, so that any number computes the same; where
/// it has none, of 8 columns, if all of them have room together. Throws backend_unavailable where the kernels asked for
/// do not run on this device.
template <class T>
Way way_of(index_t k, index_t removed, int panel_strips, bool whole, const Task& task,
           const DeviceGroup* devices = nullptr);

/// Returns the pivot at which a downdate has failed, or -1; the pass began with column `column`. Throws bad_diagonal,
/// and overflow, where an entry of the diagonal leaves the range of normal numbers of T.
template <class T>
index_t failing_pivot(const block_columns::PassOutcome& done, index_t column = 0);

/// One pass of a modification on a GPU (inst/design/segments.md), of a factor that is there, or goes through it by
/// panels, from the left. Every modification on a GPU goes by these. A panel goes by turns, of which the next is queued
/// when it is known how the one before has ended, or earlier. On the current device.
template <class T>
class Pass {
 public:
  /// `devices`: the owners that a whole factor lies on, if they are several, from the strip `strip` of one on. Throws
  /// out_of_memory.
  Pass(Pool& pool, Launch launch, const block_columns::SegmentSize& size, const block_columns::PassColumns& columns,
       block_columns::Scaling scaling = {}, DeviceGroup* devices = nullptr, int strip = 0);
  /// What a pass takes on each of them but the first, so that none of it is missing later. Throws out_of_memory.
  static void reserve(DeviceGroup& devices, const block_columns::SegmentSize& size);

  /// Queues what the pass begins with: its columns of V (n rows; what is behind them counts as zero), from the device,
  /// or host memory that may be reused on return where it is pageable.
  void prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream) const;

  /// Strips [first, end) are next, from R to out, columns from their first row on; out may be R itself, or null for a
  /// whole factor: then only whether it can be done is found out. Queues what has been done so far to the row blocks
  /// above them. Work that is queued from here to the next call does nothing if the pass `before` needs
  /// more than one turn on these strips.
  void begin_panel(int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream,
                   const Pass* before = nullptr);
  /// Queues turn `turn` of the panel.
  void start_turn(int turn, cudaStream_t stream) const;
  /// Queues a copy of what has become of it, to page-locked memory of outcome_bytes().
  void fetch_outcome(void* to, cudaStream_t stream) const;
  std::size_t outcome_bytes() const;
  /// What has become of the panel behind `turn`, pivots counted from its first row; nothing where another turn is
  /// needed.
  std::optional<block_columns::PassOutcome> outcome(void* fetched, int turn);

  /// R to out, a whole factor, in this way. Returns when it is done. `wait` is called when something has been queued,
  /// and returns when the stream has come past it; `end` is when the modification itself was done. `turns`: how many
  /// are expected, which are queued at once; becomes how many it took. `staging`: as above.
  block_columns::PassOutcome run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                 const std::function<void()>& wait, cudaStream_t stream);

  /// When all panels are done, of each of which every turn has been looked at: queues what has been done to them to a
  /// strip of right-hand sides. z: in device memory, as high as the factor and STRIP wide, zero where there is nothing.
  /// Y (m rows, leading dimension ldy, in host memory): what belongs to V, of which the pass takes its columns; `rest`,
  /// likewise, what is left of it.
  void carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m, cudaStream_t stream);

  // Of a factor whose panels several processes have (mpi/panel_sweep.h): V is that of this one's own columns, and every
  // panel begins anew. There are two slots for messages, for panels of size.panel_strips at the most.

  using Turns = std::vector<block_columns::Turn>;
  /// Before all else but prepare().
  void clear(cudaStream_t stream) const;
  /// Strips [first, end) of this process's are next, from where the panel crosses the diagonal, in R, to out, which may
  /// be null; a factor of their own, with so many rows of the whole one. start_turn() and so on as above.
  void begin_anew(int first, int end, index_t rows, int slot, const T* R, T* out, index_t ld, cudaStream_t stream);
  /// When it is done: queues what of its message is still missing. Returns the turns that it took.
  const Turns& close(cudaStream_t stream) const;
  /// Of the message of a panel of so many strips that took these turns, what others need; and queues a copy of it to
  /// host memory, or from there.
  std::size_t message_bytes(int strips, const Turns& turns) const;
  void fetch_message(char* to, int strips, int slot, const Turns& turns, cudaStream_t stream) const;
  void put_message(const char* from, int strips, int slot, const Turns& turns, cudaStream_t stream) const;
  /// Queues what a panel of so many strips, whose message is in `slot`, does to strips [first, end) on its right; R and
  /// out: there, in the row behind the panel's.
  void follow(const Turns& turns, int strips, int slot, int first, int end, const T* R, T* out, index_t ld,
              cudaStream_t stream) const;
  /// Queues a copy of m rows of V, from row `first` on, from host memory as prepare() takes it; and to host memory.
  void send_V(const double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const;
  void fetch_V(double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const;

  Launch launch() const { return launch_; }
  int owners() const { return devices_ ? devices_->owners() : 1; }
  int blocks() const { return size_.strips * block_columns::BLOCKS; }

 private:
  double* memory() const { return dmemory_.data(); }
  /// Which of the factor's strips are an owner's, counted from its first: Segment::owner.
  int strips_of_owner(int owner) const { return (owner + on_ - strip_ % on_) % on_; }
  block_columns::PassInts ints() const { return {reinterpret_cast<int*>(memory() + size_.ints())}; }
  bool by_steps() const { return launch_ == Launch::stepwise; }
  /// Strips [first, end), below row blocks of so many others whose messages are at place `message`. R, out: behind
  /// these.
  block_columns::Segment<T> placed(int first, int end, int above, index_t message, const T* R, T* out,
                                   index_t ld) const;
  /// The panel that is next, its own row blocks left aside.
  void place_panel(int first, int end, const T* R, T* out, index_t ld);
  /// Calls copy(on the device, their distance there, bytes, how many) for each part of a message that others need.
  template <class Copy>
  void each_part(int strips, int slot, const Turns& turns, Copy&& copy) const;
  index_t first_message(int slot) const { return slot * (index_t(size_.panel_strips) * block_columns::BLOCKS + 1); }
  /// A turn, on every owner.
  template <int K, class A>
  void start_on_owners(int turn, cudaStream_t stream) const;
  /// What of the last turn there is to repeat: nothing of its segment yet, which is not over; all, which is to be
  /// closed before; all.
  enum class Last { open, to_close, closed };
  void repeat(const block_columns::Segment<T>& panel, const Turns& turns, Last last, cudaStream_t stream) const;
  template <int K, class A>
  void close(const block_columns::Segment<T>& segment, cudaStream_t stream) const;
  template <int K, class A>
  void start_turn(int turn, cudaStream_t stream) const;
  /// f(width of the pass, A()), A being what it computes with; its words take the first part of memory() where they are
  /// not doubles.
  template <class F>
  void with_words(F&& f) const;
  /// Columns of V, in double, to where the pass has them, and back from there: with leading dimension `rows`, and one
  /// of their own. Before: zeros there, unless all is sent.
  void clear_columns(index_t m, index_t rows, cudaStream_t stream) const;
  void send(const double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const;
  void fetch(double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const;

  Launch launch_;
  bool single_;  ///< computes with floats
  block_columns::SegmentSize size_;
  block_columns::PassColumns columns_;
  block_columns::Scaling scaling_;
  PoolBuffer<double> dmemory_;
  int on_, strip_;  ///< owners, and the strip that it begins with
  DeviceGroup* devices_;      ///< null where the first owner does it alone
  block_columns::Segment<T> panel_{};
  Turns turns_{{0, 0}};  ///< so far; the segment of the last one is not over
};

}  // namespace gpucholmod::cuda
