#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <deque>
#include <optional>
#include <vector>

#include "base/factor_io.h"
#include "cuda/context.h"
#include "cuda/factor_pass.h"
#include "cuda/parts_apart.cuh"
#include "cuda/right_sides.cuh"
#include "cuda/transfer.cuh"
#include "cuda/kernels/layout.cuh"

namespace gpucholmod::cuda {

/// The purpose of scaling a factor: an intermediate that is computed with, or a result.
enum class Scaled { to_compute, result };

/// Computes out <- `by` R, both upper. Throws overflow if an entry becomes infinite, and bad_diagonal if an entry of
/// the diagonal becomes no normal number. Needs a Session.
template <class T>
void scale_factor(MatrixView<const T> R, double by, MatrixView<T> out, Scaled what, Context& context) {
  const index_t n = R.cols;
  const cudaStream_t stream = context.stream();
  constexpr T least = std::numeric_limits<T>::min();
  const PoolBuffer<unsigned long long> dplaces(context.pool(), 2);
  check(cudaMemsetAsync(dplaces.data(), 0xff, dplaces.bytes(), stream), "prepare to scale a factor");
  scale_triangle<<<unsigned(n), 256, 0, stream>>>(R, T(by), least, out, dplaces.data());
  check(cudaGetLastError(), "start the scaling of a factor");
  unsigned long long places[2];
  check(cudaMemcpyAsync(places, dplaces.data(), sizeof places, cudaMemcpyDeviceToHost, stream),
        "fetch what went wrong");
  check(cudaStreamSynchronize(stream), "scale a factor");
  if (places[0] != ~0ull) throw overflow(index_t(places[0] % n), index_t(places[0] / n));
  if (places[1] == ~0ull) return;
  T made = 0;
  const index_t j = index_t(places[1]);
  check(cudaMemcpy(&made, &out(j, j), sizeof made, cudaMemcpyDeviceToHost), "fetch an entry of the diagonal");
  if (what == Scaled::result) throw vanished(j, double(made), double(least));
  require_not_vanished(made, double(made) / by, j);
}

/// Runs one modification of a factor on a GPU: the passes of a task, one after the other. run() needs a Session.
template <class T>
class Modification {
 public:
  /// Takes V (n x k), in host memory or, if e is 0, in device memory, and divides it by 2^e, as R has been divided. The
  /// result is multiplied by `scale`. `extra_bytes`: bytes of device memory that the call needs besides. Throws
  /// out_of_memory if the call needs more than the task allows.
  Modification(Context& context, const Layout& layout, MatrixView<const double> V, int e, double scale,
               const Task& task, double extra_bytes, const Poll& poll)
      : context_(context), layout_(layout), V_(V), scale_(scale), task_(task), poll_(poll),
        side_strips_(SidesOfFactor<T>::strips(task.right)),
        way_(way_of<T>(task.k, task.removed, layout.strips() + side_strips_, true, task, context.device_group())),
        passes_(block_columns::passes_of(task.k, task.removed, way_.columns)) {
    const index_t sides = SidesOfFactor<T>::words(task.right, layout.ld);
    if (e != 0) {
      scaled_.assign(V.data, V.data + V.ld * V.cols);
      for (double& v : scaled_) v = std::scalbn(v, -e);
      V_.data = scaled_.data();
    }
    work_.device_bytes = extra_bytes + size(way_.columns).bytes() + double(sizeof(T)) * double(sides);
    require_allowed(work_.device_bytes, task.device_memory);
    if (sides > 0) dz_.emplace(context.passes(), sides);
    work_.device = context.device_name();
    if (task.timeline) stopwatch_.emplace(timeline_, context.stream());
  }

  /// Replaces V by columns of V, each times a number; null: V stays as it is. `columns` has to outlive this.
  void multiply(const std::vector<ScaledColumn>* columns) { columns_ = columns; }
  /// Makes the device look at V, which the host has not read. Columns that are multiplied are looked at in any case.
  void look() { look_ = true; }
  /// Sets the parts of the factor that lie apart; after run() they are those of the result. `parts` must outlive this.
  void lie_apart(PartsApart<T>& parts) { apart_ = &parts; }

