#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "mpi_cuda/backend.h"
#include "mpi_cuda/device_panels.cuh"
#include "mpi_cuda/leader.h"
#include "mpi_cuda/own_gpu.h"

namespace gpucholmod::mpi_cuda {

/// Runs the passes of a modification, each with its V of this process's columns and, behind these, of the right-hand
/// sides. All work is queued in the stream of the context. Other threads may use GPUs between two calls.
template <class T>
class PanelsModification : public mpi::PanelModification<T> {
 public:
  PanelsModification(const DevicePanels<T>& R, const DevicePanels<T>* out, MatrixView<const double> V, const Task& task,
                     double scale, mpi::PanelWay way, const RightHandSideView& right, const std::function<void()>& tend)
      : R_(R), out_(out), right_(right), tend_(tend), session_(std::make_unique<Session>(R.context())),
        own_(R.end(R.layout().blocks())),
        sides_(strips_of(right.m())),
        dz_(R.context().pool(), sides_ * STRIP * R.ld()), turns_{std::vector<Turns>(), std::vector<Turns>()} {
    const std::vector<block_columns::PassColumns> passes = block_columns::passes_of(task.k, task.removed, way.columns);
    const int panel = R.strips(0);
    std::size_t outcome_bytes = 0;
    double bytes = double(dz_.bytes()) + (out && out != &R ? out->bytes() : 0);
    for (const block_columns::PassColumns& columns : passes)
      bytes += size(columns.width(), panel).bytes();
    require_allowed(bytes, task.device_memory);
    for (const block_columns::PassColumns& columns : passes) {
      const bool last = columns.first + columns.count == task.k;
      passes_.emplace_back(R.context().pool(), way.launch, size(columns.width(), panel), columns,
                           block_columns::Scaling{last ? scale : 1, R.layout().n});
      PanelPass<T>& pass = passes_.back();
      pass.prepare(V.data, V.rows, V.ld, stream());
      if (right.m() > 0) pass.send_V(right.Y.data, right.m(), right.m(), index_t(own_) * STRIP, stream());
      pass.clear_flags(stream());
      outcome_bytes = std::max(outcome_bytes, pass.outcome_bytes());
    }
    send_right_sides();
    staging_ = static_cast<char*>(R.context().staging(outcome_bytes));
    work_.device = R.device_name();
    work_.launch = way.launch;
    work_.device_bytes = bytes;
    session_->finish();  // V is read until the copies are done
    session_.reset();
  }
  ~PanelsModification() override {
    const OneThread one_thread;  // and not a CurrentDevice, which may throw
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(R_.context().device());
    cudaStreamSynchronize(stream());
    R_.context().release(std::size_t(tuning::staging_kept));
    cudaSetDevice(before);
  }

  index_t modify(index_t b) override {
    const CurrentDevice current = here();
    const int slot = int(b % 2), first = R_.first(b);
    const index_t row = R_.layout().first(b);
    turns_[slot].clear();
    for (PanelPass<T>& pass : passes_) {
      T* const out = out_ ? out_->at(b, row) : nullptr;
      pass.begin_panel(first, first + R_.strips(b), R_.layout().columns(b), slot,
                      &pass == &passes_.front() ? R_.at(b, row) : out, out, R_.ld(), stream());
      std::optional<block_columns::PassOutcome> done;
      for (int turn = 0; !done; ++turn) {
        pass.start_turn(turn, stream());
        pass.fetch_outcome(staging_, stream());
        wait();
        done = pass.outcome(staging_, turn);
      }
      work_.fallbacks += done->fallbacks;
      work_.rescalings += done->rescalings;
      work_.blocks += R_.strips(b) * block_columns::BLOCKS;
      if (failing_pivot<T>(*done, row) >= 0) return done->pivot;
      turns_[slot].push_back(pass.close_panel(stream()));
    }
    return -1;
  }

  void fetch_V(index_t b, double* V) override {
    const CurrentDevice current = here();
    const index_t m = R_.layout().columns(b);
    for (const PanelPass<T>& pass : passes_) pass.fetch_V(V, m, m, index_t(R_.first(b)) * STRIP, stream());
    wait();
  }

