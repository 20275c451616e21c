#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/types.h"
#include "base/thread_pool.h"
#include "base/tuning.h"

namespace gpucholmod {

/// Returns the number of CPU threads: `asked`, or, if that is 0, the number of cores, at most tuning::most_threads and
/// OMP_THREAD_LIMIT.
inline int threads_for(int asked) {
  if (asked > 0) return asked;
  // The C library opens a file to find the number of cores, so the number is asked for once.
  static const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  int most = std::min(tuning::most_threads, cores);
  if (const char* limit = std::getenv("OMP_THREAD_LIMIT"))
    if (const int allowed = std::atoi(limit); allowed > 0) most = std::min(most, allowed);
  return most;
}

/// Returns how many threads take the least time if p threads take work / p + p. The unit of `work` is the time that the
/// help of one thread takes.
inline double threads_that_pay(double work) { return 1 + std::floor((std::sqrt(1 + 4 * work) - 1) / 2); }

/// Calls f(first, last) for every `block` neighbouring columns of n, by several threads, in any order. The calling
/// thread does its share, and calls watch() in between. Throws what one of the threads has thrown.
inline void for_columns(index_t n, int threads, const std::function<void(index_t first, index_t last)>& f,
                        const std::function<void()>& watch, index_t block = 64) {
  std::atomic<index_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&](bool calling) {
    try {
      for (index_t first; (first = next.fetch_add(block)) < n;) {
        if (calling) watch();
        f(first, std::min(first + block, n));
      }
    } catch (...) {
      next = n;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    const Helpers helpers(int(std::min<index_t>(threads, (n + block - 1) / block)) - 1, [&work](int) { work(false); });
    work(true);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gpucholmod
