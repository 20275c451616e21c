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

#include "host_grid.h"
#include "block_columns/stepwise.h"
#include "stream/device.h"

namespace gpucholmod::test {

enum class Kernel {
  persistent,
  side_by_side,  ///< a panel's job begins before those of the panels left of it have ended
  stepwise
};

struct Laziness {
  Kernel kernel = Kernel::persistent;
  unsigned seed = 0;  ///< 0: everything as late as it may be; otherwise at random moments
  int blocks = 1;     ///< of threads for a job
};

/// The launches of a job on the plain path, as start_stepwise() in src/cuda/engine.h has them.
template <int K, class T>
void run_stepwise(const block_columns::Job<T>& job) {
  int failed = 0;
  const auto of = [&](int strip) { return block_columns::Stepwise<T, K, block_columns::HostTeam>({nullptr}, job, strip); };
  for (int strip = job.first; strip < job.end; ++strip) of(strip).catch_up();
  for (int b = job.first * block_columns::BLOCKS; b < job.end * block_columns::BLOCKS; ++b) {
    of(b / block_columns::BLOCKS).find(b, &failed);
    for (int strip = b / block_columns::BLOCKS; strip < job.end; ++strip) of(strip).apply(b);
  }
}

/// A device of the stream method that does only what stream/device.h promises, by the GPU's kernels on a simulated
/// grid.
///
/// A queue for each slot; nothing in it is done before somebody asks for it, or (seeded) at random moments when
/// somebody asks for anything; and the answer is no a few times first. What has been sent, or waits for what is
/// fetched, holds NaN, and so do a slot before its next panel comes, and a job's own memory: a driver that counts on
/// more is found, and so is one that touches what is on its way up.
template <class T>
class LazyDevice : public stream::Device<T> {
 public:
  /// V (n x k) as in stream::HostDevice.
  LazyDevice(const stream::Plan& plan, const double* V, Sign sign, const Laziness& how)
      : plan_(plan), sign_(sign), how_(how), random_(how.seed), queues_(plan.slots()),
        up_(plan.buffers(), std::vector<T>(plan.chunk_words(), nan)), down_(up_),
        slots_(plan.slots(), std::vector<T>(plan.slot_words(), nan)),
        own_(plan.slots(), std::vector<double>(plan.own_words())), jobs_(plan.slots()), sending_(plan.buffers()),
        fetching_(plan.buffers()), words_sent_(plan.panels().size()), words_asked_(plan.panels().size()),
        modifications_(plan.panels().size()), come_back_(plan.panels().size(), false),
        pivots_(plan.panels().size(), -1) {
    for (int i = 0; i < plan.passes(); ++i) {
      const block_columns::PassSize size = plan.pass(i);
      passes_.push_back({size, std::vector<double>(size.doubles(), 0), std::vector<int>(size.ints(), 0)});
      for (index_t q = 0; q < plan.pass_columns(i); ++q)
        std::copy_n(V + (i * block_columns::most_columns + q) * plan.n(), plan.n(),
                    size.V(passes_.back().doubles.data()) + q * size.strips * block_columns::STRIP);
    }
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
    EXPECT_TRUE(panel == 0 || modifications_[panel - 1].pending) << "panels are out of order";
    modifications_[panel] = queue(panel, [=] { begin(panel); });
    if (how_.kernel == Kernel::side_by_side) run_until(modifications_[panel]);
  }

  void fetch(const stream::Chunk& chunk, int buffer) override {
    EXPECT_FALSE(fetching_[buffer].pending) << "the buffer is on its way already";
    EXPECT_TRUE(modifications_[chunk.panel].pending) << "the panel is not modified yet";
    words_asked_[chunk.panel] += chunk.words;
    std::fill(down_[buffer].begin(), down_[buffer].end(), nan);
    fetching_[buffer] = queue(chunk.panel, [=] {
      std::copy_n(slots_[plan_.slot(chunk.panel)].data() + chunk.offset, chunk.words, down(buffer));
    });
    fetching_[buffer].panel = chunk.panel;
  }
  bool fetched(int buffer) override {
    Queued& queued = fetching_[buffer];
    if (!passed(queued)) return false;
    come_back_[queued.panel] = true;
    return true;
  }

  index_t pivot(int panel) override {
    EXPECT_TRUE(come_back_[panel]) << "nobody knows what has become of the panel";
    return pivots_[panel];
  }

  void report(Work& outcome) override {
    finish();
    outcome.blocks = outcome.fallbacks = outcome.rescalings = 0;
    for (Pass& pass : passes_) {
      const block_columns::PassState& last = *pass.size.pass_state(pass.ints.data());
      outcome.blocks += pass.size.blocks();
      outcome.fallbacks += how_.kernel == Kernel::stepwise ? pass.size.blocks() : last.fallbacks;
      outcome.rescalings += last.rescalings;
    }
  }

