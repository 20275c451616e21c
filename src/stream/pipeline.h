#pragma once

#include <atomic>
#include <chrono>

#include "base/timeline.h"
#include "stream/device.h"
#include "stream/staging.h"
#include "stream/workers.h"

namespace gpucholmod::stream {

enum class End {
  complete,
  failing_pivot,  ///< a downdate that cannot be done
  /// A factor with an entry that is not finite, or a diagonal entry that is no positive normal number.
  refused,
  rescale,        ///< entries too large to be computed with unless they are scaled
  unfit           ///< a result with an entry that S cannot hold
};

/// The outcome of one run.
template <class S>
struct Run {
  End end = End::complete;
  index_t pivot = -1;
  /// The largest magnitude of the entries of R that were read, which are all entries if the run is complete.
  S largest = 0;
  Unfit<S> unfit;
};

/// Describes the conversion of a factor on its way. The triangle that uplo names is multiplied by 2^-e before the
/// computation (scale_exponent()), and the result by `scale`.
struct Conversion {
  Uplo uplo = Uplo::upper;
  int e = 0;
  double scale = 1;
};

/// Moves the chunks of a factor through the device, all of them in one order, with as many under way as there are
/// buffers and slots for:
///
///     workers   fill        empty        R -> up(), down() -> out: pageable memory, first touch of the result, checks
///     device    send modify fetch        up() -> slot, slot, slot -> down()
///
/// The calling thread queues operations and watches them. It never waits for one operation while another can go on.
template <class S, class T>
class Pipeline {
 public:
  /// Starts the workers. `out` may be the place of R.
  Pipeline(const Plan& plan, const Source<S>& R, Sink<S>& out, const Conversion& how, Device<T>& device, int threads,
           const Poll& poll, Timeline* timeline)
      : plan_(plan), chunks_(plan.chunks()), R_(R), out_(out), how_(how), up_(std::scalbn(how.scale, how.e)),
        device_(device), poll_(poll), timeline_(timeline), filled_(chunks_.size()), emptied_(chunks_.size()),
        fetches_queued_(plan.panels().size(), false), workers_(threads) {
    scratch_.assign(workers_.count(), std::vector<S>(plan.n()));
  }

  Run<S> run() {
    const std::size_t count = chunks_.size();
    double words_done = 0;
    auto polled = std::chrono::steady_clock::now();
    while (done_ < count) {
      const bool moved = begin_fill() + send() + fetch() + begin_empty() > 0;
      for (; done_ < begun_emptying_ && emptied_[done_].load(std::memory_order_acquire); ++done_)
        words_done += double(chunks_[done_].words);
      if (stopped_) return end();
      const auto now = std::chrono::steady_clock::now();
      if (now - polled > std::chrono::milliseconds(20)) {
        polled = now;
        poll_(words_done / plan_.total_words());
      }
      if (!moved) workers_.help();
    }
    return end();
  }

 private:
  Run<S> end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const End why = so_far() != End::complete ? so_far()
                    : pivot_ >= 0             ? End::failing_pivot
                    : unfit_.row >= 0         ? End::unfit
                                              : End::complete;
    return {why, pivot_, seen_.value(), unfit_};
  }
  /// Returns the end that the entries of R seen so far call for. mutex_ must be locked.
  End so_far() const {
    if (seen_.bad_diagonal || !std::isfinite(seen_.value())) return End::refused;
    return scale_exponent<T>(seen_.value()) > std::max(how_.e, 0) ? End::rescale : End::complete;
  }

  int buffer(std::size_t chunk) const { return int(chunk % plan_.buffers()); }
  MatrixView<T> view(const Chunk& chunk, T* data) const {
    const index_t ld = plan_.panels()[chunk.panel].ld();
    return {data, ld, chunk.end - chunk.begin, ld};
  }

