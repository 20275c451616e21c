#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tuning.h"
#include "cuda/backend.h"
#include "cuda/device_group.h"
#include "cuda/libraries.h"
#include "cuda/pool.h"
#include "cuda/spread.h"
#include "cuda/stopwatch.h"

namespace gpucholmod::cuda {

[[noreturn]] inline void unavailable(const Status& why) {
  throw Error(ErrorCode::backend_unavailable, why.message, {{"backend", "cuda"}, {"reason", why.reason}});
}

/// The CUDA events that are kept, as creating one takes as long as a small modification.
struct Marks {
  Timer begin, end;
  Event done;
  Event ready, came;  ///< allocation of memory for the next columns of V; arrival of these columns
};

/// Holds what this process keeps for a GPU that has held a factor: the stream of all work on that GPU, pools of its
/// memory, and handles of libraries. For one thread at a time (OneThread).
class Context {
 public:
  /// Returns the context of the device with this id, or, for -1, of the first that can be used. The context is made at
  /// first use, and stays until the process ends. Throws backend_unavailable, and bad_argument if there is no such
  /// device.
  static Context& of(int id) {
    const Status now = status(false);
    if (!now.usable) unavailable(now);
    return made_for({find(now, id == -1 ? now.device : id, "device")});
  }

  /// Returns the context for factors on several GPUs of one kind. The first GPU has the stream, and all memory but that
  /// of the factors themselves. Throws the exceptions above, and those of require_peers().
  static Context& of(const std::vector<int>& ids) {
    if (ids.size() == 1) return of(ids[0]);
    const Status now = status(false);
    if (!now.usable) unavailable(now);
    std::vector<Device> devices;
    for (const int id : ids) {
      devices.push_back(find(now, id, "devices"));
      if (devices[0].compute_capability != devices.back().compute_capability)
        throw Error(
            ErrorCode::bad_argument,
            "GPUs that share a factor must be of one compute capability; GPU " + std::to_string(id) + " has another",
            {{"argument", "devices"}, {"value", double(id)}});
    }
    require_peers(ids);
    return made_for(devices);
  }

  /// Returns all contexts, by the ids of their devices.
  static std::map<std::vector<int>, std::unique_ptr<Context>>& all() {
    static auto& contexts = *new std::map<std::vector<int>, std::unique_ptr<Context>>;
    return contexts;
  }

  /// Returns true in a process forked from the one that made the context: there CUDA cannot be used.
  bool forked() const { return owner_ != getpid(); }
  int device() const { return device_; }
  const std::string& device_name() const { return name_; }
  cudaStream_t stream() const { return stream_; }
  /// Returns the stream for copies beside the work in stream().
  Stream& copies() { return copies_; }
  Pool& pool() { return pool_; }
  /// Returns the memory that factors are allocated from.
  Memory& factors() {
    if (spread_) return *spread_;
    return pool_;
  }
  /// Returns the memory of factors on several devices; null for one device.
  const SpreadMemory* spread() const { return spread_ ? &*spread_ : nullptr; }
  DeviceGroup* device_group() { return device_group_ ? &*device_group_ : nullptr; }
  const std::vector<int>& devices() const { return devices_; }
  Marks& marks() { return marks_; }
  /// Returns the number of turns that the last pass by segments has taken (block_columns/turns.h). The next pass
  /// usually takes as many.
  int& turns() { return turns_; }
  /// Returns the pool for memory that a call needs while it runs.
  Pool& workspace() { return workspace_; }
  /// Returns the pool for memory that a pass needs, and that the other devices may read.
  Pool& passes() { return spread_ ? pool_ : workspace_; }
  /// Returns page-locked memory of at least `bytes` bytes, the same in every call, until release() or a call for more.
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

  /// Returns a page-locked word of a few bytes, to which a call fetches the outcome of its work.
  template <class Word = int>
  Word& word() {
    static_assert(sizeof(Word) <= word_bytes);
    if (!word_) word_.emplace(word_bytes);
    return *reinterpret_cast<Word*>(word_->data());
  }

  // Library handles, in a Session only, as they are bound to the current device.
  const Cublas& cublas() { return opened(cublas_); }
  const Cusolver& cusolver() { return opened(cusolver_); }

 private:
  explicit Context(const std::vector<int>& devices, const std::string& name)
      : devices_(devices), device_(devices[0]), name_(name),
        pool_(device_, stream_, devices.size() > 1 ? tuning::stream_kept : 0),  // several: factors are in spread_
        workspace_(device_, stream_, tuning::stream_kept) {
    pool_.fall_back_on(workspace_);
    workspace_.fall_back_on(pool_);
    if (devices.size() == 1) return;
    pool_.open_to(devices);
    spread_.emplace(devices, stream_);
    device_group_.emplace(devices);
    pool_.fall_back_on(*spread_);
    spread_->fall_back_on(pool_);
  }

  static Device find(const Status& status, int id, const char* argument) {
    for (const Device& device : status.devices)
      if (device.usable && device.id == id) return device;
    throw Error(ErrorCode::bad_argument, "there is no GPU " + std::to_string(id) + " that can be used",
                {{"argument", argument}, {"value", double(id)}});
  }
  static Context& made_for(const std::vector<Device>& devices) {
    std::vector<int> ids;
    for (const Device& device : devices) ids.push_back(device.id);
    const CurrentDevice current(ids[0]);
    if (const auto found = all().find(ids); found != all().end()) return *found->second;
    std::unique_ptr<Context> made(new Context(ids, devices[0].name));
    return *(all()[ids] = std::move(made));
  }

  template <class Library>
  const Library& opened(std::optional<Library>& library) {
    if (!library) {
      pool_.trim(0);  // the library allocates memory of its own
      workspace_.trim(0);
      library.emplace(stream_);
    }
    return *library;
  }

  pid_t owner_ = getpid();
  std::vector<int> devices_;
  int device_;
  std::string name_;
  Stream stream_, copies_;
  Marks marks_;
  int turns_ = 1;
  Pool pool_, workspace_;
  std::optional<SpreadMemory> spread_;
  std::optional<DeviceGroup> device_group_;
  std::optional<PinnedBuffer<char>> staging_;
  static constexpr std::size_t word_bytes = 16;
  std::optional<PinnedBuffer<char>> word_;
  std::optional<Cublas> cublas_;
  std::optional<Cusolver> cusolver_;
};

/// A stretch of work on a device, which is current meanwhile. The destructor waits for the work in the stream. The
/// constructor throws backend_unavailable, reason "forked", if CUDA was used before this process was forked.
class Session : NotCopied {
 public:
  explicit Session(const Context& context) : current_(allowed(context)), stream_(context.stream()) {}
  ~Session() { cudaStreamSynchronize(stream_); }
  /// Waits for the work in the stream. Throws cuda_failure if the work failed.
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
