#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// What a panel waits for in turn; fill and empty are the CPU's.
enum class Stage { fill, send, modify, fetch, empty };

/// When what was done, in seconds since the timeline was made. Any thread may add to it.
class Timeline {
 public:
  struct Entry {
    Stage stage;
    int panel;
    double begin, end;
  };

  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - zero_).count();
  }
  void add(const Entry& entry) {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_back(entry);
  }
  /// Not while others add.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::chrono::steady_clock::time_point zero_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// An entry from here to the end of its life; none where there is no timeline.
class Span : NotCopied {
 public:
  Span(Timeline* timeline, Stage stage, int panel)
      : timeline_(timeline), entry_{stage, panel, timeline ? timeline->now() : 0, 0} {}
  ~Span() {
    if (!timeline_) return;
    entry_.end = timeline_->now();
    timeline_->add(entry_);
  }

 private:
  Timeline* timeline_;
  Timeline::Entry entry_;
};

}  // namespace gpucholmod