  /// Allocates the memory of a pass and frees it again, so that none is missing later. Throws out_of_memory.
  void reserve() const {
    const block_columns::SegmentSize memory = size(way_.columns);
    PoolBuffer<double>(context_.passes(), memory.words());
    if (DeviceGroup* const devices = context_.device_group()) cuda::reserve(*devices, memory);
    context_.staging(staging_bytes());
  }

  /// Modifies the leading strips of R that hold `order` rows, and writes them to `out`, in the layout of a factor.
  /// `out` may be R or, for one pass, null: a dry run, which writes nothing. Rows of V from `order` on count as zero.
  /// Returns the failing pivot, or -1; if a pivot fails, `out` is unspecified. Calls `poll` while the device works; if
  /// `poll` throws, the device still ends the pass. `begun`, if given, becomes true before any write.
  index_t run(const T* R, T* out, index_t order, std::atomic<bool>* begun = nullptr) {
    work_.blocks = work_.fallbacks = work_.rescalings = 0;
    const int strips = block_columns::strips_of(order);
    char* const staging = static_cast<char*>(context_.staging(staging_bytes()));
    std::optional<SidesOfFactor<T>> sides;
    if (out && order == layout_.n && side_strips_ > 0)
      sides.emplace(task_.right, dz_->data(), layout_.ld, reinterpret_cast<double*>(staging + outcome_room()),
                    context_.stream());
    const std::unique_ptr<PoolBuffer<T>> between = out && R != out ? room_between() : nullptr;
    const T* from = R;
    std::deque<FactorPass<T>> ready;  // the current pass, and the next, whose V is sent while the current one works
    const Finally settled([&] {       // a copy must not write to memory that has been given back
      if (copies_) cudaStreamSynchronize(context_.copies());
      copies_ = false;
    });
    looked_ = {};
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      T* const to = between && (passes_.size() - i) % 2 == 0 ? between->data() : out;
      const bool came = !ready.empty();
      const Next next{ready, i, came, size(way_.columns, strips, sides ? side_strips_ : 0), order,
                      sides ? &*sides : nullptr};
      if (!came) make_pass(next, i);
      const index_t pivot = run_pass(next, from, to, staging, begun);
      if (pivot >= 0) return pivot;
      if (apart_ && to && to != from) apart_->swap();
      ready.pop_front();
      from = to;
    }
    if (sides) sides->deliver();
    return -1;
  }