  /// Returns the transforms; then, for each pass, the number of its turns and the turns; then the count of these ints.
  mpi::Bytes message(index_t b) override {
    const CurrentDevice current = here();
    std::vector<int> numbers;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      const Message panel = done(b, i);
      numbers.push_back(int(panel.turns.size()));
      for (const block_columns::Turn& turn : panel.turns) numbers.insert(numbers.end(), {turn.first, turn.steps});
      bytes += passes_[i].message_bytes(panel);
    }
    numbers.push_back(int(numbers.size()) + 1);
    sent_ = mpi::room_for(bytes + sizeof(int) * numbers.size(), R_.message_memory());
    sent_.resize(bytes);
    char* to = sent_.data();
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      passes_[i].fetch_message(done(b, i), to, stream());
      to += passes_[i].message_bytes(done(b, i));
    }
    mpi::append(sent_, numbers.data(), sizeof(int) * numbers.size());
    wait();
    return std::move(sent_);
  }

  void receive(index_t b, mpi::Bytes&& message) override {
    const CurrentDevice current = here();
    const int slot = int(b % 2);
    while (!received_[slot].passed()) tend_();
    came_[slot] = std::move(message);
    const char* const end = came_[slot].data() + came_[slot].size();
    const char* at = end - sizeof(int);
    const auto next = [&] {
      int value;
      std::memcpy(&value, at, sizeof value);
      at += sizeof value;
      return value;
    };
    at = end - sizeof(int) * std::size_t(next());
    turns_[slot].assign(passes_.size(), {});
    for (Turns& turns : turns_[slot])
      for (int count = next(); count > 0; --count) {
        const int first = next(), steps = next();
        turns.push_back({first, steps});
      }
    const char* from = came_[slot].data();
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      passes_[i].put_message(done(b, i), from, stream());
      from += passes_[i].message_bytes(done(b, i));
    }
    received_[slot].record(stream());
  }

  void follow(index_t b, index_t first, index_t last) override {
    const CurrentDevice current = here();
    const int begin = R_.first(first), end = R_.end(last);
    T* const out = out_ ? out_->at_strip(begin, behind(b)) : nullptr;
    follow(b, begin, end, R_.at_strip(begin, behind(b)), out);
  }
  void carry(index_t b) override {
    const CurrentDevice current = here();
    follow(b, own_, own_ + sides_, dz_.data() + behind(b), dz_.data() + behind(b));
  }

  void finish(Work& work) override {
    const CurrentDevice current = here();
    const index_t n = R_.layout().n, m = right_.m();
    std::vector<T> z(n * m);
    if (m > 0) {
      check(cudaMemcpy2DAsync(z.data(), sizeof(T) * n, dz_.data(), sizeof(T) * R_.ld(), sizeof(T) * n, m,
                              cudaMemcpyDeviceToHost, stream()),
            "fetch right-hand sides");
      for (const PanelPass<T>& pass : passes_) pass.fetch_V(right_.rest.data, m, m, index_t(own_) * STRIP, stream());
    }
    wait();
    check(cudaStreamSynchronize(stream()), "finish the work on a factor");
    std::copy(z.begin(), z.end(), right_.out.data);
    work = work_;
  }

 private:
  using Turns = typename PanelPass<T>::Turns;
  using Message = typename PanelPass<T>::Message;

  /// Returns the size of a pass: V of this process's strips and of right-hand sides, and messages in two slots.
  block_columns::SegmentSize size(int columns, int panel) const {
    return {columns, std::max(own_ + sides_, 2 * panel + 1), panel, 0, own_ + sides_};
  }
  cudaStream_t stream() const { return R_.stream(); }
  CurrentDevice here() const { return CurrentDevice(R_.context().device()); }

  /// Returns the description of panel b after pass i.
  Message done(index_t b, std::size_t i) const { return {R_.strips(b), int(b % 2), turns_[b % 2][i]}; }
  /// Returns the row behind the rows of panel b.
  index_t behind(index_t b) const { return R_.layout().first(b) + index_t(R_.strips(b)) * STRIP; }
  /// Queues what all passes of panel b do to strips [first, end): the first pass reads R, all passes write `out`.
  void follow(index_t b, int first, int end, const T* R, T* out) {
    for (std::size_t i = 0; i < passes_.size(); ++i)
      passes_[i].follow(done(b, i), first, end, i == 0 ? R : out, out, R_.ld(), stream());
  }

  void send_right_sides() {
    const index_t n = R_.layout().n;
    if (right_.m() == 0) return;
    std::vector<T> z(right_.z.data, right_.z.data + n * right_.m());
    check(cudaMemsetAsync(dz_.data(), 0, dz_.bytes(), stream()), "clear right-hand sides");
    check(cudaMemcpy2DAsync(dz_.data(), sizeof(T) * R_.ld(), z.data(), sizeof(T) * n, sizeof(T) * n, right_.m(),
                            cudaMemcpyHostToDevice, stream()),
          "send right-hand sides");
    check(cudaStreamSynchronize(stream()), "send right-hand sides");
  }

  /// Waits until all queued work is done.
  void wait() {
    queued_.record(stream());
    while (!queued_.passed()) tend_();
  }

  const DevicePanels<T>& R_;
  const DevicePanels<T>* out_;
  RightHandSideView right_;
  std::function<void()> tend_;
  std::unique_ptr<Session> session_;  ///< held while the constructor runs
  int own_, sides_;  ///< numbers of strips: of this process, and of right-hand sides
  PoolBuffer<T> dz_;
  std::deque<PanelPass<T>> passes_;
  std::vector<Turns> turns_[2];  ///< turns by slot and pass
  char* staging_ = nullptr;      ///< page-locked memory for the outcome of a pass
  mpi::Bytes sent_, came_[2];    ///< messages on their way from and to the device
  Event queued_, received_[2];
  Work work_;
};

namespace {

template <class T>
std::unique_ptr<mpi::Panels<T>> panels_on(int local_rank, const mpi::Layout& layout, int rank) {
  return std::make_unique<DevicePanels<T>>(Context::of(own_gpu(local_rank)), layout, rank);
}

}  // namespace

mpi::MakePanels panels_on_gpus(int local_rank, bool led) {
  mpi::MakePanels make;
  if (led) make.leader = leader_on_gpus(local_rank);
  make.of_floats = [=](const mpi::Layout& layout, int rank) { return panels_on<float>(local_rank, layout, rank); };
  make.of_doubles = [=](const mpi::Layout& layout, int rank) { return panels_on<double>(local_rank, layout, rank); };
  return make;
}

}  // namespace gpucholmod::mpi_cuda
