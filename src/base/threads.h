#pragma once

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/tuning.h"

namespace gpucholmod {

/// Threads of the CPU: `asked`, or, for 0, as many as there are cores, at most tuning::most_threads and OMP_THREAD_LIMIT.
inline int threads_for(int asked) {
  if (asked > 0) return asked;
  // Asked for once: the C library opens a file to know it.
  static const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  int most = std::min(tuning::most_threads, cores);
  if (const char* limit = std::getenv("OMP_THREAD_LIMIT"))
    if (const int allowed = std::atoi(limit); allowed > 0) most = std::min(most, allowed);
  return most;
}

}  // namespace gpucholmod
