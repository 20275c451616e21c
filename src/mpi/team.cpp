#include "mpi/team.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

namespace gpucholmod::mpi {
namespace {

constexpr double look_for = 0.05;        ///< seconds of waiting for a process before a check that it exists

}  // namespace

void pause(index_t idle) {
  if (idle < 5000) std::this_thread::yield();
  else std::this_thread::sleep_for(std::chrono::microseconds(200));
}

Team::Team(Transport& transport, std::function<void()> watch)
    : transport_(transport),
      watch_(std::move(watch)),
      heard_(transport.size(), 0),
      reached_(transport.size(), 0),
      left_(transport.size(), false) {}

std::vector<int> Team::others() const {
  std::vector<int> all;
  for (int p = 0; p < size(); ++p)
    if (p != rank()) all.push_back(p);
  return all;
}

std::vector<int> Team::all_but_0() const {
  std::vector<int> all;
  for (int p = 1; p < size(); ++p) all.push_back(p);
  return all;
}

void Team::fail(int process, const char* reason) const {
  const std::string who = "process " + std::to_string(process), why = reason;
  const std::string message = why == "gone"   ? who + " is no more"
                              : why == "left" ? who + " has ended its R"
                              : why == "silent"
                                  ? who + " has not said anything for " + std::to_string(int(limit_)) + " s"
                              : why == "stopped" ? who + " was interrupted, or stopped by an error of its own"
                              : why == "busy"    ? who + " cannot begin an operation within another"
                                                 : who + " does something else: the processes are out of step";
  throw Error(ErrorCode::process_failed, message, {{"process", double(process)}, {"reason", why}});
}

/// Appends the trailer at the end of the message, where adding and removing it moves no other bytes.
std::shared_ptr<Bytes> Team::with_trailer(Kind kind, index_t index, Bytes&& message) const {
  const Trailer trailer{turn_, what_, index, kind};
  append(message, &trailer, sizeof trailer);
  return std::make_shared<Bytes>(std::move(message));
}

void Team::send(const std::vector<int>& to, index_t index, Bytes&& message) {
  const auto made = with_trailer(Kind::data, index, std::move(message));
  for (const int p : to) transport_.send(p, made);
}
void Team::send(const std::vector<int>& to, index_t index, const void* data, std::size_t bytes) {
  Bytes message = room_for(bytes);
  append(message, data, bytes);
  send(to, index, std::move(message));
}
void Team::send(int to, index_t index, const void* data, std::size_t bytes) {
  send(std::vector<int>{to}, index, data, bytes);
}

void Team::tell_all(Kind kind, const void* data, std::size_t bytes) {
  Bytes message = room_for(bytes);
  append(message, data, bytes);
  const auto made = with_trailer(kind, 0, std::move(message));
  for (const int p : others()) transport_.send(p, made);
  told_ = clock_.seconds();
}

void Team::enter(int from, const Trailer& trailer, Bytes&& message) {
  const auto refuses = [](std::int64_t what) { return what == std::int64_t(Operation::refuse); };
  if (trailer.what != what_ && !refuses(trailer.what) && !refuses(what_)) out_of_step_ = from;
  if (trailer.kind == Kind::end) ends_[from] = unpacked(message);
  else inbox_[{from, trailer.index}] = std::move(message);
}

void Team::progress() {
  int from;
  for (Bytes message; transport_.receive(from, message); message = Bytes()) {
    Trailer trailer;
    std::memcpy(&trailer, message.data() + message.size() - sizeof trailer, sizeof trailer);
    message.resize(message.size() - sizeof trailer);
    heard_[from] = clock_.seconds();
    reached_[from] = std::max(reached_[from], trailer.turn);
    if (trailer.kind == Kind::leave) left_[from] = true;
    if (trailer.kind == Kind::leave || trailer.kind == Kind::alive) continue;
    if (within_ && trailer.turn == turn_) enter(from, trailer, std::move(message));
    else if (trailer.turn > turn_) later_.push_back({from, trailer, std::move(message)});
  }
}

void Team::require_here() const {
  if (is_here()) return;
  throw Error(ErrorCode::backend_unavailable, "this process was forked from one that computes with others",
              {{"backend", "mpi"}, {"reason", "forked"}});
}

void Team::require_usable() const {
  require_here();
  if (left_[rank()])
    throw Error(ErrorCode::backend_unavailable, "this process has taken its leave of the others",
                {{"backend", "mpi"}, {"reason", "ended"}});
  if (within_) fail(rank(), "busy");
}

void Team::begin_call() {
  require_usable();
  turn_ = (turn_ / turns_of_call + 1) * turns_of_call;
  all_know_ = false;
}

void Team::begin(Operation what, index_t of) {
  ++turn_;
  what_ = std::int64_t(what) + 16 * of;
  inbox_.clear();
  ends_.clear();
  out_of_step_ = -1;
  exchanges_ = 0;
  within_ = true;
  all_know_ = false;
  std::vector<Later> later;
  later.swap(later_);
  for (Later& one : later) {
    if (one.trailer.turn == turn_) enter(one.from, one.trailer, std::move(one.message));
    else if (one.trailer.turn > turn_) later_.push_back(std::move(one));
  }
}

/// Checks first that all other processes exist, before f changes anything.
index_t Team::together(Operation what, index_t of, const std::function<index_t()>& f, std::atomic<bool>* begun) {
  require_usable();
  begin(what, of);
  End own;
  std::exception_ptr other;
  try {
    progress();
    for (const int p : others())
      if (transport_.gone(p)) fail(p, "gone");
    own.pivot = f();
  } catch (const LeftOff&) {
    own.state = End::State::left_off;
  } catch (const Error& error) {
    own.error = error;
  } catch (const std::bad_alloc&) {
    own.error.emplace(ErrorCode::out_of_memory, "process " + std::to_string(rank()) + " is out of memory");
  } catch (...) {
    other = std::current_exception();
    try {
      fail(rank(), "stopped");
    } catch (const Error& error) {
      own.error = error;
    }
  }
  if (own.error) own.state = End::State::failed;
  own.begun = begun && *begun;
  struct Learnt {  // also if end() throws
    const std::map<int, End>& ends;
    int processes;
    std::atomic<bool>* begun;
    ~Learnt() {
      if (!begun) return;
      bool any = int(ends.size()) < processes;
      for (const auto& [process, end] : ends) any = any || end.begun;
      *begun = any;
    }
  } const learnt{ends_, size(), begun};
  try {
    const index_t pivot = end(own);
    within_ = false;
    all_know_ = pivot >= 0;
    return pivot;
  } catch (const Error& error) {
    within_ = false;
    all_know_ = true;
    is_missing(error);
    if (other) std::rethrow_exception(other);
    throw;
  }
}

/// Returns whether the error says that a process is missing, so that no process needs to wait for the others.
bool Team::is_missing(const Error& error) {
  if (error.code() != ErrorCode::process_failed) return false;
  for (const auto& [name, value] : error.fields()) {
    if (name != "reason") continue;
    const std::string reason = std::get<std::string>(value);
    lost_ = lost_ || reason == "gone" || reason == "silent";
    return reason == "gone" || reason == "silent" || reason == "left";
  }
  return false;
}

index_t Team::end(const End& own) {
  const Bytes told = packed(own);
  tell_all(Kind::end, told.data(), told.size());
  ends_[rank()] = own;
  if (own.error && is_missing(*own.error)) throw *own.error;
  const Clock since;
  for (int idle = 0; int(ends_.size()) < size(); ++idle) {
    progress();
    for (const auto& [process, end] : ends_)
      if (end.error && is_missing(*end.error)) throw *end.error;
    for (const int p : others())
      if (!ends_.count(p)) expect(p, since);
    pause(idle);
  }
  throw_first();
  check_step();
  index_t pivot = -1;
  for (const auto& [process, end] : ends_) pivot = std::max(pivot, end.pivot);
  return pivot;
}

void Team::throw_first() const {
  for (const auto& [process, end] : ends_) {
    if (!end.error) continue;
    Error::Fields fields = end.error->fields();
    if (end.error->code() != ErrorCode::process_failed) fields.emplace_back("process", double(process));
    throw Error(end.error->code(), end.error->what(), fields);
  }
}

void Team::wait_for_refusal() {
  const Clock since;
  bool waits = true;
  for (index_t idle = 0; waits; ++idle) {
    pause(idle);
    progress();
    waits = false;
    for (const int p : others()) {
      if (ends_.count(p) || reached_[p] > turn_) continue;
      waits = true;
      expect(p, since);
    }
  }
}

void Team::refuse(const Error& why) {
  if (within_ || all_know_ || left_[rank()] || !is_here()) return;
  begin(Operation::refuse, 0);
  End own;
  own.state = End::State::failed;
  own.error = why;
  ends_[rank()] = own;
  try {
    const Bytes told = packed(own);
    tell_all(Kind::end, told.data(), told.size());
    wait_for_refusal();
  } catch (const Error& error) {
    is_missing(error);
  } catch (const std::bad_alloc&) {  // the others find this process silent, or out of step
  }
  within_ = false;
  all_know_ = true;
  throw_first();
}

void Team::expect(int process, const Clock& since) {
  const double now = clock_.seconds(), began = now - since.seconds();
  if (left_[process]) fail(process, "left");
  if (now - std::max(heard_[process], began) > limit_) fail(process, "silent");
  if (now - began > look_for && transport_.gone(process)) fail(process, "gone");
  if (now - told_ > notice()) tell_all(Kind::alive, nullptr, 0);
}

/// Throws if a process is out of step. Is called before a message is read, as the message may belong to another
/// operation, and before an operation ends with success.
void Team::check_step() const {
  if (out_of_step_ >= 0) fail(out_of_step_, "out_of_step");
}

void Team::exchange_messages() {
  progress();
  if (clock_.seconds() - told_ > notice()) tell_all(Kind::alive, nullptr, 0);
}

void Team::tend() noexcept {
  try {
    exchange_messages();
  } catch (...) {  // the next look() fails, too
  }
}

void Team::look() {
  exchange_messages();
  for (const auto& [process, end] : ends_)
    if (end.ends_all()) throw LeftOff();
  check_step();
  watch_();
}

void Team::wait(int from, index_t index) {
  const Clock since;
  for (int idle = 0; !arrived(from, index); ++idle) {
    look();
    if (idle % 64 == 63) expect(from, since);
    if (!arrived(from, index)) pause(idle);
  }
}

Bytes Team::take(int from, index_t index) {
  wait(from, index);
  check_step();
  const auto found = inbox_.find({from, index});
  Bytes message = std::move(found->second);
  inbox_.erase(found);
  return message;
}

bool Team::leave() {
  left_[rank()] = true;
  tell_all(Kind::leave, nullptr, 0);
  for (int idle = 0; !lost_; ++idle) {
    progress();
    bool all = true;
    for (const int p : others()) {
      all = all && left_[p];
      if (idle % 64 == 63 && !left_[p] && transport_.gone(p)) return false;
    }
    if (all) return true;
    pause(idle);
  }
  return false;
}

}  // namespace gpucholmod::mpi
