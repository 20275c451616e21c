#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "mpi/end.h"
#include "mpi/transport.h"

namespace gpucholmod::mpi {

/// Between two looks at something that is waited for: quick at first, later without keeping a core busy.
void pause(index_t idle);

/// What processes do together. A process that refuses does so whatever the others do.
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

/// Processes that carry out the same operations in the same order, each its part, and come to the same end of each:
/// success, the same failing pivot, or the same error, in all of them. Every wait in between has a limit.
///
/// A message belongs to a turn, the number of an operation: those of turns that are over are dropped, those of turns to
/// come are kept, so that an operation that one process breaks off leaves nothing behind. An operation ends when each
/// has told all others how its part has ended. One that has failed tells so at once, upon which the others leave off.
///
/// A call of the user's is several operations. Their numbers begin anew with each call, at one that depends on the
/// number of calls alone: so all processes are in step again after a call that one has left between two operations.
///
/// Throws process_failed with the fields `process`, from 0, and `reason`:
///   gone         the process is no more
///   left         it has ended its R
///   silent       nothing has come from it for the limit of time
///   stopped      it was interrupted, or something that is no Error was thrown there
///   out_of_step  it does something else
///   busy         this process is within an operation, and something that ran meanwhile, such as a finaliser of R's,
///                has tried to begin another
///
/// Throws backend_unavailable, with the fields `backend`, "mpi", and `reason`: "forked" in a process that was forked
/// from the one that has made this, whose place it would take; "ended" after leave().
class Team : NotCopied {
 public:
  /// `watch` is called in long operations; what it throws ends them.
  Team(Transport& transport, std::function<void()> watch);

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  /// Is true in the process that has made this, false in one that was forked from it.
  bool is_here() const { return process_ == getpid(); }
  /// Throws backend_unavailable, "forked", unless is_here().
  void require_here() const;
  /// Seconds to wait for a process that does not say anything.
  void set_limit(double seconds) { limit_ = seconds; }
  /// A number for a new factor, the same in all.
  index_t new_number() { return ++factors_; }

  /// Begins the next call.
  void begin_call();
  /// Calls f, this process's part of an operation on factor number `of`. Returns the failing pivot that one of them has
  /// come to, or -1.
  index_t together(Operation what, index_t of, const std::function<index_t()>& f);
  /// Leaves the call: `why` becomes the error of the next operation of this call in the other processes. Waits until
  /// each has it, has gone on to another call, or is not to be expected any more; then throws the error of the first
  /// process that has left the call there. Returns at once where the last operation of this call has failed: all know.
  void refuse(const Error& why);

  // Within an operation:

  void send(int to, index_t index, const void* data, std::size_t bytes);
  /// To those of `to`.
  void send(const std::vector<int>& to, index_t index, const void* data, std::size_t bytes);
  /// Of room_for(), as it lies there.
  void send(const std::vector<int>& to, index_t index, Bytes&& message);
  /// Long messages come into this memory from now on; null: into ordinary.
  void receive_into(MessageMemory* memory) { transport_.receive_into(memory); }
  bool arrived(int from, index_t index) const { return inbox_.count({from, index}) > 0; }
  /// Until it is there.
  void wait(int from, index_t index);
  /// The message of that index, once it is there.
  Bytes take(int from, index_t index);
  /// Lets messages come and go, and gives notice of life. Throws where another process has ended the operation. To be
  /// called several times a second.
  void look();

  /// Throws where nothing is to be expected of a process any more that is waited for since then.
  void expect(int process, const Clock& since);

  /// All processes' bytes, by process.
  std::vector<Bytes> exchange(const void* data, std::size_t bytes);
  double largest(double x);
  /// From process 0, which alone gives it, to `to`. Called by all.
  void broadcast(const std::vector<int>& to, Bytes& data);
  std::vector<int> others() const;

  /// Tells the others that this process comes to its end, and waits until they do. False where one of them is gone, and
  /// nobody should wait for the others any more.
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

  /// Of messages of exchange() and broadcast(): negative, those of one a million apart.
  index_t next_index() { return -1000000 * ++exchanges_; }
  /// Seconds after which a process says that it is alive.
  double notice() const { return std::min(2.0, limit_ / 5); }
  void begin(Operation what, index_t of);
  index_t end(const End& own);
  /// Waits until each of the others has the refusal, or has gone on to another call.
  void wait_for_refusal();
  void progress();
  void enter(int from, const Trailer& trailer, Bytes&& message);
  std::shared_ptr<Bytes> with_trailer(Kind kind, index_t index, Bytes&& message) const;
  void tell_all(Kind kind, const void* data, std::size_t bytes);
  bool is_missing(const Error& error);
  void check_step() const;
  /// Throws where this process cannot begin anything: "forked", "ended", "busy".
  void require_usable() const;
  [[noreturn]] void fail(int process, const char* reason) const;
  /// Throws the error of the first process that has failed in this operation.
  void throw_first() const;

  static constexpr std::int64_t turns_of_call = std::int64_t(1) << 32;

  Transport& transport_;
  std::function<void()> watch_;
  double limit_ = 60;
  const Clock clock_;
  const pid_t process_ = getpid();
  std::int64_t turn_ = 0, what_ = 0;
  index_t factors_ = 0, exchanges_ = 0;
  bool within_ = false;    ///< an operation
  bool all_know_ = false;  ///< that the last operation of this call has failed
  int out_of_step_ = -1;
  bool lost_ = false;    ///< a process: there is no end that all take part in
  double told_ = 0;      ///< when the others were last given notice of life
  std::vector<double> heard_;
  std::vector<std::int64_t> reached_;  ///< the last turn that each has told anything of
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
