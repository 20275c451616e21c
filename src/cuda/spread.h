#pragma once

#include <cuda.h>

#include <map>
#include <vector>

#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// Checks that these GPUs, given by their ids, can hold a factor together: each reads, writes and counts (by atomics)
/// in the memory of every other GPU. Throws backend_unavailable with reason "no_peer_access" and fields `device` and
/// `peer`, or "no_virtual_memory" and `device`.
void require_peers(const std::vector<int>& devices);

/// Provides memory of several GPUs at consecutive addresses, the same on all of them. The pieces are on the GPUs in
/// turn, as far as pages of 2 MB allow. So code that works on the memory of one GPU works on this memory too, and no
/// kernel knows where the memory lies.
///
/// Mapping takes long, so memory that is given back is kept for the next allocation of the same size: at most twice as
/// much as is in use, which is what a modification in several passes takes if the result before it has been freed. When
/// nothing is in use any more, the Memory of fall_back_on() gives back what it keeps.
class SpreadMemory : public Memory {
 public:
  /// Serves `devices`, the first of which is current. Work on memory that is given back has to be over before `stream`
  /// reaches the work that is queued afterwards.
  SpreadMemory(std::vector<int> devices, cudaStream_t stream);

  void* allocate(std::size_t bytes, std::size_t piece) override;
  void free(void* data, std::size_t bytes) noexcept override;
  void trim(std::size_t bytes) noexcept override;
  void fall_back_on(Memory& other) { fallback_ = &other; }

  /// Returns how many bytes of the memory at `data`, which must be in use, are on each GPU.
  const std::vector<double>& shares(const void* data) const { return in_use_.at(data).on; }

 private:
  struct Block {
    std::size_t bytes = 0, piece = 0;  ///< sizes as asked for
    std::size_t size = 0;              ///< bytes of its whole pages
    std::vector<double> on;            ///< bytes on each GPU
  };

  /// Maps memory for a block. Throws out_of_memory.
  void* map(Block& block) const;
  /// Throws out_of_memory if a GPU has less free memory than its share of `bytes`.
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
