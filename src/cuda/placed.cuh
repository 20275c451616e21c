#pragma once

#include "base/types.h"
#include "cuda/context.h"
#include "cuda/kernels/layout.cuh"

namespace gpucholmod::cuda {

/// A factor on the GPU, with its layout.
template <class T>
struct Placed {
  T* data;
  Layout layout;

  MatrixView<T> all() const { return {data, layout.padded, layout.padded, layout.ld}; }
  MatrixView<T> R() const { return all().block(0, 0, layout.n, layout.n); }
  MatrixView<const T> read() const { return {data, layout.n, layout.n, layout.ld}; }
  /// Returns the trailing part of the factor from row `first` on, which begins a strip.
  Placed behind(index_t first) const { return {data + first * (layout.ld + 1), layout.behind(first)}; }

  /// Queues a kernel that writes an identity behind the last row and column of the factor.
  void continue_behind(cudaStream_t stream) const {
    const index_t more = layout.padded - layout.n;
    if (more == 0) return;
    set_identity<<<unsigned(more), 256, 0, stream>>>(all().block(0, layout.n, layout.padded, more), layout.n);
    check(cudaGetLastError(), "start the continuation of a factor");
  }
};

/// Returns the first row of the strip that contains row i.
inline index_t strip_of(index_t i) { return i / block_columns::STRIP * block_columns::STRIP; }

}  // namespace gpucholmod::cuda
