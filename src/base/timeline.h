#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// The stages of a panel, in turn; the CPU does fill and empty.
enum class Stage { fill, send, modify, fetch, empty };

/// Records when each stage began and ended, in seconds since the timeline was made. Any thread may add an entry.
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
  /// Returns the entries. Must not be called while other threads add entries.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::chrono::steady_clock::time_point zero_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// Adds an entry that lasts from the constructor to the destructor, unless the timeline is null.
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
