#pragma once

#include <vector>

#include "cuda/context.h"

namespace gpucholmod::mpi_cuda {

/// Returns the number of the GPU that process `local_rank` of a machine takes: the usable GPU of that number, counted
/// from the first again if there are too few. Throws backend_unavailable.
inline int own_gpu(int local_rank) {
  const cuda::Status now = cuda::status(false);
  if (!now.usable) cuda::unavailable(now);
  std::vector<int> usable;
  for (const cuda::Device& device : now.devices)
    if (device.usable) usable.push_back(device.id);
  return usable[std::size_t(local_rank) % usable.size()];
}

}  // namespace gpucholmod::mpi_cuda
