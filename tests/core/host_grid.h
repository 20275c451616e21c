#pragma once

#include <cstring>
#include <thread>
#include <vector>

#include "block_columns/strip.h"

/// The resident method on the CPU, for tests: as many blocks of threads as one likes, each of them a thread.
namespace gpucholmod::block_columns {

/// A block of threads, or a half of one: its warps take turns, so that what is to end in a barrier does.
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
  void warps_sync(F&& f) {
    for (int w = 0; w < warp_count; ++w) {
      Warp warp{w};
      f(warp);
    }
  }
  template <class F>
  void each_warp(F&& f) { warps_sync(f); }
  template <class F>
  bool all_sync(F&& f) {
    bool all = true;
    for (int w = 0; w < warp_count; ++w) {
      Warp warp{w};
      all = f(warp) && all;
    }
    return all;
  }
  template <class F>
  void threads_sync(F&& f) {
    for (int thread = 0; thread < warp_count * LANES; ++thread) f(thread);
  }
  template <class F>
  void once(F&& f) { f(); }
  template <class F>
  void halves_sync(F&& f) {
    for (int half = 0; half < 2; ++half) f(HostTeam{shared, WARPS / 2}, half);
  }
  void barrier() {}
  template <int words>
  void copy(double* to, const double* from) { std::memcpy(to, from, sizeof(double) * words); }
  template <int words>
  void copy_share(const Warp& warp, double* to, const double* from) {
    if (warp.id == 0) copy<words>(to, from);
  }
  void store_release(int* flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
  void add(int* counter, int value) { __atomic_fetch_add(counter, value, __ATOMIC_RELAXED); }
  void stop(PassState* pass_state, int pivot) {
    pass_state->pivot = pivot;
    store_release(&pass_state->stop);
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
      typename StripTask<T, K, HostTeam>::Blocks diagonal_blocks(team, job.shared, strip * BLOCKS);
      typename StripTask<T, K, HostTeam>::States states;
      if (!StripTask<T, K, HostTeam>(team, job, strip, diagonal_blocks, states).run()) return;
    }
  };
  std::vector<std::thread> running;
  for (int i = 0; i < blocks; ++i) running.emplace_back(block);
  for (std::thread& thread : running) thread.join();
}

}  // namespace gpucholmod::block_columns
