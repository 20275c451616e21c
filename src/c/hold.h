#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/semidefinite.h"
#include "c/options.h"
#include "cpu/host_factor.h"
#include "cuda/device_factor.h"

namespace gpucholmod::c {

/// Returns a copy of a factor of the caller's, in its type, with room for `capacity` rows and columns. Throws what
/// cpu::hold() and cuda::upload() do.
template <class S>
std::unique_ptr<HeldFactor> held(MatrixView<const S> R, index_t capacity, const Options& options) {
  require(R.rows == R.cols, "R", "must be square");
  const index_t n = R.cols;
  bytes_of(std::max(n, capacity), std::max(n, capacity), sizeof(S));  // throws where there can be no such factor
  std::vector<S> copied;
  if (R.ld != n) copied = packed_triangle(R, options.uplo);
  const S* const numbers = R.ld != n ? copied.data() : R.data;
  constexpr Precision precision = precision_of<S>;
  return keep_with_zeros(numbers, n, options.uplo, precision, [&](const S* positive) -> std::unique_ptr<HeldFactor> {
    if (options.device == GPUCHOLMOD_HOST)
      return cpu::hold(positive, n, options.uplo, precision, capacity, cpu::ordinary_memory, options.threads);
    const int device = options.device == GPUCHOLMOD_ANY_GPU ? -1 : options.device;
    return cuda::upload(positive, n, options.uplo, precision, capacity, device);
  });
}

}  // namespace gpucholmod::c
