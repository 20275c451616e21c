#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "block_columns/segment.h"
#include "cuda/memory.h"

namespace gpucholmod::cuda {

/// The GPUs that hold a factor together, its device ranks. The first rank's stream orders all work. Each of the other
/// ranks has a stream, and memory for the data that a pass, or a substitution, sends to it. In tests one GPU may appear
/// several times: its thread blocks are then divided among the ranks.
class DeviceGroup : NotCopied {
 public:
  /// Gives the first device, which is current, access to the memory of the others, and creates their streams.
  explicit DeviceGroup(const std::vector<int>& devices) : devices_(devices) {
    for (std::size_t i = 1; i < devices.size(); ++i) {
      if (devices[i] != devices[0]) open(devices[i]);
      const CurrentDevice current(devices[i]);
      others_.push_back(std::make_unique<Other>());
    }
    if (!others_.empty())
      check(cudaMalloc(reinterpret_cast<void**>(&list_), sizeof(block_columns::OtherRank) * others_.size()),
            "allocate device memory");
  }
  ~DeviceGroup() {
    cudaFree(list_);
    for (int rank = 1; rank < ranks(); ++rank) {
      const CurrentDevice current(device(rank));
      cudaFree(others_[rank - 1]->has.memory);
      cudaFree(others_[rank - 1]->has.flags);
    }
  }

  int ranks() const { return int(devices_.size()); }
  int device(int rank) const { return devices_[rank]; }
  /// Returns the largest number of launches that share a GPU.
  int side_by_side() const {
    std::ptrdiff_t most = 1;
    for (const int device : devices_) most = std::max(most, std::count(devices_.begin(), devices_.end(), device));
    return int(most);
  }

  /// Allocates at least `bytes` bytes and `flags` flags on each rank but the first, which is current. New flags are
  /// zero. The memory stays until a larger call. Throws out_of_memory.
  void reserve(std::size_t bytes, int flags) {
    bool same = true;
    for (int rank = 1; rank < ranks(); ++rank) {
      Other& other = *others_[rank - 1];
      if (other.bytes >= bytes && other.flag_count >= flags) continue;
      same = false;
      const CurrentDevice current(device(rank));
      other.stream.synchronize();
      if (other.bytes < bytes) allocate(rank, other.has.memory, other.bytes, bytes, bytes);
      if (other.flag_count >= flags) continue;
      allocate(rank, other.has.flags, other.flag_count, flags, sizeof(int) * std::size_t(flags));
      check(cudaMemsetAsync(other.has.flags, 0, sizeof(int) * std::size_t(flags), other.stream),
            "clear the flags of a rank");
      other.stream.synchronize();
    }
    if (same) return;
    std::vector<block_columns::OtherRank> list;
    for (const auto& other : others_) list.push_back(other->has);
    check(cudaMemcpy(list_, list.data(), sizeof(list[0]) * list.size(), cudaMemcpyHostToDevice), "send addresses");
  }
  const block_columns::OtherRank& of(int rank) const { return others_[rank - 1]->has; }
  /// Returns the memory of all ranks but the first: a list in the first rank's memory.
  const block_columns::OtherRank* others() const { return list_; }

  /// Calls f(rank, stream of the rank) for each rank but the first, with the rank's device current. The rank's stream
  /// first waits for what is queued in `stream`, the first rank's.
  template <class F>
  void each_other(cudaStream_t stream, F&& f) {
    ready_.record(stream);
    for (int rank = 1; rank < ranks(); ++rank) {
      Other& other = *others_[rank - 1];
      const CurrentDevice current(device(rank));
      other.stream.wait(ready_);
      f(rank, static_cast<cudaStream_t>(other.stream));
      other.done.record(other.stream);
    }
  }
  /// Makes work that is queued in `stream` from now on wait for the work of each_other().
  void join(cudaStream_t stream) const {
    for (const auto& other : others_) check(cudaStreamWaitEvent(stream, other->done, 0), "order two streams");
  }

 private:
  /// Gives the current device access to the memory of `peer`.
  static void open(int peer) {
    const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
    else check(error, "give a GPU access to another's memory");
  }

  /// Replaces `data` by `bytes` bytes of memory on the current device, that of `rank`; `count` becomes `wanted`.
  template <class T, class Count>
  void allocate(int rank, T*& data, Count& count, Count wanted, std::size_t bytes) const {
    cudaFree(data);
    data = nullptr;
    count = 0;
    const cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&data), bytes);
    if (error == cudaErrorMemoryAllocation)
      throw out_of_device_memory("GPU " + std::to_string(device(rank)), double(bytes));
    check(error, "allocate device memory");
    count = wanted;
  }

  struct Other {
    Stream stream;
    Event done;
    block_columns::OtherRank has{};
    std::size_t bytes = 0;
    int flag_count = 0;
  };
  std::vector<int> devices_;
  std::vector<std::unique_ptr<Other>> others_;
  block_columns::OtherRank* list_ = nullptr;
  Event ready_;
};

}  // namespace gpucholmod::cuda
