#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "segment_call.h"
#include "stream/device.h"

namespace gpucholmod::test {

enum class Kernel { persistent, stepwise };

struct Laziness {
  Kernel kernel = Kernel::persistent;
  unsigned seed = 0;  ///< seed of the random moments at which work is done; 0: as late as possible
  int workers = 1;    ///< number of thread blocks that update
};

/// A device of the stream method that does only what stream/device.h promises, by the GPU's kernels on a simulated
/// grid.
///
/// Each slot has a queue. The work in a queue is done when the driver asks for its result or, with a seed, at random
/// moments when the driver asks for any result. The first few answers are false. A buffer that has been sent, or whose
/// chunk is not fetched yet, holds NaN, and so do a slot before its next panel arrives and a job's own memory. So tests
/// find a driver that relies on more than the promises, or that changes a buffer on its way up.
template <class T>
class LazyDevice : public stream::Device<T> {
 public:
  /// Takes V (n x k) as stream::HostDevice does.
  LazyDevice(const stream::Plan& plan, const double* V, const Laziness& how)
      : plan_(plan), how_(how), random_(how.seed), queues_(plan.slots()),
        up_(plan.buffers(), std::vector<T>(plan.chunk_words(), nan)), down_(up_),
        slots_(plan.slots(), std::vector<T>(plan.slot_words(), nan)), sending_(plan.buffers()),
        fetching_(plan.buffers()), words_sent_(plan.panels().size()), words_asked_(plan.panels().size()),
        modifications_(plan.panels().size()) {
    for (int i = 0; i < plan.passes(); ++i)
      passes_.push_back(host_pass<T>(V, plan.n(), plan.columns_of(i), plan.n(), block_columns::strips_of(plan.n())));
  }
  ~LazyDevice() override { finish(); }

  T* up(int buffer) override { return up_[buffer].data(); }
  T* down(int buffer) override { return down_[buffer].data(); }

  void send(const stream::Chunk& chunk, int buffer) override {
    EXPECT_FALSE(sending_[buffer].pending) << "the buffer is on its way already";
    const int before = chunk.panel - plan_.slots();
    if (before >= 0) {
      EXPECT_EQ(words_asked_[before], plan_.panels()[before].words()) << "the slot is in use";
    }
    words_sent_[chunk.panel] += chunk.words;
    const auto promised = std::make_shared<std::vector<T>>(up(buffer), up(buffer) + chunk.words);
    sending_[buffer] = queue(chunk.panel, [=] {
      const bool same = std::memcmp(promised->data(), up(buffer), sizeof(T) * chunk.words) == 0;
      EXPECT_TRUE(same) << "a buffer changed on its way up";
      std::vector<T>& slot = slots_[plan_.slot(chunk.panel)];
      if (chunk.offset == 0) std::fill(slot.begin(), slot.end(), nan);
      std::copy_n(up(buffer), chunk.words, slot.data() + chunk.offset);
    });
  }
  bool sent(int buffer) override {
    if (!passed(sending_[buffer])) return false;
    std::fill(up_[buffer].begin(), up_[buffer].end(), nan);
    return true;
  }

  void modify(int panel) override {
    EXPECT_EQ(words_sent_[panel], plan_.panels()[panel].words()) << "the panel is not there yet";
    EXPECT_EQ(panel, begun_) << "panels are out of order";
    begun_ = panel + 1;
    modifications_[panel] = queue(panel, [=] { run_panel(panel); });
  }
  bool modified(int panel) override { return passed(modifications_[panel]); }

  void fetch(const stream::Chunk& chunk, int buffer) override {
    EXPECT_FALSE(fetching_[buffer].pending) << "the buffer is on its way already";
    EXPECT_GT(modified_, chunk.panel) << "the panel is not modified yet";
    words_asked_[chunk.panel] += chunk.words;
    std::fill(down_[buffer].begin(), down_[buffer].end(), nan);
    fetching_[buffer] = queue(chunk.panel, [=] {
      std::copy_n(slots_[plan_.slot(chunk.panel)].data() + chunk.offset, chunk.words, down(buffer));
    });
  }
  bool fetched(int buffer) override {
    return passed(fetching_[buffer]);
  }

  index_t pivot(int panel) override {
    EXPECT_GT(modified_, panel) << "nobody knows what has become of the panel";
    return pivot_;
  }

