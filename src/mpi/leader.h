#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "base/held_factor.h"

/// The interface of process 0 to the GPUs of all processes. src/mpi_cuda/leader.cu implements it; in tests the CPU
/// does.
namespace gpucholmod::mpi {

/// Describes the GPU of a process.
struct OwnGpu {
  std::string id;    ///< the same in every process that sees this GPU, and different for any other GPU: its UUID
  int device = -1;   ///< its number in this process
  std::string name;
};

/// GPUs that one process can use together.
class GpusTogether {
 public:
  virtual ~GpusTogether() = default;
  /// Holds R (n x n, upper, or lower if uplo says so) on the GPUs. Throws what cuda::upload() throws.
  virtual std::unique_ptr<HeldFactor> hold(const double* R, index_t n, Uplo uplo, Precision precision) const = 0;
  /// Holds the upper factor R, which is read from its first column to its last, on the GPUs.
  virtual std::unique_ptr<HeldFactor> hold(const Source<double>& R, index_t n, Precision precision,
                                           const Poll& poll) const = 0;
};

/// Finds the GPUs of the processes.
struct Leader {
  /// Returns the GPU of this process. Throws backend_unavailable.
  std::function<OwnGpu()> own;
  /// Returns the GPUs with these ids, or null if this process does not see all of them, or cannot use them together.
  std::function<std::unique_ptr<GpusTogether>(const std::vector<std::string>& ids)> open;
};

}  // namespace gpucholmod::mpi
