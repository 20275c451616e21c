#pragma once

#include <memory>
#include <vector>

#include "base/timeline.h"
#include "cuda/memory.h"

namespace gpucholmod::cuda {

/// Measures when the device began and ended each stage, for a timeline.
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
  /// Waits for the end of every lap, and adds it to the timeline. All work but these events must be done before.
  void report() {
    for (const Lap& lap : laps_) {
      lap.end->synchronize();
      timeline_.add({lap.stage, lap.panel, offset_ + lap.begin->seconds_since(zero_),
                     offset_ + lap.end->seconds_since(zero_)});
    }
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
