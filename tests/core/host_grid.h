#pragma once

#include <cstring>
#include <thread>
#include <vector>

#include "block_columns/strip.h"

/// The resident method on the CPU, for tests: as many blocks of threads as one likes, each of them a thread.
namespace gpucholmod::block_columns {

/// A block of threads, or a half of one: its warps take turns.
struct HostTeam {
  using Warp = HostWarp;
  template <class S>
  struct PerWarp {
    S of[WARPS];
    S& operator[](const Warp& warp) { return of[warp.id]; }
  };

  double* shared;
  int warp_count = WARPS;

  int size() const { return warp_count; }
  template <class F>
  void warps(F&& f) {
    for (int w = 0; w < warp_count; ++w) {
      Warp warp{w};
      f(warp);
    }
  }
  template <class F>
  void each_warp(F&& f) { warps(f); }
  template <class F>
  bool every(F&& f) {
    bool all = true;
    for (int w = 0; w < warp_count; ++w) {
      Warp warp{w};
      all = f(warp) && all;
    }
    return all;
  }
  template <class F>
  void threads(F&& f) {
    for (int thread = 0; thread < warp_count * LANES; ++thread) f(thread);
  }
  template <class F>
  void once(F&& f) { f(); }
  template <class F>
  void halves(F&& f) {
    for (int half = 0; half < 2; ++half) f(HostTeam{shared, WARPS / 2}, half);
  }
  void barrier() {}
  template <int words>
  void copy(double* to, const double* from) { std::memcpy(to, from, sizeof(double) * words); }
  template <int words>
  void copy_share(const Warp& warp, double* to, const double* from) {
    if (warp.id == 0) copy<words>(to, from);
  }
  void publish(int* flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
  void add(int* counter, int value) { __atomic_fetch_add(counter, value, __ATOMIC_RELAXED); }
  void stop(Progress* progress, int pivot) {
    progress->pivot = pivot;
    publish(&progress->stop);
  }
};

/// Runs the job with `blocks` blocks of threads. `at_ticket(strip)` is called before each strip: tests use it to
/// disturb the schedule.
template <int K, class T, class F>
void run_on_host(const Job<T>& job, int blocks, F&& at_ticket) {
  const auto block = [&] {
    std::vector<double> shared(SharedMemory<K>::words);
    HostTeam team{shared.data()};
    for (;;) {
      const int strip = job.first + __atomic_fetch_add(job.ticket, 1, __ATOMIC_RELAXED);
      if (strip >= job.end) return;
      at_ticket(strip);
      typename Strip<T, K, HostTeam>::Blocks diagonal_blocks(team, job.shared, strip * (STRIP / NB));
      typename Strip<T, K, HostTeam>::States states;
      if (!Strip<T, K, HostTeam>(team, job, strip, diagonal_blocks, states).run()) return;
    }
  };
  std::vector<std::thread> running;
  for (int i = 0; i < blocks; ++i) running.emplace_back(block);
  for (std::thread& thread : running) thread.join();
}

}  // namespace gpucholmod::block_columns
