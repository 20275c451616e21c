#ifndef GPUCHOLMOD_CUDA_RESIDENT_H
#define GPUCHOLMOD_CUDA_RESIDENT_H

#include "core/device_factor.h"
#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// How a factor lies in device memory: column-major, column j at data + j * ld, R upper.
///
/// The order is rounded up to a multiple of `strip`; behind row and column n the factor is continued by the identity
/// (ones on the diagonal, zeros above it), so that no kernel has to look for an edge. The strict lower triangle is zero within
/// diagonal blocks of order `block`; elsewhere it is never read and holds anything.
struct Layout {
  static constexpr index_t strip = 128;
  static constexpr int block = 64;
  index_t n, padded, ld;

  explicit Layout(index_t order)
      : n(order), padded((order + strip - 1) / strip * strip), ld(padded + 32) {}
  index_t words() const { return ld * padded; }
};

/// Modifies dR into dOut, which may be dR itself; the kernels of the resident method. k is any number: more than 64 columns
/// go in passes. V (n x k) is in host memory. On a failing pivot dOut is unspecified.
///
/// With `dry_run` nothing is written to dOut (which may be null): only whether it can be done is found out; k <= 64.
/// Fills pivot, method, blocks, fallbacks, rescalings and seconds of `outcome`.
template <class T>
void modify_resident(const T* dR, T* dOut, const Layout& layout, const double* V, const ResidentRequest& request,
                     bool dry_run, Pool& pool, cudaStream_t stream, ResidentOutcome& outcome);

constexpr index_t resident_pass = 64;  ///< most columns of V in one pass

}  // namespace gpucholmod::cuda

#endif
