#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "cuda/context.h"
#include "cuda/factor_pass.h"
#include "cuda/right_sides.cuh"
#include "cuda/stopwatch.h"
#include "stream/device.h"

namespace gpucholmod::cuda {
namespace {

using stream::Chunk;
using stream::Plan;

/// Runs the device's side of the stream method. Each slot has a stream, in which its panels arrive, are modified and
/// leave. Panels are modified one after the other, pass after pass. As a rule a pass takes one turn on a panel, so the
/// first turns of all passes are queued at once. Such a turn is a no-op if the pass before is not done. The next turn
/// of that pass is queued when the host asks for progress and the outcome of the turn before is known.
template <class T>
class StreamDevice : public stream::Device<T> {
 public:
  StreamDevice(Context& context, const Plan& plan, const double* V, const Task& task, Timeline* timeline)
      : context_(context), current_(context.device()), plan_(plan),
        dpanels_(context.workspace(), plan.slots() * plan.slot_words()), streams_(plan.slots()), sent_(plan.buffers()),
        fetched_(plan.buffers()) {
    const bool whole = plan.panels().size() == 1;
    for (int i = 0; i < plan.passes(); ++i) {
      const block_columns::PassColumns& columns = plan.columns_of(i);
      Way way = way_of<T>(columns.count, columns.removed, plan.slot_strips(), whole, task);
      // The device has too few thread blocks for a pass that wide.
      if (way.columns < plan.pass(i).columns) way.launch = Launch::stepwise;
      passes_.emplace_back(context.workspace(), way.launch, plan.pass(i), columns);
      passes_.back().prepare(V, plan.n(), plan.n(), context.stream());
      outcome_bytes_ = std::max(outcome_bytes_, passes_.back().outcome_bytes());
      work_.blocks += passes_.back().blocks();
      work_.launch = way.launch;
    }
    staging_ =
        static_cast<char*>(context.staging(2 * plan.buffers() * buffer_bytes() + plan.passes() * outcome_bytes_));
    check(cudaStreamSynchronize(context.stream()), "prepare the stream method");
    if (timeline) stopwatch_ = std::make_unique<Stopwatch>(*timeline, context.stream());
  }
  ~StreamDevice() override {
    for (const Stream& stream : streams_) cudaStreamSynchronize(stream);
    context_.release(std::size_t(tuning::staging_kept));
  }

  T* up(int buffer) override { return reinterpret_cast<T*>(staging_ + buffer * buffer_bytes()); }
  T* down(int buffer) override { return up(plan_.buffers() + buffer); }

  void send(const Chunk& chunk, int buffer) override {
    timed(Stage::send, chunk.panel, [&](cudaStream_t stream) {
      check(cudaMemcpyAsync(place(chunk), up(buffer), sizeof(T) * chunk.words, cudaMemcpyHostToDevice, stream),
            "send a panel");
    });
    sent_[buffer].record(stream(chunk.panel));
  }
  bool sent(int buffer) override { return sent_[buffer].passed(); }

  void modify(int panel) override {
    asked_ = panel + 1;
    go_on();
  }
  bool modified(int panel) override {
    go_on();
    return modified_ > panel || pivot_ >= 0;
  }

  void fetch(const Chunk& chunk, int buffer) override {
    timed(Stage::fetch, chunk.panel, [&](cudaStream_t stream) {
      check(cudaMemcpyAsync(down(buffer), place(chunk), sizeof(T) * chunk.words, cudaMemcpyDeviceToHost, stream),
            "fetch a panel");
    });
    fetched_[buffer].record(stream(chunk.panel));
  }
  bool fetched(int buffer) override { return fetched_[buffer].passed(); }

  index_t pivot(int) override { return pivot_; }

  /// Modifies right-hand sides in the memory of the panels, none of which is left.
  void carry(const RightHandSideView& sides) override {
    for (Stream& stream : streams_) stream.synchronize();
    for (index_t i = 0; i < RightHandSideStrip<T>::strips(sides); ++i) {
      const RightHandSideStrip<T> strip(sides, plan_.n(), i, dpanels_.data(), plan_.panels().back().ld(),
                                        context_.stream());
      for (int pass = 0; pass < plan_.passes(); ++pass) strip.follow(passes_[pass]);
      strip.fetch();
    }
  }

  bool in_passes() const override { return plan_.passes() > 1; }

  void report(Work& work) override {
    for (Stream& stream : streams_) stream.synchronize();
    work.device = context_.device_name();
    work.launch = work_.launch;
    work.blocks = work_.blocks;
    work.fallbacks = work_.fallbacks;
    work.rescalings = work_.rescalings;
    if (stopwatch_) stopwatch_->report();
  }