  void carry(const RightHandSideView& sides) override {
    finish();
    const index_t rows = index_t(block_columns::strips_of(plan_.n())) * block_columns::STRIP;
    std::vector<T> z(rows * block_columns::STRIP);
    for (index_t first = 0; first < sides.m(); first += block_columns::STRIP) {
      const index_t count = std::min<index_t>(block_columns::STRIP, sides.m() - first);
      std::fill(z.begin(), z.end(), T(0));
      for (index_t j = 0; j < count; ++j)
        for (index_t i = 0; i < plan_.n(); ++i) z[i + j * rows] = T(sides.z(i, first + j));
      for (int i = 0; i < plan_.passes(); ++i) {
        SegmentsRun how;
        how.by_steps = how_.kernel == Kernel::stepwise;
        passes_[i]->carry(z.data(), rows, sides.Y.data + first, sides.rest.data + first, sides.m(), count, how);
      }
      for (index_t j = 0; j < count; ++j)
        for (index_t i = 0; i < plan_.n(); ++i) sides.out(i, first + j) = z[i + j * rows];
    }
  }

  void report(Work& outcome) override {
    finish();
    outcome.blocks = plan_.passes() * row_blocks(plan_.n());
    outcome.fallbacks = fallbacks_;
    outcome.rescalings = rescalings_;
  }

 private:
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();

  struct Task {
    int number;
    std::function<void()> run;
  };
  struct Queued {
    bool pending = false;  ///< True until passed() has returned true
    int slot = 0, number = 0, refusals = 0;
  };
  template <class F>
  Queued queue(int panel, F&& f) {
    const int slot = plan_.slot(panel);
    queues_[slot].push_back({++numbers_, std::forward<F>(f)});
    return {true, slot, numbers_, how_.seed ? int(random_() % 3) : 3};
  }
  bool done(const Queued& queued) const {
    const std::deque<Task>& queue = queues_[queued.slot];
    return queue.empty() || queue.front().number > queued.number;
  }
  bool passed(Queued& queued) {
    if (!queued.pending) return true;
    if (how_.seed && random_() % 2) run_one(int(random_() % queues_.size()));
    if (queued.refusals > 0) {
      --queued.refusals;
      return false;
    }
    if (!how_.seed) run_until(queued);
    queued.pending = !done(queued);
    if (queued.pending) run_one(queued.slot);
    return !queued.pending;
  }

  void run_one(int slot) {
    if (queues_[slot].empty()) return;
    const Task task = std::move(queues_[slot].front());
    queues_[slot].pop_front();
    task.run();
  }
  void run_until(const Queued& queued) {
    while (!done(queued)) run_one(queued.slot);
  }
  void finish() {
    for (int slot = 0; slot < int(queues_.size()); ++slot)
      while (!queues_[slot].empty()) run_one(slot);
  }

  /// Modifies a panel, after the panels on its left.
  void run_panel(int panel) {
    if (panel > 0) run_until(modifications_[panel - 1]);
    const stream::Panel& at = plan_.panels()[panel];
    T* const R = slots_[plan_.slot(panel)].data();
    SegmentsRun how;
    how.workers = how_.workers;
    how.by_steps = how_.kernel == Kernel::stepwise;
    modified_ = panel + 1;
    for (const auto& pass : passes_) {
      if (pivot_ >= 0) return;
      const block_columns::PassOutcome done = pass->run_panel(at.first, at.end, R, R, at.ld(), how);
      fallbacks_ += done.fallbacks;
      rescalings_ += done.rescalings;
      if (done.pivot >= 0) pivot_ = at.column() + done.pivot;
    }
  }

  const stream::Plan& plan_;
  Laziness how_;
  std::mt19937 random_;
  int numbers_ = 0, begun_ = 0, modified_ = 0, fallbacks_ = 0, rescalings_ = 0;
  index_t pivot_ = -1;
  std::vector<std::deque<Task>> queues_;
  std::vector<std::vector<T>> up_, down_, slots_;
  std::vector<std::unique_ptr<HostPass<T>>> passes_;
  std::vector<Queued> sending_, fetching_;
  std::vector<index_t> words_sent_, words_asked_;  ///< numbers of each panel
  std::vector<Queued> modifications_;
};

}  // namespace gpucholmod::test
