#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "mpi/team.h"

/// Threads that stand in for processes: mpi::Transport in one address space, with messages that take some time.
namespace gpucholmod::test {

class Threads {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A message on its way. It is copied and destroyed while mutex_ is free: its memory may be page-locked, for which
  /// another lock is taken, and a thread that has this lock may wait for mutex_.
  using Content = std::shared_ptr<const mpi::Bytes>;

  /// Makes mailboxes for `size` processes. Each message takes a random time of up to `delay` seconds.
  explicit Threads(int size, double delay = 0) : boxes_(size), delay_(delay) {}

  class Process : public mpi::Transport {
   public:
    Process(Threads& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return int(all_.boxes_.size()); }
    void send(int to, std::shared_ptr<const mpi::Bytes> message) override { all_.post(rank_, to, std::move(message)); }
    bool receive(int& from, mpi::Bytes& message) override {
      const Content come = all_.fetch(rank_, from);
      if (!come) return false;
      message = mpi::Bytes(come->size(), memory_for(come->size()));
      std::copy(come->begin(), come->end(), message.begin());
      return true;
    }
    bool gone(int process) override {
      const std::lock_guard<std::mutex> lock(all_.mutex_);
      return all_.boxes_[process].gone;
    }

   private:
    Threads& all_;
    int rank_;
  };

  void end(int process) {
    const std::lock_guard<std::mutex> lock(mutex_);
    boxes_[process].gone = true;
  }
  index_t messages = 0;
  double bytes = 0;

 private:
  struct Message {
    int from;
    Time due;
    Content content;
  };
  struct Box {
    std::deque<Message> messages;
    bool gone = false;
  };

  void post(int from, int to, Content content) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes += double(content->size());
    const double wait = delay_ * std::uniform_real_distribution<>()(random_);
    boxes_[to].messages.push_back(
        {from, std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::int64_t(1e9 * wait)),
         std::move(content)});
    ++messages;
  }
  /// Returns a message that has come, or null.
  Content fetch(int rank, int& from) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::deque<Message>& box = boxes_[rank].messages;
    const Time now = std::chrono::steady_clock::now();
    for (auto one = box.begin(); one != box.end(); ++one) {
      if (one->due > now) continue;
      from = one->from;
      Content content = std::move(one->content);
      box.erase(one);
      return content;
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<Box> boxes_;
  double delay_;
  std::mt19937 random_{7};
};

/// Calls f(team) in a thread for each process. Returns the error of each process, if there is one. Long operations of
/// process p call watch(p).
template <class F>
std::vector<std::optional<Error>> in_processes(Threads& all, int size, double limit, F&& f,
                                               const std::function<void(int)>& watch = [](int) {}) {
  std::vector<std::optional<Error>> errors(size);
  std::vector<std::thread> threads;
  for (int p = 0; p < size; ++p)
    threads.emplace_back([&, p] {
      Threads::Process transport(all, p);
      mpi::Team team(transport, [&, p] { watch(p); });
      team.set_limit(limit);
      try {
        f(team);
      } catch (const Error& error) {
        errors[p] = error;
      }
    });
  for (std::thread& one : threads) one.join();
  return errors;
}

}  // namespace gpucholmod::test
