#include "mpi_cuda/leader.h"

#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "mpi_cuda/own_gpu.h"

namespace gpucholmod::mpi_cuda {
namespace {

std::string uuid_of(int device) {
  cudaDeviceProp properties;
  cuda::check(cudaGetDeviceProperties(&properties, device), "identify a GPU");
  return {properties.uuid.bytes, sizeof properties.uuid.bytes};
}

std::string name_of(int device) {
  for (const cuda::Device& one : cuda::status(false).devices)
    if (one.id == device) return one.name;
  return "";
}

class DevicesTogether : public mpi::GpusTogether {
 public:
  explicit DevicesTogether(std::vector<int> ids) : ids_(std::move(ids)) {}
  std::unique_ptr<HeldFactor> hold(const double* R, index_t n, Uplo uplo, Precision precision) const override {
    return cuda::upload(R, n, uplo, precision, n, ids_);
  }
  std::unique_ptr<HeldFactor> hold(const Source<double>& R, index_t n, Precision precision,
                                   const Poll& poll) const override {
    return cuda::upload(R, n, precision, n, ids_, poll);
  }

 private:
  std::vector<int> ids_;
};

std::unique_ptr<mpi::GpusTogether> open(const std::vector<std::string>& wanted) {
  std::vector<int> ids;
  for (const std::string& uuid : wanted)
    for (const cuda::Device& device : cuda::status(false).devices)
      if (device.usable && uuid_of(device.id) == uuid) ids.push_back(device.id);
  if (ids.size() < wanted.size()) return nullptr;
  try {
    cuda::Context::of(ids);
  } catch (const Error&) {
    // The GPUs have no access to each other's memory, are of different kinds, or are for one process each.
    return nullptr;
  }
  return std::make_unique<DevicesTogether>(ids);
}

}  // namespace

mpi::Leader leader_on_gpus(int local_rank) {
  return {[=]() -> mpi::OwnGpu {
            const int device = own_gpu(local_rank);
            return {uuid_of(device), device, name_of(device)};
          },
          open};
}

}  // namespace gpucholmod::mpi_cuda
