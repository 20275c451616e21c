#include <Rcpp.h>

#include "cuda/backend.h"
#include "rcpp_guard.h"

using namespace gpucholmod;

namespace {

Rcpp::String name_of(cuda::Kernels kernels) {
  switch (kernels) {
    case cuda::Kernels::steps: return "steps";
    case cuda::Kernels::plain: return "plain";
    case cuda::Kernels::tensor_cores: return "tensor_cores";
    case cuda::Kernels::clusters: return "clusters";
    case cuda::Kernels::none: break;
  }
  return NA_STRING;
}

}  // namespace

// Returns everything that cuda::status() knows; memory in bytes.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_gpu_info(bool with_memory) {
  return guarded([&] {
    const cuda::Status status = cuda::status(with_memory);
    const int count = int(status.devices.size());
    Rcpp::IntegerVector id(count), compute_capability(count), multiprocessors(count);
    Rcpp::NumericVector memory_total(count), memory_free(count);
    Rcpp::CharacterVector device_name(count), kernels(count);
    Rcpp::LogicalVector usable(count);
    for (int i = 0; i < count; ++i) {
      const cuda::Device& device = status.devices[i];
      id[i] = device.id;
      device_name[i] = device.name;
      compute_capability[i] = device.compute_capability;
      multiprocessors[i] = device.multiprocessors;
      memory_total[i] = device.memory_total;
      memory_free[i] = device.memory_free < 0 ? NA_REAL : device.memory_free;
      usable[i] = device.usable;
      kernels[i] = name_of(device.kernels);
    }
    using Rcpp::_;
    return Rcpp::List::create(
        _["built"] = status.built, _["configured"] = status.configured, _["architectures"] = status.architectures,
        _["toolkit_version"] = status.toolkit_version, _["driver_version"] = status.driver_version,
        _["usable"] = status.usable, _["reason"] = status.reason, _["message"] = status.message,
        _["device"] = status.device,
        _["devices"] = Rcpp::DataFrame::create(
            _["id"] = id, _["name"] = device_name, _["compute_capability"] = compute_capability,
            _["multiprocessors"] = multiprocessors, _["memory_total"] = memory_total, _["memory_free"] = memory_free,
            _["usable"] = usable, _["kernels"] = kernels, _["stringsAsFactors"] = false));
  });
}

// Frees what is kept for later calls. Returns the bytes of page-locked memory that have been given back.
// [[Rcpp::export(rng = false)]]
double rcpp_gpu_release() {
  return guarded([] { return cuda::release(); });
}
