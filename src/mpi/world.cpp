#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <thread>

#include "base/file.h"
#include "base/threads.h"
#include "cuda_build.h"
#include "mpi/backend.h"

namespace gpucholmod::mpi {
namespace {

[[noreturn]] void unavailable(const char* reason, const std::string& message) {
  throw Error(ErrorCode::backend_unavailable, message, {{"backend", "mpi"}, {"reason", reason}});
}

void require(int status, const char* doing) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  unavailable("failed", std::string("MPI fails to ") + doing + ": " + text);
}

/// The process that has loaded this library. If that process has begun MPI, a process forked from it cannot begin MPI,
/// as the fork would take the place of the first process.
const pid_t loaded_by = getpid();

/// Carries messages by nonblocking MPI requests, which are tested and never waited for.
class World : public Transport {
 public:
  explicit World(double limit) {
    int begun = 0, ended = 0;
    MPI_Finalized(&ended);
    if (ended) unavailable("ended", "MPI has ended in this process");
    MPI_Initialized(&begun);
    if (begun && loaded_by != getpid()) unavailable("forked", "this process was forked from one that has begun MPI");
    if (!begun) {
      int provided;
      require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "begin");
      own_ = true;
    }
    MPI_Request request;
    require(MPI_Comm_idup(MPI_COMM_WORLD, &comm_, &request), "make a communicator");
    const Clock since;
    for (int done = 0, idle = 0; !done; ++idle) {
      require(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "make a communicator");
      if (since.seconds() > limit)
        unavailable("failed", "not all processes that MPI has started have come to compute together");
      pause(idle);
    }
    require(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "set a handler of errors");
    require(MPI_Comm_rank(comm_, &rank_), "number processes");
    require(MPI_Comm_size(comm_, &size_), "count processes");
    pids_.assign(size_, 0);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, std::shared_ptr<const Bytes> message) override {
    sent_.emplace_back(std::move(message), MPI_REQUEST_NULL);
    auto& [kept, request] = sent_.back();
    require(MPI_Isend(kept->data(), int(kept->size()), MPI_BYTE, to, 0, comm_, &request), "send");
  }

  bool receive(int& from, Bytes& message) override {
    forget_sent();
    for (int there = 1; there;) {
      MPI_Message found;
      MPI_Status status;
      require(MPI_Improbe(MPI_ANY_SOURCE, 0, comm_, &there, &found, &status), "look for messages");
      if (!there) break;
      int bytes;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      coming_.push_back(
          {status.MPI_SOURCE, Bytes(std::size_t(bytes), memory_for(std::size_t(bytes))), MPI_REQUEST_NULL});
      Coming& one = coming_.back();
      require(MPI_Imrecv(one.message.data(), bytes, MPI_BYTE, &found, &one.request), "receive");
    }
    for (auto one = coming_.begin(); one != coming_.end(); ++one) {
      int done;
      require(MPI_Test(&one->request, &done, MPI_STATUS_IGNORE), "receive");
      if (!done) continue;
      from = one->from;
      message = std::move(one->message);
      coming_.erase(one);
      return true;
    }
    return false;
  }

  /// Returns whether a process of this machine no longer exists. Processes of other machines are found to be silent.
  bool gone(int process) override { return pids_[process] > 0 && kill(pids_[process], 0) != 0 && errno == ESRCH; }

  /// Returns the number of processes on this machine with a smaller rank; known once meet() has returned.
  int local_rank() const { return local_rank_; }

  /// Finds the processes on this machine, and their process ids. Returns the number of these processes.
  int meet(Team& team) {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    const std::string here(name, std::size_t(length));
    int together = 0;
    team.together(Operation::meet, 0, [&]() -> index_t {
      const std::string told = std::to_string(getpid()) + " " + here;
      const std::vector<Bytes> all = team.exchange(told.data(), told.size());
      for (int p = 0; p < size_; ++p) {
        const std::string other(all[p].begin(), all[p].end());
        if (other.substr(other.find(' ') + 1) != here) continue;
        ++together;
        if (p < rank_) ++local_rank_;
        const pid_t pid = std::stoi(other);
        // Machines of one name may not see each other's processes: gone() ignores processes that are not seen now.
        if (kill(pid, 0) == 0) pids_[p] = pid;
      }
      return -1;
    });
    return together;
  }

