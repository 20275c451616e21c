#pragma once

#include <memory>
#include <vector>

#include "base/timeline.h"
#include "cuda/memory.h"

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

/// When the device did what, for a timeline.
class Stopwatch {
 public:
  Stopwatch(Timeline& timeline, cudaStream_t stream) : timeline_(timeline) {
    zero_.record(stream);
    check(cudaStreamSynchronize(stream), "start the timeline");
    offset_ = timeline.now();
  }
  void begin(Stage stage, int panel, cudaStream_t stream) {
    laps_.push_back({stage, panel, std::make_unique<Timer>(), std::make_unique<Timer>()});
    laps_.back().begin->record(stream);
  }
  void end(cudaStream_t stream) { laps_.back().end->record(stream); }
  /// When everything has been done.
  void report() {
    for (const Lap& lap : laps_)
      timeline_.add({lap.stage, lap.panel, offset_ + lap.begin->seconds_since(zero_),
                     offset_ + lap.end->seconds_since(zero_)});
  }

 private:
  struct Lap {
    Stage stage;
    int panel;
    std::unique_ptr<Timer> begin, end;
  };
  Timeline& timeline_;
  Timer zero_;
  double offset_;
  std::vector<Lap> laps_;
};

}  // namespace gpucholmod::cuda