  int overlapping() const { return overlapping_; }  ///< jobs that were under way when another one began

 private:
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();

  struct Task {
    int number;
    std::function<void()> run;
  };
  struct Queued {
    bool pending = false;  ///< until passed() has said yes
    int slot = 0, number = 0, refusals = 0, panel = 0;
  };
  struct Pass {
    block_columns::PassSize size;
    std::vector<double> doubles;
    std::vector<int> ints;
  };
  struct Running {
    std::thread thread;
    std::atomic<bool> ended{true};
  };

  template <class F>
  Queued queue(int panel, F&& f) {
    const int slot = plan_.slot(panel);
    queues_[slot].push_back({++numbers_, std::forward<F>(f)});
    return {true, slot, numbers_, how_.seed ? int(random_() % 3) : 3, panel};
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
    if (!done(queued) && !jobs_[queued.slot].ended) return false;
    if (!how_.seed) run_until(queued);
    queued.pending = !done(queued);
    if (queued.pending) run_one(queued.slot);
    return !queued.pending;
  }

  void run_one(int slot) {
    if (queues_[slot].empty()) return;
    join(slot);
    const Task task = std::move(queues_[slot].front());
    queues_[slot].pop_front();
    task.run();
  }
  void run_until(const Queued& queued) {
    while (!done(queued)) run_one(queued.slot);
  }
  void join(int slot) {
    if (jobs_[slot].thread.joinable()) jobs_[slot].thread.join();
  }
  void finish() {
    for (int slot = 0; slot < int(queues_.size()); ++slot)
      while (!queues_[slot].empty()) run_one(slot);
    for (int slot = 0; slot < int(queues_.size()); ++slot) join(slot);
  }

  /// The panel's jobs, when those of the panels left of it are done, or side by side have begun.
  void begin(int panel) {
    if (panel > 0) run_until(modifications_[panel - 1]);
    const int slot = plan_.slot(panel);
    std::fill(own_[slot].begin(), own_[slot].end(), std::numeric_limits<double>::quiet_NaN());
    begun_ = panel + 1;
    if (how_.kernel != Kernel::side_by_side) return run_jobs(panel);
    for (const Running& job : jobs_) overlapping_ += !job.ended;
    jobs_[slot].ended = false;
    jobs_[slot].thread = std::thread([this, panel, slot] {
      run_jobs(panel);
      jobs_[slot].ended = true;
    });
  }

  void run_jobs(int panel) {
    const stream::Panel& at = plan_.panels()[panel];
    T* const R = slots_[plan_.slot(panel)].data();
    for (Pass& pass : passes_)
      block_columns::with_width(pass.size.width, [&](auto width) {
        constexpr int K = decltype(width)::value;
        const block_columns::Job<T> job =
            block_columns::make_job<T>(pass.size, pass.doubles.data(), pass.ints.data(), sign_, false, panel, at.first,
                                  at.end, R, R, at.ld(), own_[plan_.slot(panel)].data());
        if (how_.kernel == Kernel::stepwise) run_stepwise<K>(job);
        else block_columns::run_on_host<K>(job, how_.blocks, [&](int strip) {
          if (how_.kernel == Kernel::side_by_side && strip + 1 == at.end) give_way(panel);
        });
      });
    for (Pass& pass : passes_) {
      const block_columns::PassState* now = pass.size.pass_state(pass.ints.data());
      if (__atomic_load_n(&now->stop, __ATOMIC_ACQUIRE) == 0) continue;
      pivots_[panel] = now->pivot;
      return;
    }
  }
  /// Before a job's last strip, until the next panel's job begins, or a few milliseconds.
  void give_way(int panel) const {
    for (int i = 0; i < 5 && begun_ <= panel + 1 && panel + 1 < int(plan_.panels().size()); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const stream::Plan& plan_;
  Sign sign_;
  Laziness how_;
  std::mt19937 random_;
  int numbers_ = 0, overlapping_ = 0;
  std::atomic<int> begun_{0};  ///< panels
  std::vector<std::deque<Task>> queues_;
  std::vector<std::vector<T>> up_, down_, slots_;
  std::vector<std::vector<double>> own_;
  std::vector<Pass> passes_;
  std::vector<Running> jobs_;  ///< of each slot
  std::vector<Queued> sending_, fetching_;
  std::vector<index_t> words_sent_, words_asked_;  ///< of each panel
  std::vector<Queued> modifications_;
  std::vector<bool> come_back_;
  std::vector<index_t> pivots_;
};

}  // namespace gpucholmod::test
