#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "cuda/context.h"
#include "cuda/engine.h"
#include "cuda/stopwatch.h"
#include "stream/device.h"

namespace gpucholmod::cuda {
namespace {

using block_columns::PassState;
using stream::Chunk;
using stream::Plan;

/// A stream for each slot, in which its panels come, are modified and go.
template <class T>
class StreamDevice : public stream::Device<T> {
 public:
  StreamDevice(Context& context, const Plan& plan, const double* V, const Task& task, Timeline* timeline)
      : context_(context), current_(context.device()), plan_(plan),
        staging_(static_cast<char*>(context.staging(2 * plan.buffers() * buffer_bytes() + states() * sizeof(PassState)))),
        dpanels_(context.workspace(), plan.slots() * plan.slot_words()),
        down_(context.workspace(), plan.slots() * plan.own_words()), streams_(plan.slots()), modified_(plan.slots()),
        sent_(plan.buffers()), fetched_(plan.buffers()) {
    std::fill_n(state(0, 0), states(), PassState{});
    for (int i = 0; i < plan.passes(); ++i) {
      passes_.emplace_back(context.workspace(), plan.pass_columns(i), plan.pass(i).strips, int(plan.panels().size()), task);
      passes_.back().prepare(V + i * block_columns::most_columns * plan.n(), plan.n(), plan.n(), context.stream());
      if (passes_.back().launch() != Launch::persistent || plan.slots() * plan.slot_strips() > multiprocessors())
        side_by_side_ = false;
    }
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
    const stream::Panel& at = plan_.panels()[panel];
    const int slot = plan_.slot(panel);
    if (!side_by_side_ && panel > 0) stream(panel).wait(modified_[plan_.slot(panel - 1)]);
    T* const R = dpanels_.data() + slot * plan_.slot_words();
    double* const own = down_.data() + slot * plan_.own_words();
    timed(Stage::modify, panel, [&](cudaStream_t stream) {
      for (const Pass<T>& pass : passes_) pass.start(panel, at.first, at.end, R, R, at.ld(), own, stream);
    });
    modified_[slot].record(stream(panel));
    for (int i = 0; i < plan_.passes(); ++i) passes_[i].fetch_state(state(slot, i), stream(panel));
  }

  void fetch(const Chunk& chunk, int buffer) override {
    timed(Stage::fetch, chunk.panel, [&](cudaStream_t stream) {
      check(cudaMemcpyAsync(down(buffer), place(chunk), sizeof(T) * chunk.words, cudaMemcpyDeviceToHost, stream),
            "fetch a panel");
    });
    fetched_[buffer].record(stream(chunk.panel));
  }
  bool fetched(int buffer) override { return fetched_[buffer].passed(); }

  /// The passes go one after the other: where one fails, those behind it have been given nonsense.
  index_t pivot(int panel) override {
    for (int i = 0; i < plan_.passes(); ++i)
      if (const PassState* now = state(plan_.slot(panel), i); now->stop) return now->pivot;
    return -1;
  }

  bool in_passes() const override { return plan_.passes() > 1; }

  void report(Work& work) override {
    for (Stream& stream : streams_) stream.synchronize();
    work.device = context_.device_name();
    work.blocks = work.fallbacks = work.rescalings = 0;
    for (int i = 0; i < plan_.passes(); ++i) {
      passes_[i].fetch_state(state(0, i), context_.stream());
      check(cudaStreamSynchronize(context_.stream()), "fetch the outcome");
      passes_[i].add_to(work, *state(0, i));
    }
    if (stopwatch_) stopwatch_->report();
  }

 private:
  Stream& stream(int panel) { return streams_[plan_.slot(panel)]; }
  T* place(const Chunk& chunk) { return dpanels_.data() + plan_.slot(chunk.panel) * plan_.slot_words() + chunk.offset; }
  std::size_t buffer_bytes() const { return (sizeof(T) * plan_.chunk_words() + 255) / 256 * 256; }
  index_t states() const { return plan_.slots() * plan_.passes(); }
  PassState* state(int slot, int pass) {
    return reinterpret_cast<PassState*>(staging_ + 2 * plan_.buffers() * buffer_bytes()) + slot * plan_.passes() + pass;
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
  PoolBuffer<double> down_;
  std::deque<Pass<T>> passes_;
  std::vector<Stream> streams_;
  std::vector<Event> modified_, sent_, fetched_;
  bool side_by_side_ = true;  ///< panels can be modified at the same time
  std::unique_ptr<Stopwatch> stopwatch_;
};

}  // namespace

double release() {
  double bytes = 0;
  for (const auto& [id, context] : Context::all()) {
    if (context->forked()) continue;
    const CurrentDevice current(id);
    bytes += double(context->staging_bytes());
    context->release();
    context->pool().trim(0);
    context->workspace().trim(0);
  }
  return bytes;
}

template <class T>
std::unique_ptr<stream::Device<T>> stream_device(const Plan& plan, const double* V, const Task& task, Timeline* timeline) {
  Context& context = Context::of(-1);
  const CurrentDevice current(context.device());
  return std::make_unique<StreamDevice<T>>(context, plan, V, task, timeline);
}

template std::unique_ptr<stream::Device<float>> stream_device(const Plan&, const double*, const Task&, Timeline*);
template std::unique_ptr<stream::Device<double>> stream_device(const Plan&, const double*, const Task&, Timeline*);

}  // namespace gpucholmod::cuda
