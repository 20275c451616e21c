#pragma once

#include "cuda/device_factor.h"
#include "cuda/pool.h"
#include "block_columns/pass.h"

namespace gpucholmod::cuda {

/// How a factor lies in device memory: column-major, column j at data + j * ld, R upper.
///
/// The order is rounded up to a multiple of `strip`; behind row and column n the factor is continued by the identity
/// (ones on the diagonal, zeros above it), so that no kernel has to look for an edge. The strict lower triangle is
/// zero within diagonal blocks of order `block`; elsewhere it is never read and holds anything.
struct Layout {
  static constexpr index_t strip = 128;
  static constexpr int block = 64;
  index_t n, padded, ld;

  explicit Layout(index_t order)
      : n(order), padded((order + strip - 1) / strip * strip), ld(padded + 32) {}
  index_t words() const { return ld * padded; }
};

/// Multiprocessors of the current device.
int multiprocessors();

/// The kernels that modify a factor of scalars T on the current device, V being padded to `width` columns;
/// `automatic` is resolved. Throws backend_unavailable where the ones asked for do not run there.
template <class T>
ResidentMethod choose_resident(int width, ResidentMethod asked);

/// Queues what a pass begins with in `stream`: V (n x k), from host memory that may be reused on return where it is
/// pageable, and cleared messages and flags.
void prepare_pass(const block_columns::PassSize& size, const double* V, index_t n, index_t k, double* dwords, int* dints,
                  cudaStream_t stream);

/// Queues a job. Jobs of one pass begin in the order of their panels. Those of method persistent may run side by
/// side, as long as all their strips together are at most as many as there are multiprocessors.
template <class T>
void start_job(int width, ResidentMethod method, const block_columns::Job<T>& job, cudaStream_t stream);

/// Modifies dR into dOut, which may be dR itself. k is any number: more than 64 columns go in passes. V (n x k) is in
/// host memory. On a failing pivot dOut is unspecified.
///
/// With `dry_run` nothing is written to dOut (which may be null): only whether it can be done is found out; k <= 64.
/// Fills pivot, method, blocks, fallbacks, rescalings and seconds of `outcome`.
template <class T>
void modify_resident(const T* dR, T* dOut, const Layout& layout, const double* V, const ResidentRequest& request,
                     bool dry_run, Pool& pool, cudaStream_t stream, ResidentOutcome& outcome);

}  // namespace gpucholmod::cuda
