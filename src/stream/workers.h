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

/// Runs tasks on threads, in the order of submission, as long as this object lives. The submitting thread counts as one
/// of the threads. If threads are few, or no other thread has begun, help() makes the submitting thread do tasks too.
/// If threads are many, its watching is worth more.
class Workers : NotCopied {
 public:
  using Task = std::function<void(int worker)>;

  explicit Workers(int threads) : count_(std::max(threads, 1)), helpers_(count_ - 1, [this](int t) { work(t); }) {}
  /// Drops the tasks that have not begun, and waits for the others.
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

  /// Does a task, or yields, when the submitting thread has no other work. Throws what a task has thrown.
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

  /// Removes the first task and returns it. mutex_ must be locked.
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
  bool begun_ = false;  ///< True if another thread has begun
  int count_;
  Helpers helpers_;  ///< destroyed first: its threads use the other members
};

}  // namespace gpucholmod::stream
