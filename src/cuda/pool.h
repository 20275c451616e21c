#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "cuda/memory.h"

namespace gpucholmod::cuda {

/// A source of memory for PoolBuffer.
class Memory : NotCopied {
 public:
  virtual ~Memory() = default;
  /// Allocates `bytes` on the current device. Throws out_of_memory with the bytes asked for and the bytes that are
  /// free. If there are several GPUs, each piece of `piece` bytes is on one of them.
  virtual void* allocate(std::size_t bytes, std::size_t piece) = 0;
  virtual void free(void* data, std::size_t bytes) noexcept = 0;
  /// Gives back unused memory beyond `bytes`. A Pool counts memory in use among these bytes.
  virtual void trim(std::size_t bytes) noexcept = 0;
};

/// A pool of one device's memory, which is allocated and freed in the order of one stream. A loop of modifications
/// allocates and frees gigabytes each time, so freed memory is kept for the next modification: at most twice as much as
/// is in use, which a modification in several passes takes, and `spare` bytes; at least `kept` bytes, and no more than
/// these once nothing is in use. Uses plain cudaMalloc if the device has no memory pools.
class Pool : public Memory {
 public:
  /// Creates the pool while `device` is current. The pool stays until the process ends.
  Pool(int device, cudaStream_t stream, std::size_t kept = 0) : device_(device), stream_(stream), kept_(kept) {
    int supported = 0;
    check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device), "ask about memory pools");
    if (!supported) return;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    check(cudaMemPoolCreate(&pool_, &properties), "create a memory pool");
    std::uint64_t keep_all = UINT64_MAX;  // between calls of trim()
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all), "set up a memory pool");
  }

  void* allocate(std::size_t bytes, std::size_t) override {
    void* data = nullptr;
    cudaError_t error = try_to_allocate(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      trim(0);
      if (fallback_) fallback_->trim(0);
      error = try_to_allocate(&data, bytes);
    }
    if (error == cudaErrorMemoryAllocation) throw out_of_device_memory("the GPU", double(bytes));
    check(error, "allocate device memory");
    in_use_ += bytes;
    return data;
  }

  void free(void* data, std::size_t bytes) noexcept override {
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(device_);
    if (pool_) cudaFreeAsync(data, stream_);
    else cudaFree(data);
    in_use_ -= bytes;
    const std::size_t most = std::max(kept_, in_use_ == 0 ? 0 : 3 * in_use_ + spare);
    std::uint64_t held = 0;
    if (trims_ && pool_ &&
        cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &held) == cudaSuccess && held > most)
      trim(most);
    cudaSetDevice(before);
    cudaGetLastError();
  }

  /// Sets whether free() gives memory back at once, which waits for the stream, or leaves that to a later free().
  void set_trims(bool trims) { trims_ = trims; }

  /// Sets another memory, which gives back what it keeps when this pool finds no memory.
  void fall_back_on(Memory& other) { fallback_ = &other; }

  /// Lets other devices, which have access to this device's memory, use the pool's memory too.
  void open_to(const std::vector<int>& devices) {
    for (const int device : devices) {
      if (device == device_) continue;
      cudaMemAccessDesc access = {};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = device;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      check(cudaMemPoolSetAccess(pool_, &access, 1), "give a GPU access to a memory pool");
    }
  }

  void trim(std::size_t bytes) noexcept override {
    if (!pool_) return;
    cudaStreamSynchronize(stream_);  // CUDA gives memory back only once the stream has freed it
    cudaMemPoolTrimTo(pool_, bytes);
  }

 private:
  static constexpr std::size_t spare = std::size_t(64) << 20;

  cudaError_t try_to_allocate(void** data, std::size_t bytes) {
    return pool_ ? cudaMallocFromPoolAsync(data, bytes, pool_, stream_) : cudaMalloc(data, bytes);
  }

  int device_;
  cudaStream_t stream_;
  cudaMemPool_t pool_ = nullptr;
  std::size_t kept_, in_use_ = 0;
  bool trims_ = true;
  Memory* fallback_ = nullptr;
};

/// Holds `count` objects of T from a pool; no memory, and null, if count is 0. Making one throws out_of_memory.
template <class T>
class PoolBuffer : NotCopied {
 public:
  PoolBuffer(Memory& pool, index_t count, std::size_t piece = 0) : pool_(&pool), bytes_(bytes_of(count, 1, sizeof(T))) {
    if (bytes_ > 0) data_ = static_cast<T*>(pool.allocate(bytes_, piece));
  }
  PoolBuffer(PoolBuffer&& other) noexcept
      : pool_(other.pool_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  ~PoolBuffer() {
    if (!data_) return;
    const OneThread one_thread;
    pool_->free(data_, bytes_);
  }

  /// Swaps the memory of two buffers from the same pool.
  void swap(PoolBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  /// Forgets the memory without freeing it.
  void abandon() noexcept { data_ = nullptr; }
  T* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Memory* pool_;
  std::size_t bytes_;
  T* data_ = nullptr;
};

}  // namespace gpucholmod::cuda
