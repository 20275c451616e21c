#pragma once

#include <functional>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// Runs work on other threads, which help a call. The threads are kept when the call is over, and sleep: waking a
/// thread takes a fifth of the time of starting one.
///
/// From the constructor on, work(t) runs for t = 1 .. count, each in a thread of its own. If the system gives no more
/// threads or memory, fewer calls run, which is no error. The destructor waits for the calls of work() that run; calls
/// that have not begun by then never begin. So the calling thread has to do the work that they leave. `work` must not
/// throw. Several threads may have helpers at the same time. A forked process has threads of its own.
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
