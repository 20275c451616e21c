#pragma once

#include <cstddef>
#include <cstdlib>
#include <map>
#include <new>

#include "base/tuning.h"
#include "cuda/context.h"
#include "mpi/transport.h"

namespace gpucholmod::mpi_cuda {

/// Provides ordinary memory that is page-locked for a device, if the system allows page-locking, so that messages need
/// no other copy. Memory that is given back is kept for later messages.
class LockedMessages : public mpi::MessageMemory {
 public:
  explicit LockedMessages(int device) : device_(device) {}

  void* take(std::size_t bytes) override {
    const std::size_t size = rounded(bytes);
    const cuda::OneThread one_thread;
    if (const auto found = free_.find(size); found != free_.end()) {
      void* const data = found->second;
      free_.erase(found);
      kept_ -= size;
      return data;
    }
    void* const data = std::aligned_alloc(least, size);
    if (!data) throw std::bad_alloc();
    const cuda::CurrentDevice current(device_);
    if (cudaHostRegister(data, size, cudaHostRegisterPortable) != cudaSuccess) cudaGetLastError();
    return data;
  }
  void give_back(void* data, std::size_t bytes) override {
    const std::size_t size = rounded(bytes);
    const cuda::OneThread one_thread;
    if (kept_ + size <= tuning::messages_kept) {
      free_.emplace(size, data);
      kept_ += size;
      return;
    }
    if (cudaHostUnregister(data) != cudaSuccess) cudaGetLastError();
    std::free(data);
  }

 private:
  static constexpr std::size_t least = 64 << 10;
  static std::size_t rounded(std::size_t bytes) {
    std::size_t size = least;
    while (size < bytes) size *= 2;
    return size;
  }

  int device_;
  std::multimap<std::size_t, void*> free_;
  std::size_t kept_ = 0;
};

/// Returns the message memory of a device, which exists until the process ends, as messages may exist as long.
inline LockedMessages& messages_of(int device) {
  static auto& all = *new std::map<int, LockedMessages>;
  const cuda::OneThread one_thread;
  return all.try_emplace(device, device).first->second;
}

}  // namespace gpucholmod::mpi_cuda
