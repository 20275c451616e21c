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

/// What the core expects of the CUDA backend. src/cuda/ implements it; src/cuda_absent/ has the same symbols for a
/// build without nvcc, so that no caller needs to know which of them was linked.
namespace gpucholmod::cuda {

/// What a build has for a GPU, the slowest first; which goes by the code that its driver takes.
enum class Kernels {
  none,          ///< it cannot be used
  steps,         ///< Householder steps alone, a launch for each row block: method "stepwise"
  plain,         ///< segments, in plain arithmetic: few units for double precision
  tensor_cores,  ///< segments, products by FP64 tensor cores
  clusters       ///< likewise, and what blocks of threads tell each other goes by clusters
};

struct Device {
  int id = 0;
  std::string name;
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  double memory_total = 0;     ///< bytes
  double memory_free = -1;     ///< bytes; -1 where it was not asked for
  bool usable = false;         ///< this build has code for it
  Kernels kernels = Kernels::none;
};

struct Status {
  bool built = false;
  bool usable = false;
  /// Why it is not usable: "not_built", "no_driver", "driver_too_old", "no_device", "device_too_old", "forked",
  /// "failed"; empty when it is.
  std::string reason;
  std::string message;        ///< the same as a sentence
  std::string configured;     ///< what configure decided, and why
  std::string architectures;  ///< the targets compiled for
  int toolkit_version = 0;    ///< 13000 for 13.0; 0: not built
  int driver_version = 0;     ///< the CUDA version that the driver supports; 0: none
  int device = -1;            ///< id of the device that calls run on
  std::vector<Device> devices;
};

/// Whether this is the CUDA backend, and not its stand-in.
bool built();

/// Whether this process has begun to compute on a GPU, or has been forked from one that had.
bool started();

/// Never throws. `with_memory` also asks how much memory is free, which starts a context on each device (slow once).
Status status(bool with_memory);

/// Gives back what is kept for calls to come: page-locked memory, and memory of GPUs that holds no factor. Returns
/// the bytes of page-locked memory. In a forked process nothing is done.
double release();

/// The paper's method with its panels on the GPU; see paper/drive.h for R and V.
/// Throws backend_unavailable, out_of_memory, cuda_failure.
template <class T>
Work paper_panels(MatrixView<T> R, MatrixView<const T> V, Sign sign, double device_memory, const paper::Shape& shape,
                  const Poll& poll);

/// The GPU's side of stream::run(): stream/device.h. V (n x k) is in host memory, and scaled as the factor is.
/// Throws backend_unavailable, out_of_memory, cuda_failure.
template <class T>
std::unique_ptr<stream::Device<T>> stream_device(const stream::Plan& plan, const double* V, const Task& task,
                                                 Timeline* timeline);

}  // namespace gpucholmod::cuda
