#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace gpucholmod::cuda {

/// Turns a CUDA error into the core's; `what` says what was being done.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorCode::cuda_failure,
              std::string("CUDA failed to ") + what + ": " + cudaGetErrorString(error),
              {{"cuda_error", std::string(cudaGetErrorName(error))}, {"operation", std::string(what)}});
}

}  // namespace gpucholmod::cuda
