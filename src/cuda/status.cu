#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>

#include "cuda/backend.h"
#include "cuda/kernels/block_columns.cuh"
#include "cuda/memory.h"
#include "cuda_build.h"

namespace gpucholmod::cuda {
namespace {

Status unusable(Status status, const char* reason, const std::string& message) {
  cudaGetLastError();
  status.reason = reason;
  status.message = message;
  return status;
}

std::string version(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

double free_memory(int device) {
  int before = 0;
  std::size_t free = 0, total = 0;
  if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) return -1;
  const bool known = cudaMemGetInfo(&free, &total) == cudaSuccess;
  cudaSetDevice(before);
  return known ? double(free) : -1;
}

/// Returns the architecture whose code the driver loads for a GPU: machine code of the GPU's own generation, or PTX of
/// the oldest architecture compiled for.
int taken_for(int compute_capability) {
  constexpr int compiled[] = {__CUDA_ARCH_LIST__};  // in rising order
  int taken = compiled[0];
  for (const int architecture : compiled)
    if (architecture / 100 == compute_capability / 10 && architecture <= 10 * compute_capability) taken = architecture;
  return taken;
}

Kernels kernels_for(int architecture, std::size_t shared_memory) {
  if (!GPUCHOLMOD_SEGMENTS(architecture)) return Kernels::steps;
  return with_card(architecture, [&](auto card) {
    using Card = decltype(card);
    if (shared_memory < Card::shared) return Kernels::steps;
    return Card::clusters                                   ? Kernels::clusters
           : Card::products == block_columns::Products::fma ? Kernels::plain
                                                            : Kernels::tensor_cores;
  });
}

/// Asks the driver for everything but the free memory.
Status look() {
  Status status;
  status.built = true;
  status.configured = GPUCHOLMOD_CUDA_CONFIGURED;
  status.architectures = GPUCHOLMOD_CUDA_ARCHITECTURES;
  status.toolkit_version = CUDART_VERSION;
  cudaDriverGetVersion(&status.driver_version);
  if (status.driver_version == 0) return unusable(status, "no_driver", "no NVIDIA driver was found");
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver)
    return unusable(status, "driver_too_old", "the NVIDIA driver supports CUDA " + version(status.driver_version) +
                                                  ", this build needs " + version(CUDART_VERSION));
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    return unusable(status, "no_device", "the NVIDIA driver finds no GPU");
  if (error != cudaSuccess)
    return unusable(status, "failed", std::string("CUDA does not start: ") + cudaGetErrorString(error));

  for (int id = 0; id < count; ++id) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, id) != cudaSuccess) continue;
    Device device;
    device.id = id;
    device.name = properties.name;
    device.compute_capability = 10 * properties.major + properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
    device.memory_total = double(properties.totalGlobalMem);
    device.usable = device.compute_capability >= GPUCHOLMOD_CUDA_OLDEST;
    if (device.usable)
      device.kernels = kernels_for(taken_for(device.compute_capability), properties.sharedMemPerBlockOptin);
    if (device.usable && status.device < 0) status.device = id;
    status.devices.push_back(device);
  }
  if (status.device < 0)
    return unusable(status, "device_too_old", "every GPU is older than the oldest that this build has code for (sm_" +
                                                  std::to_string(GPUCHOLMOD_CUDA_OLDEST) + ")");
  status.usable = true;
  return status;
}

std::atomic<bool> in_use{false};

}  // namespace

bool built() { return true; }
bool started() { return in_use; }
void note_start() { in_use = true; }

Status status(bool with_memory) {
  // CUDA does not survive fork(): `owner` is the process that used CUDA first (parallel::mclapply is common in R). A
  // usable status that a process has found is kept, as it does not change and asking again is slow.
  static std::atomic<pid_t> owner{0};
  static Status known;
  if (owner != 0 && owner != getpid()) {  // without the lock: another thread's call that held the lock never ends here
    Status forked = known;
    forked.usable = false;
    forked.device = -1;
    return unusable(forked, "forked", "CUDA was used before this process was forked, and does not survive that");
  }
  const OneThread one_thread;
  if (owner == 0) {
    known = look();
    if (known.usable) owner = getpid();
  }
  Status now = known;
  if (with_memory)
    for (Device& device : now.devices) device.memory_free = free_memory(device.id);
  cudaGetLastError();  // one GPU that is full or taken must not fail the next call on another
  return now;
}

}  // namespace gpucholmod::cuda
