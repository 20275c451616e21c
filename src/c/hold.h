#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/semidefinite.h"
#include "c/callers_memory.h"
#include "cpu/host_factor.h"
#include "cuda/device_factor.h"

namespace gpucholmod::c {

/// Returns a copy of a factor that is in the host's memory. The copy has the type of the factor and room for `capacity`
/// rows and columns, and is in the place that `options` name. Throws what cpu::hold() and cuda::upload() throw.
template <class S>
std::unique_ptr<HeldFactor> held_from_host(MatrixView<const S> R, index_t capacity, const Options& options) {
  require(R.rows == R.cols, "R", "must be square");
  const index_t n = R.cols;
  bytes_of(std::max(n, capacity), std::max(n, capacity), sizeof(S));  // throws if no memory can hold such a factor
  std::vector<S> copied;
  if (R.ld != n) copied = packed_triangle(R, options.uplo);
  const S* const numbers = R.ld != n ? copied.data() : R.data;
  constexpr Precision precision = precision_of<S>;
  return keep_with_zeros(numbers, n, options.uplo, precision, [&](const S* positive) -> std::unique_ptr<HeldFactor> {
    if (!options.devices.empty())
      return renaming("device", "options->devices", [&] {  // the name in errors about a single device
        return renaming("devices", "options->devices", [&] {
          return cuda::upload(positive, n, options.uplo, precision, capacity, options.devices);
        });
      });
    if (options.device == GPUCHOLMOD_HOST)
      return cpu::hold(positive, n, options.uplo, precision, capacity, cpu::ordinary_memory, options.threads);
    const int device = options.device == GPUCHOLMOD_ANY_GPU ? -1 : options.device;
    return cuda::upload(positive, n, options.uplo, precision, capacity, device);
  });
}

/// Returns a copy, on the same GPU, of a factor on GPU `gpu`. If numbers of the factor need care, copies the factor to
/// `here`, in the host's memory, and the host finds out which numbers they are.
template <class S>
std::unique_ptr<HeldFactor> held_from_gpu(int gpu, MatrixView<const S> R, index_t capacity, Options options,
                                          std::vector<S>& here) {
  require(R.rows == R.cols, "R", "must be square");
  const index_t n = R.cols, most = std::max(n, capacity);
  bytes_of(most, most, sizeof(S));  // throws if no memory can hold such a factor
  if (std::unique_ptr<HeldFactor> made = cuda::take<S>(R, options.uplo, capacity, gpu)) return made;
  here.resize(n * n);
  cuda::copy_to_host<S>(gpu, R, here.data());
  options.device = gpu;
  return held_from_host<S>({here.data(), n, n, n}, capacity, options);
}

/// Returns a copy of a factor that is in the host's memory or on a GPU.
template <class S>
std::unique_ptr<HeldFactor> held(MatrixView<const S> R, index_t capacity, const Options& options) {
  const int gpu = options.gpu_of("R", R.data);
  if (gpu < 0) return held_from_host(R, capacity, options);
  std::vector<S> here;
  return held_from_gpu(gpu, R, capacity, options, here);
}

}  // namespace gpucholmod::c
