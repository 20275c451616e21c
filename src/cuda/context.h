#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/tuning.h"
#include "cuda/backend.h"
#include "cuda/libraries.h"
#include "cuda/pool.h"
#include "cuda/stopwatch.h"

namespace gpucholmod::cuda {

[[noreturn]] inline void unavailable(const Status& why) {
  throw Error(ErrorCode::backend_unavailable, why.message, {{"backend", "cuda"}, {"reason", why.reason}});
}

/// Points in the work of a stream, kept as making them takes as long as a small modification.
struct Marks {
  Timer begin, end;
  Event done;
};

/// What this process keeps for a GPU that has held a factor: a stream in which all work on it is done, a pool of its
/// memory, and handles of libraries. For one thread.
class Context {
 public:
  /// That of the device with this id, or for -1 of the first that can be used; made at first use, there until the
  /// process ends. Throws backend_unavailable, and bad_argument where there is no such device.
  static Context& of(int id) {
    const Status now = status(false);
    if (!now.usable) unavailable(now);
    for (const Device& device : now.devices) {
      if (!device.usable || device.id != (id == -1 ? now.device : id)) continue;
      const CurrentDevice current(device.id);
      std::unique_ptr<Context>& context = all()[device.id];
      if (!context) context.reset(new Context(device));
      return *context;
    }
    throw Error(ErrorCode::bad_argument, "there is no GPU " + std::to_string(id) + " that can be used",
                {{"argument", "device"}, {"value", double(id)}});
  }

  /// Those that have been made, by the id of their device.
  static std::map<int, std::unique_ptr<Context>>& all() {
    static auto& contexts = *new std::map<int, std::unique_ptr<Context>>;
    return contexts;
  }

  /// In a process forked from the one that made this, CUDA cannot be used.
  bool forked() const { return owner_ != getpid(); }
  int device() const { return device_; }
  const std::string& device_name() const { return name_; }
  cudaStream_t stream() const { return stream_; }
  Pool& pool() { return pool_; }
  Marks& marks() { return marks_; }
  /// How many turns the last pass by segments has taken (block_columns/turns.h): as a rule the next one takes as many.
  int& turns() { return turns_; }
  /// For what a call needs while it runs.
  Pool& workspace() { return workspace_; }
  /// Page-locked memory of at least so many bytes, the same at every call, until release().
  void* staging(std::size_t bytes) {
    if (!staging_ || staging_->count() < bytes) {
      release();
      staging_.emplace(bytes);
    }
    return staging_->data();
  }
  /// Gives the page-locked memory back if it is more than `most` bytes.
  void release(std::size_t most = 0) {
    if (staging_bytes() > most) staging_.reset();
  }
  std::size_t staging_bytes() const { return staging_ ? staging_->count() : 0; }

  // In a Session only, as they are bound to the current device.
  const Cublas& cublas() { return opened(cublas_); }
  const Cusolver& cusolver() { return opened(cusolver_); }

 private:
  explicit Context(const Device& device) : device_(device.id), name_(device.name), pool_(device.id, stream_),
        workspace_(device.id, stream_, tuning::stream_kept) {
    pool_.stand_beside(workspace_);
    workspace_.stand_beside(pool_);
  }

  template <class Library>
  const Library& opened(std::optional<Library>& library) {
    if (!library) {
      pool_.trim(0);  // it wants memory of its own
      workspace_.trim(0);
      library.emplace(stream_);
    }
    return *library;
  }

  pid_t owner_ = getpid();
  int device_;
  std::string name_;
  Stream stream_;
  Marks marks_;
  int turns_ = 1;
  Pool pool_, workspace_;
  std::optional<PinnedBuffer<char>> staging_;
  std::optional<Cublas> cublas_;
  std::optional<Cusolver> cusolver_;
};

/// A stretch of work on a device, which is current meanwhile; nothing is under way after it. Throws
/// backend_unavailable, reason "forked", where CUDA was used before this process was forked.
class Session : NotCopied {
 public:
  explicit Session(const Context& context) : current_(allowed(context)), stream_(context.stream()) {}
  ~Session() { cudaStreamSynchronize(stream_); }
  /// Waits; throws cuda_failure where the work failed.
  void finish() const { check(cudaStreamSynchronize(stream_), "finish the work on a factor"); }

 private:
  static int allowed(const Context& context) {
    if (context.forked()) unavailable(status(false));
    return context.device();
  }

  CurrentDevice current_;
  cudaStream_t stream_;
};

}  // namespace gpucholmod::cuda
