#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "mpi/end.h"
#include "mpi/transport.h"

namespace gpucholmod::mpi {

/// Pauses a loop that waits, in its round `idle`: yields in early rounds, sleeps in later ones to spare the core.
void pause(index_t idle);

/// The operations that processes carry out together. A process that refuses is in step with any operation of the
/// others.
enum class Operation {
  refuse,
  meet,
  agree,
  hold,
  copy,
  modify,
  collect,
  columns,
  solve,
  write,
  invert,
  flags,
  remove,
  insert,
  shift
};

/// A group of processes that carry out the same operations in the same order, each its own part. All processes end an
/// operation alike: with success, with the same failing pivot, or with the same error. Every wait has a time limit.
///
/// A message belongs to a turn, the number of an operation. Messages of past turns are dropped, messages of future
/// turns are kept, so an operation that one process breaks off leaves no messages behind. An operation ends when each
/// process has told all others how its part has ended. A process that fails tells the others at once, and the others
/// break off.
///
/// A call of the user's consists of several operations. Their numbers begin anew with each call, at a number that
/// depends on the count of calls alone. So all processes are in step again after a call that one process has left
/// between two operations.
///
/// Throws process_failed with the fields `process`, from 0, and `reason`:
///   gone         the process no longer exists
///   left         the process has ended its R
///   silent       no message of the process has arrived for the limit of time
///   stopped      the process was interrupted, or something that is no Error was thrown there
///   out_of_step  the process carries out another operation
///   busy         this process is within an operation, and something that ran meanwhile, such as a finaliser of R's,
///                has tried to begin another
///
/// Throws backend_unavailable, with the fields `backend`, "mpi", and `reason`: "forked" in a process that was forked
/// from the one that has made the Team, as the fork would take the place of that process; "ended" after leave().
class Team : NotCopied {
 public:
  /// Wraps a transport. Long operations call `watch`; an exception of `watch` ends the operation.
  Team(Transport& transport, std::function<void()> watch);

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  /// Returns true in the process that has made the Team, false in a process that was forked from it.
  bool is_here() const { return process_ == getpid(); }
  /// Throws backend_unavailable, "forked", unless is_here().
  void require_here() const;
  /// Sets the seconds after which a process that sends nothing counts as silent.
  void set_limit(double seconds) { limit_ = seconds; }
  /// Sets the number of threads of use to this process: its share of its machine's cores. 0: all cores.
  void set_threads(int threads) { threads_ = threads; }
  int threads() const { return threads_; }
  /// Returns a number for a new factor, the same in all processes.
  index_t new_number() { return ++factors_; }

  /// Begins the next call.
  void begin_call();
  /// Calls f, this process's part of an operation on factor number `of`. Returns the failing pivot that a process has
  /// found, or -1. If f makes *begun true in one process, *begun is true in all processes when together() returns or
  /// throws; also if a process is missing, as it may have begun.
  index_t together(Operation what, index_t of, const std::function<index_t()>& f, std::atomic<bool>* begun = nullptr);
  /// Leaves the call: `why` becomes the error of the next operation of this call in the other processes. Waits until
  /// each of them has received the error, has gone on to another call, or is missing. Then throws the error of the
  /// first process that has left the call at this operation. Returns at once if the last operation of this call has
  /// failed, as all processes then know of the failure.
  void refuse(const Error& why);

  // Within an operation:

  void send(int to, index_t index, const void* data, std::size_t bytes);
  /// Sends the data to each process in `to`.
  void send(const std::vector<int>& to, index_t index, const void* data, std::size_t bytes);
  /// Sends a message that room_for() has made, without a copy.
  void send(const std::vector<int>& to, index_t index, Bytes&& message);
  /// Receives long messages in `memory` from now on; null: in ordinary memory.
  void receive_into(MessageMemory* memory) { transport_.receive_into(memory); }
  bool arrived(int from, index_t index) const { return inbox_.count({from, index}) > 0; }
  /// Waits until the message of that index has arrived.
  void wait(int from, index_t index);
  /// Waits for the message of that index and returns it.
  Bytes take(int from, index_t index);
  /// Lets messages arrive and depart, sends a sign of life if one is due, and calls `watch`. Throws if another process
  /// has ended the operation. Long operations call look() several times a second.
  void look();
  /// Lets messages arrive and depart, and sends a sign of life if one is due. Throws nothing: for work that must not be
  /// broken off.
  void tend() noexcept;

