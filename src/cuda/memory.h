#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <string>

#include "base/error.h"
#include "base/types.h"

/// Owners of CUDA's resources, each of which gives its resource back in its destructor.
namespace gpucholmod::cuda {

/// Throws cuda_failure unless `error` is cudaSuccess; `what` names the operation that failed.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorCode::cuda_failure,
              std::string("CUDA failed to ") + what + ": " + cudaGetErrorString(error),
              {{"cuda_error", std::string(cudaGetErrorName(error))}, {"operation", std::string(what)}});
}

/// Returns an out_of_memory error for the current `device`, which tells the `bytes` wanted and the bytes that are free.
inline Error out_of_device_memory(const std::string& device, double bytes) {
  cudaGetLastError();
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return out_of_memory(device + " is out of memory", bytes, double(free));
}

/// Holds `count` objects of T in page-locked host memory.
template <class T>
class PinnedBuffer : NotCopied {
 public:
  explicit PinnedBuffer(std::size_t count) : count_(count) {
    const cudaError_t error = cudaMallocHost(reinterpret_cast<void**>(&data_), sizeof(T) * count);
    if (error == cudaSuccess) return;
    if (error != cudaErrorMemoryAllocation) check(error, "allocate page-locked memory");
    cudaGetLastError();
    const double needed = double(sizeof(T)) * double(count);
    throw Error(ErrorCode::out_of_memory,
                "the host has no memory left that can be page-locked: " + text_of_bytes(needed) + " needed",
                {{"needed", needed}});
  }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  T* data() const { return data_; }
  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// Page-locks memory that somebody else owns, if the system allows it; transfers work either way.
class HostRegistration : NotCopied {
 public:
  HostRegistration(void* data, std::size_t bytes) : data_(data) {
    locked_ = cudaHostRegister(data, bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!locked_) cudaGetLastError();
  }
  ~HostRegistration() {
    if (locked_) cudaHostUnregister(data_);
  }
  bool locked() const { return locked_; }

 private:
  void* data_;
  bool locked_;
};

class Stream : NotCopied {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void wait(cudaEvent_t event) { check(cudaStreamWaitEvent(stream_, event, 0), "order two streams"); }
  void synchronize() { check(cudaStreamSynchronize(stream_), "finish the work of a stream"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A CUDA event, which marks a point in the work of a stream. A timed event records when the device reaches the point.
template <bool timed>
class Point : NotCopied {
 public:
  Point() {
    check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming), "create an event");
  }
  ~Point() { cudaEventDestroy(event_); }
  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "record an event"); }
  void synchronize() { check(cudaEventSynchronize(event_), "wait for an event"); }
  /// Returns whether the device has passed the point.
  bool passed() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state == cudaErrorNotReady) return false;
    check(state, "ask for an event");
    return true;
  }
  /// Returns the seconds between two points, which both must be timed and must have been passed.
  double seconds_since(const Point& earlier) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, earlier.event_, event_), "read the time");
    return ms / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};
using Event = Point<false>;
using Timer = Point<true>;

/// Makes started() true from now on (cuda/backend.h).
void note_start();

/// Locks what a process keeps for its GPUs, for one thread at a time. A thread may hold several of these locks.
class OneThread : NotCopied {
 public:
  OneThread() : lock_(mutex()) {}

 private:
  /// Returns the only mutex, which is never destroyed, as factors may be destroyed later.
  static std::recursive_mutex& mutex() {
    static auto& only = *new std::recursive_mutex;
    return only;
  }

  std::lock_guard<std::recursive_mutex> lock_;
};

/// Makes `device` current, and in the destructor the device before; other threads wait meanwhile. Work on a device
/// begins with a CurrentDevice.
class CurrentDevice : NotCopied {
 public:
  explicit CurrentDevice(int device) {
    note_start();
    check(cudaGetDevice(&before_), "ask for the current device");
    check(cudaSetDevice(device), "select the device");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }

 private:
  OneThread one_thread_;
  int before_ = 0;
};

}  // namespace gpucholmod::cuda
