#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.h"

namespace gpucholmod::paper {
struct Shape;
}
namespace gpucholmod::stream {
class Plan;
template <class T>
class Device;
}  // namespace gpucholmod::stream

/// The CUDA backend as the rest of the core sees it. src/cuda/ implements it; src/cuda_absent/ has the same symbols for
/// a build without nvcc, so that no caller needs to know which of the two was linked.
namespace gpucholmod::cuda {

/// The kinds of kernels that a build has for a GPU, the slowest first. The kind depends on the compiled code that the
/// driver loads for the GPU, and on the GPU's shared memory.
enum class Kernels {
  none,          ///< no kernels: the GPU cannot be used
  steps,         ///< Householder steps alone, a launch for each row block: method "stepwise"
  plain,         ///< segments in plain arithmetic, for GPUs with few units for double precision
  tensor_cores,  ///< segments, with products by FP64 tensor cores
  clusters       ///< segments, with FP64 tensor cores and clusters of thread blocks that exchange data
};

struct Device {
  int id = 0;
  std::string name;
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  double memory_total = 0;     ///< bytes
  double memory_free = -1;     ///< bytes; -1: not asked for, or not known
  bool usable = false;         ///< True if this build has code for this GPU
  Kernels kernels = Kernels::none;
};

struct Status {
  bool built = false;
  bool usable = false;
  /// The reason why no GPU is usable: "not_built", "no_driver", "driver_too_old", "no_device", "device_too_old",
  /// "forked", "failed"; empty if one is usable.
  std::string reason;
  std::string message;        ///< the reason as a sentence
  std::string configured;     ///< the decision of configure, and its reason
  std::string architectures;  ///< the targets compiled for
  int toolkit_version = 0;    ///< 13000 for 13.0; 0: not built
  int driver_version = 0;     ///< the CUDA version that the driver supports; 0: none
  int device = -1;            ///< id of the device that calls run on
  std::vector<Device> devices;
};

/// Returns true for the CUDA backend, false for its stand-in in src/cuda_absent/.
bool built();

/// Returns whether this process has begun to compute on a GPU, or was forked from a process that had.
bool started();

/// Returns the state of the backend and its GPUs. Never throws. If `with_memory` is true, also asks each GPU how much
/// memory is free, which starts a context on it (slow the first time).
Status status(bool with_memory);

/// Frees what is kept for later calls: page-locked memory, and memory of GPUs that holds no factor. Returns the bytes
/// of page-locked memory. Does nothing for GPUs that were used before this process was forked.
double release();

/// Runs the paper's method with its panels on the GPU; paper/drive.h describes R and V. Throws backend_unavailable,
/// out_of_memory, cuda_failure.
template <class T>
Work paper_panels(MatrixView<T> R, MatrixView<const T> V, Sign sign, double device_memory, const paper::Shape& shape,
                  const Poll& poll);

/// Returns the GPU's side of stream::run(), see stream/device.h. V (n x k) is in host memory, and scaled like the
/// factor. Throws backend_unavailable, out_of_memory, cuda_failure.
template <class T>
std::unique_ptr<stream::Device<T>> stream_device(const stream::Plan& plan, const double* V, const Task& task,
                                                 Timeline* timeline);

}  // namespace gpucholmod::cuda
