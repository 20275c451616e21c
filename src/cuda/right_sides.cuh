#pragma once

#include <algorithm>
#include <vector>

#include "cuda/context.h"
#include "cuda/factor_pass.h"

namespace gpucholmod::cuda {

/// A strip of right-hand sides on the device: columns [first, first + STRIP) of z, as far as there are any, as high as
/// the factor. They stay there from one pass to the next.
template <class T>
class RightHandSideStrip {
  static constexpr index_t STRIP = block_columns::STRIP;

 public:
  static index_t strips(const RightHandSideView& sides) { return (sides.m() + STRIP - 1) / STRIP; }

  /// Sends it. dz: ld x STRIP.
  RightHandSideStrip(const RightHandSideView& sides, index_t n, index_t strip, T* dz, index_t ld, cudaStream_t stream)
      : sides_(sides), n_(n), first_(strip * STRIP), count_(std::min(STRIP, sides.m() - first_)), dz_(dz), ld_(ld),
        stream_(stream) {
    std::vector<T> z(n * count_);
    for (index_t j = 0; j < count_; ++j) std::copy_n(sides.z.col(first_ + j), n, z.data() + j * n);
    check(cudaMemsetAsync(dz, 0, sizeof(T) * ld * STRIP, stream), "clear right-hand sides");
    check(cudaMemcpy2DAsync(dz, sizeof(T) * ld, z.data(), sizeof(T) * n, sizeof(T) * n, count_, cudaMemcpyHostToDevice,
                            stream),
          "send right-hand sides");
    check(cudaStreamSynchronize(stream), "send right-hand sides");
  }

  /// What a pass, which is over, has done.
  void follow(FactorPass<T>& pass) const {
    pass.carry(dz_, ld_, sides_.Y.data + first_, sides_.rest.data + first_, sides_.rest.ld, count_, stream_);
  }

  /// When all passes are done.
  void fetch() const {
    std::vector<T> z(n_ * count_);
    check(cudaMemcpy2DAsync(z.data(), sizeof(T) * n_, dz_, sizeof(T) * ld_, sizeof(T) * n_, count_,
                            cudaMemcpyDeviceToHost, stream_),
          "fetch right-hand sides");
    check(cudaStreamSynchronize(stream_), "fetch right-hand sides");
    for (index_t j = 0; j < count_; ++j) std::copy_n(z.data() + j * n_, n_, sides_.out.col(first_ + j));
  }

 private:
  RightHandSideView sides_;
  index_t n_, first_, count_;
  T* dz_;
  index_t ld_;
  cudaStream_t stream_;
};

}  // namespace gpucholmod::cuda