  void end(bool all_there) {
    forget_sent();
    if (own_ && all_there) MPI_Finalize();
  }
  /// Leaves MPI_Finalize() to other code.
  void disown() { own_ = false; }

 private:
  struct Coming {
    int from;
    Bytes message;
    MPI_Request request;
  };
  void forget_sent() {
    for (auto one = sent_.begin(); one != sent_.end();) {
      int done;
      require(MPI_Test(&one->second, &done, MPI_STATUS_IGNORE), "send");
      one = done ? sent_.erase(one) : std::next(one);
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
  bool own_ = false;  ///< True if this package has begun MPI
  std::vector<pid_t> pids_;
  std::list<std::pair<std::shared_ptr<const Bytes>, MPI_Request>> sent_;
  std::list<Coming> coming_;
};

/// Holds the connection to the other processes until this process ends, as factors refer to the team.
struct State {
  explicit State(double limit) : world(limit) {}

  World world;
  std::function<void()> watch;
  Team team{world, [this] { watch(); }};
};
State* state = nullptr;

/// Takes leave of the other processes. MPI calls when_ended() when any code, such as Rmpi's mpi.quit(), ends MPI, while
/// messages can still be sent.
int when_ended(MPI_Comm, int, void*, void*) {
  state->world.disown();
  try {
    leave();
  } catch (...) {  // then the others find this process silent
  }
  return MPI_SUCCESS;
}

Team& team() {
  if (!state) unavailable("failed", "no processes compute together yet");
  return state->team;
}

}  // namespace

bool built() { return true; }
std::string configured() { return GPUCHOLMOD_MPI_CONFIGURED; }

Place start(const std::function<void()>& watch, double limit) {
  if (!state) {
    auto made = std::make_unique<State>(limit);
    made->watch = watch;
    made->team.set_limit(limit);
    const int cores = int(sysconf(_SC_NPROCESSORS_ONLN)), together = made->world.meet(made->team);
    made->team.set_threads(std::max(1, std::min(threads_for(0), cores / std::max(1, together))));
    state = made.release();
    int key;
    require(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, when_ended, &key, nullptr), "take note of its end");
    require(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "take note of its end");
  }
  Team& all = team();
  all.require_here();
  all.set_limit(limit);
  return {all.rank(), all.size(), all.threads(), state->world.local_rank()};
}

void begin_call() { team().begin_call(); }

void refuse(const std::string& condition) {
  Team& all = team();
  const std::string who = "process " + std::to_string(all.rank());
  if (condition.empty())
    all.refuse(Error(ErrorCode::process_failed, who + " was interrupted",
                     {{"process", double(all.rank())}, {"reason", "stopped"}}));
  else
    all.refuse(Error(ErrorCode::process_failed, who + " has failed",
                     {{"process", double(all.rank())}, {"reason", "refused"}, {"condition", condition}}));
}

Bytes agree(std::string_view key, const std::string& name, std::optional<std::string_view> given) {
  return agree(team(), key, name, given);
}

std::unique_ptr<SharedFactor> deal_out(const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make) {
  return deal_out(team(), R, n, uplo, precision, allocate, make);
}
std::unique_ptr<SharedFactor> read_out(const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make) {
  return read_out(team(), path, n, precision, allocate, make);
}

/// Opens the file in one operation, so that all processes know whether that has succeeded before columns are sent.
void write(const HeldFactor& factor, const std::string& path, bool replace) {
  const bool writing = team().rank() == 0;
  std::unique_ptr<OutputFile> out;
  const auto if_writing = [&](auto&& f) {
    team().together(Operation::write, 0, [&]() -> index_t {
      if (writing) f();
      return -1;
    });
  };
  if_writing([&] { out = std::make_unique<OutputFile>(path, factor.order(), replace); });
  dynamic_cast<const SharedFactor&>(factor).write(out.get());
  if_writing([&] { out->commit(); });
}

void leave() {
  if (!state || !state->team.is_here() || state->team.has_left()) return;
  state->world.end(state->team.leave());
}

}  // namespace gpucholmod::mpi
