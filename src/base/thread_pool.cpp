#include "base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#ifdef _WIN32
#include <process.h>
#else
#include <csignal>
#include <unistd.h>
#endif

namespace gpucholmod {
namespace {

#ifdef _WIN32
int this_process() { return _getpid(); }
struct WithoutSignals {};
#else
int this_process() { return int(getpid()); }

/// Blocks signals while the object lives, so that threads started meanwhile receive none: R's handlers are for R's own
/// thread.
struct WithoutSignals : NotCopied {
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before;
};
#endif

}  // namespace

/// A thread that sleeps while it is idle.
struct Helpers::Worker {
  enum State { idle, called, working };

  std::mutex mutex;
  std::condition_variable wake, finished;
  std::atomic<State> state{idle};  ///< state of the thread, changed under the mutex
  Helpers* helpers = nullptr;      ///< helpers that the thread belongs to
  int number = 0;                  ///< number of the thread among these, from 1 on

  void live() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return state == called; });
      state = working;
      lock.unlock();
      // each thread wakes two others, so that all are awake sooner
      for (const std::size_t next : {2 * number, 2 * number + 1})
        if (next < helpers->workers_.size()) helpers->workers_[next]->wake.notify_one();
      helpers->work_(number);
      lock.lock();
      state = idle;
      finished.notify_one();
    }
  }

  void call(Helpers& by, int as) {
    const std::lock_guard<std::mutex> lock(mutex);
    helpers = &by;
    number = as;
    state = called;
  }

  /// Prevents the work from beginning, or waits until it has finished.
  void release() {
    for (int turn = 0; turn < 1000 && state == working; ++turn) std::this_thread::yield();
    std::unique_lock<std::mutex> lock(mutex);
    if (state == called) state = idle;
    finished.wait(lock, [&] { return state == idle; });
  }
};

/// The idle threads of this process. A pool is never destroyed, because its threads wait for ever.
class Helpers::Pool {
 public:
  static Pool& of_this_process() {
    static std::atomic<Pool*> pool{nullptr};
    Pool* found = pool;
    if (found != nullptr && found->owner_ == this_process()) return *found;
    Pool* const made = new Pool;  // the threads of the parent process have stayed in that process
    if (pool.compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
  }

  /// Returns an idle thread or a new one; null if there are no more.
  Worker* take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      Worker* const worker = idle_.back();
      idle_.pop_back();
      return worker;
    }
    [[maybe_unused]] const WithoutSignals meanwhile;
    try {
      idle_.reserve(++count_);  // so that give_back() cannot fail
      auto worker = std::make_unique<Worker>();
      std::thread([it = worker.get()] { it->live(); }).detach();
      return worker.release();
    } catch (const std::exception&) {  // no more memory or threads
      return nullptr;
    }
  }

  void give_back(const std::vector<Worker*>& workers) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.insert(idle_.end(), workers.rbegin(), workers.rend());  // the thread taken first is the next to be taken
  }

 private:
  const int owner_ = this_process();
  std::mutex mutex_;
  std::vector<Worker*> idle_;
  std::size_t count_ = 0;  ///< number of threads ever asked for
};

Helpers::Helpers(int count, std::function<void(int)> work) : work_(std::move(work)) {
  if (count < 1) return;
  try {
    Pool& pool = Pool::of_this_process();
    workers_.reserve(count);
    while (int(workers_.size()) < count) {
      Worker* const worker = pool.take();
      if (worker == nullptr) break;
      workers_.push_back(worker);
    }
  // thrown before the first thread was taken: the calling thread does all work
  } catch (const std::bad_alloc&) {
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i]->call(*this, int(i) + 1);
  for (std::size_t i = 0; i < workers_.size() && i < 2; ++i) workers_[i]->wake.notify_one();
}

Helpers::~Helpers() {
  for (Worker* worker : workers_) worker->release();
  if (!workers_.empty()) Pool::of_this_process().give_back(workers_);
}

}  // namespace gpucholmod