 private:
  Stream& stream(int panel) { return streams_[plan_.slot(panel)]; }
  T* place(const Chunk& chunk) { return dpanels_.data() + plan_.slot(chunk.panel) * plan_.slot_words() + chunk.offset; }
  std::size_t buffer_bytes() const { return (sizeof(T) * plan_.chunk_words() + 255) / 256 * 256; }
  void* outcome(int pass) { return staging_ + 2 * plan_.buffers() * buffer_bytes() + pass * outcome_bytes_; }

  /// Queues passes and reads their outcomes as far as possible without waiting.
  void go_on() {
    while (modified_ < asked_ && pivot_ < 0) {
      if (pass_ == queued_) {
        start_passes();
      } else if (!turned_.passed()) {
        return;
      } else {
        end_turns();
      }
    }
  }
  /// Queues the first turns of all passes that are left on the panel.
  void start_passes() {
    const stream::Panel& at = plan_.panels()[modified_];
    T* const R = dpanels_.data() + plan_.slot(modified_) * plan_.slot_words();
    queue([&](cudaStream_t stream) {
      for (; queued_ < plan_.passes(); ++queued_) {
        const FactorPass<T>* const before = queued_ > pass_ ? &passes_[queued_ - 1] : nullptr;
        passes_[queued_].begin_panel(at.first, at.end, R, R, at.ld(), stream, before);
        passes_[queued_].start_turn(0, stream);
      }
    });
  }
  /// Reads the outcomes of the turns that were queued. If a pass needs another turn, queues it; the passes behind have
  /// done nothing.
  void end_turns() {
    while (pass_ < queued_ && pivot_ < 0) {
      const auto done = passes_[pass_].outcome(outcome(pass_), turn_);
      if (!done) {
        queued_ = pass_ + 1;
        return queue([&](cudaStream_t stream) { passes_[pass_].start_turn(++turn_, stream); });
      }
      work_.fallbacks += done->fallbacks;
      work_.rescalings += done->rescalings;
      pivot_ = failing_pivot<T>(*done, plan_.panels()[modified_].column());
      turn_ = 0;
      ++pass_;
    }
    if (pass_ < plan_.passes()) return;
    pass_ = queued_ = 0;
    ++modified_;
  }
  /// Queues f(stream), and copies of the outcomes of the passes that are queued.
  template <class F>
  void queue(F&& f) {
    timed(Stage::modify, modified_, f);
    for (int pass = pass_; pass < queued_; ++pass) passes_[pass].fetch_outcome(outcome(pass), stream(modified_));
    turned_.record(stream(modified_));
  }

  template <class F>
  void timed(Stage stage, int panel, F&& f) {
    const cudaStream_t in = stream(panel);
    if (stopwatch_) stopwatch_->begin(stage, panel, in);
    f(in);
    if (stopwatch_) stopwatch_->end(in);
  }

  Context& context_;
  CurrentDevice current_;
  const Plan& plan_;
  char* staging_;
  PoolBuffer<T> dpanels_;
  std::deque<FactorPass<T>> passes_;
  std::vector<Stream> streams_;
  std::vector<Event> sent_, fetched_;
  Event turned_;
  int asked_ = 0, modified_ = 0;  ///< numbers of panels that were asked for, and that are modified
  int pass_ = 0, queued_ = 0;     ///< the pass whose outcome is next, the number of queued passes; on panel modified_
  int turn_ = 0;                  ///< the current turn of pass_
  std::size_t outcome_bytes_ = 0;
  index_t pivot_ = -1;
  Work work_;
  std::unique_ptr<Stopwatch> stopwatch_;
};

}  // namespace

double release() {
  double bytes = 0;
  for (const auto& [devices, context] : Context::all()) {
    if (context->forked()) continue;
    const CurrentDevice current(context->device());
    bytes += double(context->staging_bytes());
    context->release();
    context->pool().trim(0);
    context->factors().trim(0);
    context->workspace().trim(0);
  }
  return bytes;
}

template <class T>
std::unique_ptr<stream::Device<T>> stream_device(const Plan& plan, const double* V, const Task& task,
                                                 Timeline* timeline) {
  Context& context = Context::of(-1);
  const CurrentDevice current(context.device());
  return std::make_unique<StreamDevice<T>>(context, plan, V, task, timeline);
}

template std::unique_ptr<stream::Device<float>> stream_device(const Plan&, const double*, const Task&, Timeline*);
template std::unique_ptr<stream::Device<double>> stream_device(const Plan&, const double*, const Task&, Timeline*);

}  // namespace gpucholmod::cuda
