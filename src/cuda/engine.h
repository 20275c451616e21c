#pragma once

#include "base/task.h"
#include "block_columns/pass.h"
#include "cuda/pool.h"

namespace gpucholmod::cuda {

/// How a factor that stays on a GPU lies in its memory: column-major, column j at data + j * ld, R upper.
///
/// The order is rounded up to a whole number of strips; behind row and column n the factor is continued by the identity
/// (ones on the diagonal, zeros above it), so that no kernel has to look for an edge. The strict lower triangle is
/// zero within diagonal blocks of order NB; elsewhere it is never read and holds anything.
struct Layout {
  index_t n, padded, ld;

  explicit Layout(index_t order)
      : n(order), padded(index_t(block_columns::strips_of(order)) * block_columns::STRIP), ld(padded + block_columns::margin) {}
  index_t words() const { return ld * padded; }
  int strips() const { return int(padded / block_columns::STRIP); }
};

/// Of the current device.
int attribute(cudaDeviceAttr which);

/// Multiprocessors of the current device.
int multiprocessors();

/// One pass of a modification on a GPU, of up to most_columns columns of V: the memory in which its jobs tell each other
/// what they have done, and their launches. Every modification on a GPU goes by these, wherever the factor is: allocate,
/// prepare(), start() for each panel, fetch_state(), add_to(). All on the current device.
template <class T>
class Pass {
 public:
  /// For k columns of V and a factor of so many strips, in so many panels. Of `task`, sign, algorithm and launch count.
  /// Throws out_of_memory, and backend_unavailable where the kernels asked for do not run on this device.
  Pass(Pool& pool, index_t k, int strips, int panels, const Task& task);

  /// What a pass takes, in bytes.
  static double bytes(index_t k, int strips, int panels) {
    return block_columns::PassSize{block_columns::padded_width(k), strips, panels}.bytes();
  }
  /// Doubles that start() needs as `own` for so many strips.
  index_t own_words(int strips) const { return strips * size_.strip_words(); }

  /// Queues what the pass begins with: V (n x k; what is behind row n counts as zero), from host memory that may be reused
  /// on return where it is pageable, and cleared transforms and flags.
  void prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream) const;

  /// Queues the modification of strips [first, end), panel `panel` of the factor, from R to out, which may be R itself, or
  /// null: then only whether it can be done is found out. `own`: memory that this job has for itself.
  ///
  /// Jobs begin in the order of their panels. Those of a persistent launch may run side by side, as long as all their
  /// strips together are at most as many as there are multiprocessors.
  void start(int panel, int first, int end, const T* R, T* out, index_t ld, double* own, cudaStream_t stream) const;

  /// Queues a copy of what has become of the pass so far, to page-locked memory.
  void fetch_state(block_columns::PassState* to, cudaStream_t stream) const;

  /// Adds what was done to `work`, when it is over.
  void add_to(Work& work, const block_columns::PassState& state) const;

  Launch launch() const { return launch_; }

 private:
  block_columns::PassSize size_;
  index_t k_;
  Sign sign_;
  bool householder_;
  Launch launch_;
  PoolBuffer<double> dwords_;
  PoolBuffer<int> dints_;
};

}  // namespace gpucholmod::cuda