  bool begin_fill() {
    const std::size_t c = begun_filling_;
    if (c == chunks_.size() || c >= on_device_ + plan_.buffers()) {
      const bool arrived = on_device_ < sending_ && device_.sent(buffer(on_device_));
      on_device_ += arrived;
      return arrived;
    }
    workers_.submit([this, c](int worker) {
      const Chunk& chunk = chunks_[c];
      const Span span(timeline_, Stage::fill, chunk.panel);
      const Seen<S> seen = fill<S, T>(R_, plan_.n(), how_.uplo, how_.e, chunk.begin, chunk.end,
                                      view(chunk, device_.up(buffer(c))), scratch_[worker].data());
      note(seen);
      filled_[c].store(true, std::memory_order_release);
    });
    ++begun_filling_;
    return true;
  }

  void note(const Seen<S>& seen) {
    const std::lock_guard<std::mutex> lock(mutex_);
    seen_.add(seen);
    if (so_far() != End::complete) stopped_ = true;
  }

  bool send() {
    const std::size_t c = sending_;
    if (c == begun_filling_ || !filled_[c].load(std::memory_order_acquire)) return false;
    const Chunk& chunk = chunks_[c];
    const int before = chunk.panel - plan_.slots();  // the panel that had this slot before
    if (before >= 0 && !fetches_queued_[before]) return false;
    device_.send(chunk, buffer(c));
    if (chunk.last) {
      device_.modify(chunk.panel);
      begun_modifying_ = chunk.panel + 1;
    }
    ++sending_;
    return true;
  }

  bool fetch() {
    const std::size_t c = fetching_;
    if (c < chunks_.size() && chunks_[c].panel == modified_) return end_modification();
    if (c == chunks_.size() || c >= done_ + plan_.buffers()) return false;
    const Chunk& chunk = chunks_[c];
    device_.fetch(chunk, buffer(c));
    fetches_queued_[chunk.panel] = chunk.last;
    ++fetching_;
    return true;
  }

  bool end_modification() {
    if (modified_ == begun_modifying_ || !device_.modified(modified_)) return false;
    pivot_ = device_.pivot(modified_++);
    if (pivot_ >= 0) stopped_ = true;
    return true;
  }

  bool begin_empty() {
    const std::size_t c = begun_emptying_;
    if (c == fetching_ || !device_.fetched(buffer(c))) return false;
    workers_.submit([this, c](int worker) {
      const Chunk& chunk = chunks_[c];
      const Span span(timeline_, Stage::empty, chunk.panel);
      const MatrixView<T> from = view(chunk, device_.down(buffer(c)));
      const Unfit<S> unfit = empty<S, T>(from, chunk.begin, chunk.end, plan_.n(),
                                         how_.uplo, up_, out_, scratch_[worker].data());
      if (unfit.row >= 0) {
        const std::lock_guard<std::mutex> lock(mutex_);
        unfit_ = unfit;
        stopped_ = true;
      }
      emptied_[c].store(true, std::memory_order_release);
    });
    ++begun_emptying_;
    return true;
  }

  const Plan& plan_;
  const std::vector<Chunk>& chunks_;
  const Source<S>& R_;
  Sink<S>& out_;
  Conversion how_;
  double up_;  ///< multiplier of the numbers that are written
  Device<T>& device_;
  const Poll& poll_;
  Timeline* timeline_;

  // Numbers of chunks that have reached each stage. No stage is ahead of the stage before it.
  std::size_t begun_filling_ = 0, sending_ = 0, on_device_ = 0, fetching_ = 0, begun_emptying_ = 0, done_ = 0;
  std::vector<std::atomic<bool>> filled_, emptied_;
  std::vector<bool> fetches_queued_;  ///< True for panels whose fetches are all queued
  int begun_modifying_ = 0, modified_ = 0;  ///< numbers of panels
  index_t pivot_ = -1;

  std::mutex mutex_;
  Seen<S> seen_;
  Unfit<S> unfit_;
  std::atomic<bool> stopped_{false};
  std::vector<std::vector<S>> scratch_;  ///< memory of each worker, n entries
  Workers workers_;  // destroyed first: tasks use the other members
};

}  // namespace gpucholmod::stream
