#include "base/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests.h"

using namespace gpucholmod;

namespace {

/// Waits until done(), which other threads make true. Returns false after a minute.
template <class F>
bool wait_until(F&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return done();
}

/// Returns the threads in which `count` helpers run, all of them at the same time.
std::set<std::thread::id> threads_of(int count) {
  std::set<std::thread::id> seen;
  std::set<int> numbers;
  std::mutex mutex;
  std::atomic<int> there{0};
  {
    const Helpers helpers(count, [&](int t) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        seen.insert(std::this_thread::get_id());
        numbers.insert(t);
      }
      ++there;
      wait_until([&] { return there == count; });
    });
    EXPECT_TRUE(wait_until([&] { return there == count; }));
  }
  EXPECT_EQ(int(seen.size()), count);
  EXPECT_EQ(seen.count(std::this_thread::get_id()), 0u);
  EXPECT_EQ(int(numbers.size()), count);
  EXPECT_TRUE(count == 0 || (*numbers.begin() == 1 && *numbers.rbegin() == count));
  return seen;
}

}  // namespace

TEST(Helpers, AllRunAtOnceAndAreKept) {
  const auto seven = threads_of(7);
  for (const int count : {0, 1, 2, 3, 7})
    for (const auto id : threads_of(count)) EXPECT_EQ(seven.count(id), 1u) << count;
}

TEST(Helpers, WhoHasNotBegunNeverDoes) {
  std::atomic<int> running{0};
  std::atomic<bool> over{false}, late{false};
  for (int turn = 0; turn < 2000; ++turn) {
    over = false;
    {
      const Helpers helpers(3, [&](int) {
        ++running;
        if (over) late = true;
        --running;
      });
    }
    EXPECT_EQ(running, 0);
    over = true;
  }
  EXPECT_FALSE(late);
}

TEST(Helpers, OfSeveralThreadsAtOnceAndOfHelpers) {
  std::atomic<int> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        std::atomic<int> mine{0};
        const Helpers helpers(2, [&](int) {
          std::atomic<bool> begun{false};
          const Helpers inner(1, [&](int) { begun = true; });
          if (wait_until([&] { return begun.load(); })) ++mine;
        });
        EXPECT_TRUE(wait_until([&] { return mine == 2; }));
        sum += mine;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 50 * 2);
}

TEST(Helpers, OfAForkedProcessAreItsOwn) {
  threads_of(2);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(threads_of(2).size() == 2 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  threads_of(2);
}
