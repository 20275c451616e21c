#pragma once

#include <functional>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// Other threads that help a call. They are kept when it is over, and sleep: to wake one takes a fifth of what it takes
/// to start one.
///
/// From the constructor on, work(t) runs for t = 1 .. count, each in a thread of its own; fewer where the system gives
/// no more threads or memory, which is no error. The destructor waits for those that run, and those that have not begun
/// by then never do: the calling thread has to do what they leave. `work` must not throw. Several threads may have
/// helpers at the same time. A forked process has threads of its own.
class Helpers : NotCopied {
 public:
  Helpers(int count, std::function<void(int t)> work);
  ~Helpers();

 private:
  struct Worker;
  class Pool;

  std::function<void(int)> work_;
  std::vector<Worker*> workers_;
};

}  // namespace gpucholmod
