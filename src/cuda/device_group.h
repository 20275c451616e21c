#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "block_columns/segment.h"
#include "cuda/memory.h"

namespace gpucholmod::cuda {

/// The GPUs that a factor lies on, its device ranks. The first leads: it has the stream that all work is ordered by.
/// Each of the others has a stream, and memory for the data that a pass, or a substitution, sends there. In tests one
/// GPU may appear several times: its blocks of threads are then divided.
class DeviceGroup : NotCopied {
 public:
  /// The first is current.
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
  /// How many launches share a GPU at most.
  int side_by_side() const {
    std::ptrdiff_t most = 1;
    for (const int device : devices_) most = std::max(most, std::count(devices_.begin(), devices_.end(), device));
    return int(most);
  }

  /// At least so many bytes on each rank but the first, which is current, and so many flags, zero where they are new,
  /// for as long as there is no larger call. Throws out_of_memory.
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
  /// That of all ranks but the first, a list in this one's memory.
  const block_columns::OtherRank* others() const { return list_; }

  /// f(rank, stream) on each rank but the first, which is current then, behind what is queued in `stream`, the first
  /// rank's.
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

  /// `count` becomes `wanted`; on the current device.
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
