#pragma once

#include "cuda/check.h"

namespace gpucholmod::cuda {

/// A point in the work of a stream, with the time at which the device comes to it.
class Timer {
 public:
  Timer() { check(cudaEventCreate(&event_), "create an event"); }
  ~Timer() { cudaEventDestroy(event_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "record an event"); }
  /// Both points must have been passed.
  double seconds_since(const Timer& earlier) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, earlier.event_, event_), "read the time");
    return ms / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace gpucholmod::cuda
