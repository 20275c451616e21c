#pragma once

#include <vector>

#include "cpu/blocked.h"
#include "stream/device.h"

namespace gpucholmod::stream {

/// Runs the stream method without a GPU: the CPU's own blocks of Householder steps modify panels, and every operation
/// is done when it is queued. Serves factors in files, and shows the schedule at work.
template <class T>
class HostDevice : public Device<T> {
 public:
  /// Copies V (n x k), which is scaled as the factor is, and allocates slots and buffers. `poll` is called while a
  /// panel is modified.
  HostDevice(const Plan& plan, const double* V, index_t removed, Instructions instructions, int threads,
             const Poll& poll)
      : plan_(plan), poll_(poll), V_(plan.k() * padded(plan)),
        sweep_({V_.data(), padded(plan), plan.k(), padded(plan)}, removed, T(1), Uplo::upper, instructions, threads) {
    for (index_t q = 0; q < plan.k(); ++q)
      for (index_t j = 0; j < plan.n(); ++j) V_[j + q * padded(plan)] = T(V[j + q * plan.n()]);
    slots_.assign(plan.slots(), std::vector<T>(plan.slot_words()));
    up_.assign(plan.buffers(), std::vector<T>(plan.chunk_words()));
    down_ = up_;
  }

  T* up(int buffer) override { return up_[buffer].data(); }
  T* down(int buffer) override { return down_[buffer].data(); }
  void send(const Chunk& chunk, int buffer) override { std::copy_n(up(buffer), chunk.words, place(chunk)); }
  bool sent(int) override { return true; }
  void modify(int panel) override {
    if (pivot_ >= 0) return;
    const Panel& at = plan_.panels()[panel];
    T* const words = slots_[plan_.slot(panel)].data();
    pivot_ = sweep_.advance({words, at.rows(), at.columns(), at.ld()}, {words, at.rows(), at.columns(), at.ld()}, false,
                            poll_);
  }
  bool modified(int) override { return true; }
  void fetch(const Chunk& chunk, int buffer) override { std::copy_n(place(chunk), chunk.words, down(buffer)); }
  bool fetched(int) override { return true; }
  index_t pivot(int) override { return pivot_; }
  void carry(const RightHandSideView& sides) override { sweep_.carry(sides, plan_.n()); }
  void report(Work&) override {}

 private:
  T* place(const Chunk& chunk) { return slots_[plan_.slot(chunk.panel)].data() + chunk.offset; }
  static index_t padded(const Plan& plan) { return index_t(block_columns::strips_of(plan.n())) * block_columns::STRIP; }

  const Plan& plan_;
  const Poll& poll_;
  std::vector<T> V_;
  cpu::BlockedSweep<T> sweep_;
  std::vector<std::vector<T>> slots_, up_, down_;
  index_t pivot_ = -1;
};

}  // namespace gpucholmod::stream