  /// Queues a modification of the whole factor from R to another place, each pass with as many turns as the most recent
  /// pass took. Calls then(end) with the end of the last pass. The last pass is not done, and `out` is lost, if more
  /// turns are needed or V is not plain. Needs no Session.
  template <class F>
  void queue(const T* R, T* out, F&& then) {
    const auto between = room_between();
    const T* from = R;
    std::deque<FactorPass<T>> queued;  // the pass before, whose end the next pass looks at, and the next pass
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      T* const to = between && (passes_.size() - i) % 2 == 0 ? between->data() : out;
      FactorPass<T>& pass = make_pass({queued, i, false, size(way_.columns), layout_.n, nullptr}, i);
      if (apart_) pass.lie_apart(apart_->of_pass(from == to));
      send_columns(pass, layout_.n, context_.stream());
      const auto end = pass.queue(from, to, layout_.ld, context_.turns(), i > 0 ? &queued[0] : nullptr,
                                  context_.stream());
      if (apart_ && to != from) apart_->swap();
      if (i + 1 == passes_.size()) then(end);
      if (i > 0) queued.pop_front();
      from = to;
    }
  }

  /// Returns f(), which allocates `bytes` of device memory. Throws out_of_memory if the device has no room for them, or
  /// the task does not allow them.
  template <class F>
  auto with_room(double bytes, F&& f) -> decltype(f()) {
    require_allowed(work_.device_bytes + bytes, task_.device_memory);
    auto made = f();
    work_.device_bytes += bytes;
    return made;
  }
  /// Returns f() as with_room() does, or null if there is no room: the call can do without.
  template <class F>
  auto if_room(double bytes, F&& f) -> decltype(f()) {
    try {
      return with_room(bytes, f);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      return nullptr;
    }
  }

  /// Returns the first pivot that fails, which is not behind `pivot`, where a pass of run() has failed. Tries ever
  /// smaller leading parts of R until no pass fails. from() returns R anew; `scratch`: as `out` of run().
  template <class F>
  index_t first_pivot(F&& from, T* scratch, index_t pivot) {
    if (passes_.size() == 1) return pivot;
    const Work whole = work_;
    while (pivot > 0) {
      take_leading(from(), scratch, pivot);
      const index_t found = run(scratch, scratch, pivot);
      if (found < 0) break;
      pivot = found;
    }
    work_ = whole;
    return pivot;
  }

  int passes() const { return int(passes_.size()); }

  /// Returns the largest magnitude in V if the device has looked at V; infinite if a number is not finite.
  double largest() const { return std::max(looked_[0].largest, looked_[1].largest); }

  Work finish(index_t pivot) {
    if (stopwatch_) stopwatch_->report();
    work_.timeline = timeline_.entries();
    for (int i = 0; look_ && i < 2; ++i) work_.squares[i] = looked_[i].squares;
    work_.pivot = pivot;
    return std::move(work_);
  }

 private:
  static block_columns::SegmentSize size(int columns, int strips, int side_strips) {
    return {columns, strips + side_strips, strips + side_strips, side_strips};
  }
  /// Returns the sizes of a pass over the whole factor.
  block_columns::SegmentSize size(int columns) const { return size(columns, layout_.strips(), side_strips_); }

  /// Returns the bytes of page-locked memory for the outcome of a pass; staging_bytes() adds the right-hand sides.
  std::size_t outcome_room() const { return (Pass<T>::outcome_bytes_of(size(way_.columns)) + 63) / 64 * 64; }
  std::size_t staging_bytes() const { return outcome_room() + SidesOfFactor<T>::locked_bytes(task_.right); }

  /// Copies the leading `order` rows and columns of R to `to`, and fills the rest of the last strip with the identity.
  void take_leading(const T* R, T* to, index_t order) {
    const index_t rows = index_t(block_columns::strips_of(order)) * block_columns::STRIP, behind = rows - order;
    const cudaStream_t stream = context_.stream();
    if (R != to) copy_on_device<T>({R, rows, order, layout_.ld}, {to, rows, order, layout_.ld}, context_);
    if (behind == 0) return;
    const MatrixView<T> rest{to + order * layout_.ld, rows, behind, layout_.ld};
    set_identity<<<unsigned(behind), 256, 0, stream>>>(rest, order);
    check(cudaGetLastError(), "continue the leading part of a factor");
  }

  /// Allocates a place for the result of every other pass, as a pass in place takes longer. Null for a single pass.
  std::unique_ptr<PoolBuffer<T>> room_between() {
    if (passes_.size() == 1) return nullptr;
    const std::size_t piece = sizeof(T) * std::size_t(layout_.ld * block_columns::STRIP);
    const double bytes = double(sizeof(T)) * double(layout_.words());
    if (apart_ && bytes > double(tuning::stream_kept)) return nullptr;  // memory that is not kept is slow to allocate
    Memory& memory = apart_ ? context_.workspace() : context_.factors();
    return if_room(bytes, [&] { return std::make_unique<PoolBuffer<T>>(memory, layout_.words(), piece); });
  }

  /// Describes pass i, which runs next.
  struct Next {
    std::deque<FactorPass<T>>& ready;  ///< pass i, once it is made, and then the pass behind it
    std::size_t i;
    bool came;                         ///< True if V of the pass has been sent already
    block_columns::SegmentSize size;
    index_t order;                     ///< rows that the strips of the pass hold
    const SidesOfFactor<T>* sides;     ///< right-hand sides; null if there are none

    int strips() const { return size.strips - size.side_strips; }
  };
  FactorPass<T>& make_pass(const Next& what, std::size_t i) {
    const double scale = i + 1 == passes_.size() ? scale_ : 1;
    return what.ready.emplace_back(
        context_.passes(), way_.launch, size(passes_[i].width(), what.strips(), what.size.side_strips), passes_[i],
        block_columns::Scaling{scale, what.order}, context_.device_group(), layout_.strip);
  }
  /// Makes the pass behind pass i. Returns false, and makes none, if pass i is the last or does not modify the whole
  /// factor, if the device does not look at V, if the stages are timed, or if memory is short.
  bool make_next(const Next& what) {
    if (what.i + 1 == passes_.size() || !look_ || what.order != layout_.n || stopwatch_) return false;
    const double bytes = what.size.bytes();
    if (!two_passes_ && work_.device_bytes + bytes > task_.device_memory) return false;
    try {
      make_pass(what, what.i + 1);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      return false;
    }
    if (!two_passes_) work_.device_bytes += bytes;
    two_passes_ = true;
    context_.marks().ready.record(context_.stream());
    return true;
  }
  void send_columns(FactorPass<T>& pass, index_t order, cudaStream_t stream) const {
    if (look_ || columns_) pass.send_unseen(V_.data, order, V_.ld, columns_, stream);
    else pass.prepare(V_.data, order, V_.ld, stream);
  }
  /// Sends V of the next pass while the current pass works.
  void send_next(FactorPass<T>& next, index_t order) {
    Stream& copies = context_.copies();
    copies_ = true;
    copies.wait(context_.marks().ready);
    send_columns(next, order, copies);
    context_.marks().came.record(copies);
  }

  /// Runs a pass. Returns the failing pivot, or -1. `staging`: page-locked memory of outcome_room() bytes.
  index_t run_pass(const Next& what, const T* R, T* out, void* staging, std::atomic<bool>* begun) {
    const cudaStream_t stream = context_.stream();
    const block_columns::PassColumns& columns = passes_[what.i];
    FactorPass<T>& pass = what.ready.front();
    if (apart_) pass.lie_apart(apart_->of_pass(R == out));
    if (what.came) check(cudaStreamWaitEvent(stream, context_.marks().came, 0), "order two streams"), copies_ = false;
    else timed(Stage::send, [&] { send_columns(pass, what.order, stream); });
    if (what.sides) what.sides->join(pass, what.i == 0);
    bool next = make_next(what);
    if (begun) *begun = true;
    Marks& marks = context_.marks();
    marks.begin.record(stream);
    block_columns::PassOutcome done;
    timed(Stage::modify, [&] {
      done = pass.run(
          R, out, layout_.ld, context_.turns(), staging, marks.end,
          [&] {
            if (what.sides) what.sides->fetch(pass, what.i + 1 == passes_.size());
            if (next) send_next(what.ready.back(), what.order);
            next = false;
            wait(columns.first);
          },
          stream);
    });
    for (const bool removed : {false, true}) {
      const block_columns::Looked seen = pass.looked(staging, removed);
      looked_[removed].largest = std::max(looked_[removed].largest, seen.largest);
      looked_[removed].squares += seen.squares;
    }
    work_.seconds += marks.end.seconds_since(marks.begin);
    work_.launch = way_.launch;
    work_.device_ranks = pass.ranks();
    work_.blocks += pass.blocks();
    work_.fallbacks += done.fallbacks;
    work_.rescalings += done.rescalings;
    return std::max<index_t>(failing_pivot<T>(done, layout_.first_row()) - layout_.first_row(), -1);
  }

  /// Waits until the device has done all queued work; `first`: columns of V that the passes before have dealt with.
  void wait(index_t first) {
    Marks& marks = context_.marks();
    marks.done.record(context_.stream());
    while (!marks.done.passed()) poll_(double(first) / task_.k);
  }

  template <class F>
  void timed(Stage stage, F&& f) {
    if (stopwatch_) stopwatch_->begin(stage, 0, context_.stream());
    f();
    if (stopwatch_) stopwatch_->end(context_.stream());
  }

  Context& context_;
  const Layout& layout_;
  MatrixView<const double> V_;
  const std::vector<ScaledColumn>* columns_ = nullptr;
  double scale_;
  std::vector<double> scaled_;
  const Task& task_;
  bool look_ = false;  ///< True if the device looks at V
  PartsApart<T>* apart_ = nullptr;
  const Poll& poll_;
  int side_strips_;
  Way way_;
  std::vector<block_columns::PassColumns> passes_;
  std::optional<PoolBuffer<T>> dz_;  ///< right-hand sides on the device, if there are any
  std::array<block_columns::Looked, 2> looked_{};  ///< findings in V in the last run: in added, in removed columns
  bool two_passes_ = false;  ///< True if two passes have had memory at the same time
  bool copies_ = false;      ///< True while a copy of V may be under way
  Work work_;
  Timeline timeline_;
  std::optional<Stopwatch> stopwatch_;
};

}  // namespace gpucholmod::cuda