  /// Throws process_failed if the process, which this one has waited for since `since`, has left, is silent, or is
  /// gone.
  void expect(int process, const Clock& since);

  /// Sends the data to all others, and returns the data of all processes, by process.
  std::vector<Bytes> exchange(const void* data, std::size_t bytes);
  /// Makes each flag true that is true in one of the processes.
  void any_of(std::vector<char>& flags);
  double largest(double x);
  /// Sends `data` from process 0 to the processes in `to`, which ignore their `data` and receive it in `received`.
  /// Every process calls broadcast().
  void broadcast(const std::vector<int>& to, std::string_view data, Bytes& received);
  void broadcast(const std::vector<int>& to, Bytes& data) { broadcast(to, {data.data(), data.size()}, data); }
  std::vector<int> others() const;
  std::vector<int> all_but_0() const;

  /// Tells the others that this process ends, and waits until all of them have told the same. Returns false if a
  /// process is gone or silent, so that no process should wait for the others any more.
  bool leave();
  bool has_left() const { return left_[rank()]; }

 private:
  enum class Kind : std::int32_t { data, end, alive, leave };
  struct Trailer {
    std::int64_t turn, what, index;
    Kind kind;
  };
  static_assert(sizeof(Trailer) <= trailer_bytes);
  struct LeftOff {};

  /// Returns the next index for messages of exchange() and broadcast(): a negative one, a million below the last.
  index_t next_index() { return -1000000 * ++exchanges_; }
  /// Returns the seconds after which this process sends a sign of life.
  double notice() const { return std::min(2.0, limit_ / 5); }
  void begin(Operation what, index_t of);
  index_t end(const End& own);
  /// Waits until each of the other processes has ended this operation or has gone on to another call.
  void wait_for_refusal();
  void progress();
  /// Calls progress(), and sends a sign of life if one is due.
  void exchange_messages();
  void enter(int from, const Trailer& trailer, Bytes&& message);
  std::shared_ptr<Bytes> with_trailer(Kind kind, index_t index, Bytes&& message) const;
  void tell_all(Kind kind, const void* data, std::size_t bytes);
  bool is_missing(const Error& error);
  void check_step() const;
  /// Throws "forked", "ended" or "busy" if this process cannot begin an operation.
  void require_usable() const;
  [[noreturn]] void fail(int process, const char* reason) const;
  /// Throws the error of the first process that has failed in this operation.
  void throw_first() const;

  static constexpr std::int64_t turns_of_call = std::int64_t(1) << 32;

  Transport& transport_;
  std::function<void()> watch_;
  double limit_ = 60;
  int threads_ = 0;
  const Clock clock_;
  const pid_t process_ = getpid();
  std::int64_t turn_ = 0, what_ = 0;
  index_t factors_ = 0, exchanges_ = 0;
  bool within_ = false;    ///< True while an operation runs
  bool all_know_ = false;  ///< True if the last operation of this call has failed, as all processes know
  int out_of_step_ = -1;   ///< a process that carries out another operation, or -1
  bool lost_ = false;      ///< True if a process is gone or silent, so that not all processes can end together
  double told_ = 0;        ///< time of the last message to all others, which is also a sign of life
  std::vector<double> heard_;
  std::vector<std::int64_t> reached_;  ///< last turn that each process has sent a message of
  std::vector<char> left_;
  std::map<std::pair<int, index_t>, Bytes> inbox_;
  std::map<int, End> ends_;
  struct Later {
    int from;
    Trailer trailer;
    Bytes message;
  };
  std::vector<Later> later_;
};

}  // namespace gpucholmod::mpi
