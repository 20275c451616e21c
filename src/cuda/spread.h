#pragma once

#include <cuda.h>

#include <map>
#include <vector>

#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// Whether these GPUs, by their ids, can hold a factor together: each reads and writes the memory of every other, and
/// counts there. Throws backend_unavailable with reason "no_peer_access" and fields `device` and `peer`, or
/// "no_virtual_memory" and `device`.
void require_peers(const std::vector<int>& devices);

/// Memory of several GPUs at addresses that follow each other, the same on all of them: piece after piece in turn, as
/// far as pages, of 2 MB, allow. So what works on the memory of one works on it too, and no kernel knows where it lies.
///
/// To map it takes long, so memory that is given back is kept for the next that is as large: at most twice as much as
/// is in use, which is what a modification in several passes takes when the result before it has been freed. When
/// nothing is in use any more, what it falls back on gives back what it keeps.
class SpreadMemory : public Memory {
 public:
  /// The first of `devices` is current; work on the memory ends before the stream comes to what is queued there when it
  /// is given back.
  SpreadMemory(std::vector<int> devices, cudaStream_t stream);

  void* allocate(std::size_t bytes, std::size_t piece) override;
  void free(void* data, std::size_t bytes) noexcept override;
  void trim(std::size_t bytes) noexcept override;
  void fall_back_on(Memory& other) { fallback_ = &other; }

  /// Of what lies there, bytes on each of the GPUs.
  const std::vector<double>& shares(const void* data) const { return in_use_.at(data).on; }

 private:
  struct Block {
    std::size_t bytes = 0, piece = 0;  ///< as asked for
    std::size_t size = 0;              ///< of whole pages
    std::vector<double> on;            ///< bytes on each GPU
  };

  /// Both throw out_of_memory.
  void* map(Block& block) const;
  void require_free(const std::vector<double>& bytes) const;
  void unmap(void* data, std::size_t reserved, std::size_t mapped) const noexcept;
  static std::size_t sum(const std::map<const void*, Block>& blocks);

  std::vector<int> devices_;
  cudaStream_t stream_;
  std::size_t page_ = 0;
  std::map<const void*, Block> in_use_, kept_;
  Memory* fallback_ = nullptr;
};

}  // namespace gpucholmod::cuda
