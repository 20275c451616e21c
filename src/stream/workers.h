#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/types.h"

namespace gpucholmod::stream {

/// Threads that do tasks in the order of submission, for as long as this lives. The thread that submits counts as one
/// of them: where they are few, it does tasks too whenever it calls help(); where they are many, its watching is
/// worth more.
class Workers : NotCopied {
 public:
  using Task = std::function<void(int worker)>;

  explicit Workers(int threads)
      : helped_(threads <= most_helped), count_(helped_ ? std::max(threads, 1) : threads - 1) {
    try {
      for (int i = 0; i < count_ - helped_; ++i) threads_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      helped_ = true;  // fewer threads will do
    }
  }
  /// Tasks that have not begun are dropped.
  ~Workers() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
      tasks_.clear();
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
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
      if (helped_ && !tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
    }
    if (task) task(count_ - 1);
    else std::this_thread::yield();
  }

 private:
  static constexpr int most_helped = 4;

  void work(int worker) {
    for (;;) {
      Task task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [this] { return done_ || !tasks_.empty(); });
        if (done_) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      try {
        task(worker);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;
  bool done_ = false;
  bool helped_;
  int count_;
  std::vector<std::thread> threads_;
};

}  // namespace gpucholmod::stream
