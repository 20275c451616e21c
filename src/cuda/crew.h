#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "cuda/memory.h"

namespace gpucholmod::cuda {

/// The GPUs that a factor lies on, its owners. The first leads: it has the stream that all work is ordered by. Each of the others has a
/// stream, and memory for what a pass brings there. For tests a GPU may be there several times, with its part of the blocks of threads each time.
class Crew : NotCopied {
 public:
  /// The first is current.
  explicit Crew(const std::vector<int>& devices) : devices_(devices) {
    for (std::size_t i = 1; i < devices.size(); ++i) {
      if (devices[i] != devices[0]) open(devices[i]);
      const CurrentDevice current(devices[i]);
      others_.push_back(std::make_unique<Other>());
    }
    if (!others_.empty()) check(cudaMalloc(reinterpret_cast<void**>(&memories_), sizeof(double*) * others_.size()), "allocate device memory");
  }
  ~Crew() {
    cudaFree(memories_);
    for (int owner = 1; owner < owners(); ++owner) {
      const CurrentDevice current(device(owner));
      cudaFree(others_[owner - 1]->memory);
    }
  }

  int owners() const { return int(devices_.size()); }
  int device(int owner) const { return devices_[owner]; }
  /// How many launches share a GPU at most.
  int side_by_side() const {
    std::ptrdiff_t most = 1;
    for (const int device : devices_) most = std::max(most, std::count(devices_.begin(), devices_.end(), device));
    return int(most);
  }

  /// At least so many bytes on each owner but the first, which is current, for as long as there is no larger call. Throws out_of_memory.
  void reserve(std::size_t bytes) {
    bool same = true;
    for (int owner = 1; owner < owners(); ++owner) {
      Other& other = *others_[owner - 1];
      if (other.bytes >= bytes) continue;
      const CurrentDevice current(device(owner));
      other.stream.synchronize();
      cudaFree(other.memory);
      other.memory = nullptr;
      other.bytes = 0;
      const cudaError_t error = cudaMalloc(&other.memory, bytes);
      if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        std::size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        throw out_of_memory("GPU " + std::to_string(device(owner)) + " is out of memory", double(bytes), double(free));
      }
      check(error, "allocate device memory");
      other.bytes = bytes;
      same = false;
    }
    if (same) return;
    std::vector<void*> memories;
    for (const auto& other : others_) memories.push_back(other->memory);
    check(cudaMemcpy(memories_, memories.data(), sizeof(void*) * memories.size(), cudaMemcpyHostToDevice), "send addresses");
  }
  void* memory(int owner) const { return others_[owner - 1]->memory; }
  /// That of all owners but the first, a list in this one's memory.
  double* const* memories() const { return memories_; }

  /// f(owner, stream) on each owner but the first, which is current then, behind what is queued in `stream`, the first owner's.
  template <class F>
  void each_other(cudaStream_t stream, F&& f) {
    ready_.record(stream);
    for (int owner = 1; owner < owners(); ++owner) {
      Other& other = *others_[owner - 1];
      const CurrentDevice current(device(owner));
      other.stream.wait(ready_);
      f(owner, static_cast<cudaStream_t>(other.stream));
      other.done.record(other.stream);
    }
  }
  /// What is queued in `stream` from now on waits for them.
  void join(cudaStream_t stream) const {
    for (const auto& other : others_) check(cudaStreamWaitEvent(stream, other->done, 0), "order two streams");
  }

 private:
  /// The current device has access to the memory of `peer` from now on.
  static void open(int peer) {
    const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
    else check(error, "give a GPU access to another's memory");
  }

  struct Other {
    Stream stream;
    Event done;
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<int> devices_;
  std::vector<std::unique_ptr<Other>> others_;
  double** memories_ = nullptr;
  Event ready_;
};

}  // namespace gpucholmod::cuda
