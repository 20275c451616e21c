#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/thread_pool.h"
#include "base/types.h"

namespace gpucholmod::stream {

/// Threads that do tasks in the order of submission, for as long as this lives. The thread that submits counts as one
/// of them: where they are few, or no other has begun, it does tasks too whenever it calls help(); where they are many,
/// its watching is worth more.
class Workers : NotCopied {
 public:
  using Task = std::function<void(int worker)>;

  explicit Workers(int threads) : count_(std::max(threads, 1)), helpers_(count_ - 1, [this](int t) { work(t); }) {}
  /// Tasks that have not begun are dropped.
  ~Workers() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
      tasks_.clear();
    }
    wake_.notify_all();
  }

  int count() const { return count_; }  ///< numbers that `worker` may have

  void submit(Task task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

  /// For the submitting thread when it has nothing else to do. Throws what a task has thrown.
  void help() {
    Task task;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      if ((count_ <= most_helped || !begun_) && !tasks_.empty()) task = next();
    }
    if (task) task(0);
    else std::this_thread::yield();
  }

 private:
  static constexpr int most_helped = 4;

  void work(int worker) {
    for (;;) {
      Task task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        begun_ = true;
        wake_.wait(lock, [this] { return done_ || !tasks_.empty(); });
        if (done_) return;
        task = next();
      }
      try {
        task(worker);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
    }
  }

  /// Takes the first task; under the mutex.
  Task next() {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;
  bool done_ = false;
  bool begun_ = false;  ///< whether another thread is there
  int count_;
  Helpers helpers_;  ///< the first to go: their work uses the rest
};

}  // namespace gpucholmod::stream
