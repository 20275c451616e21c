#pragma once

#include <algorithm>
#include <vector>

#include "cuda/context.h"
#include "cuda/factor_pass.h"
#include "cuda/transfer.cuh"

namespace gpucholmod::cuda {

/// Holds right-hand sides that take part in the passes over a whole factor. They stay on the device, behind the
/// factor's columns, from one pass to the next, and travel by way of page-locked memory.
template <class T>
class SidesOfFactor {
  static constexpr index_t STRIP = block_columns::STRIP;

 public:
  static int strips(const RightHandSideView& sides) { return block_columns::strips_of(sides.m()); }
  /// Returns the bytes of page-locked memory for the right-hand sides; words() returns the numbers on the device.
  static std::size_t locked_bytes(const RightHandSideView& sides) {
    return sizeof(double) * std::size_t(sides.m() * (sides.z.rows + sides.rest.cols));
  }
  static index_t words(const RightHandSideView& sides, index_t ld) { return ld * STRIP * strips(sides); }

  /// Copies the given right-hand sides to page-locked memory, `locked`, of locked_bytes(). dz: words() numbers on the
  /// device.
  SidesOfFactor(const RightHandSideView& sides, T* dz, index_t ld, double* locked, cudaStream_t stream)
      : given_(sides), here_{{locked, sides.z.rows, sides.m(), sides.z.rows},
                             {dz, ld, STRIP * strips(sides), ld},
                             locked + sides.m() * sides.z.rows},
        stream_(stream) {
    each_column([&](index_t j) { std::copy_n(given_.z.col(j), here_.z.rows, here_.z.col(j)); });
    for (index_t q = 0; q < given_.rest.cols; ++q) std::copy_n(given_.Y.col(q), given_.m(), here_.Y + q * given_.m());
  }

  /// Queues the transfer of Y, and of z if this is the `first` pass, to the pass.
  void join(FactorPass<T>& pass, bool first) const { pass.take_sides(here_, first, stream_); }
  /// Queues the transfer back of what the pass has left of Y, and of z~ if this is the `last` pass.
  void fetch(const FactorPass<T>& pass, bool last) const { pass.give_sides(here_, last, stream_); }
  /// Copies the results to the caller's memory, when the stream has passed fetch().
  void deliver() const {
    each_column([&](index_t j) { std::copy_n(here_.z.col(j), here_.z.rows, given_.out.col(j)); });
    for (index_t q = 0; q < given_.rest.cols; ++q)
      std::copy_n(here_.Y + q * given_.m(), given_.m(), given_.rest.col(q));
  }

 private:
  template <class F>
  void each_column(F&& f) const {
    for_columns(here_.z.cols, threads_to_move(here_.z.rows * here_.z.cols), [&](index_t begin, index_t end) {
      for (index_t j = begin; j < end; ++j) f(j);
    }, [] {}, 2);
  }

  RightHandSideView given_;
  SidesOnTheWay<T> here_;
  cudaStream_t stream_;
};

/// Holds a strip of right-hand sides behind panels on the device: columns [first, first + STRIP) of z, as far as there
/// are any, as tall as the factor. The strip stays on the device from one pass to the next.
template <class T>
class RightHandSideStrip {
  static constexpr index_t STRIP = block_columns::STRIP;

 public:
  static index_t strips(const RightHandSideView& sides) { return (sides.m() + STRIP - 1) / STRIP; }

  /// Sends the strip. dz: ld x STRIP.
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

  /// Applies to the strip what a pass, which is over, has done.
  void follow(FactorPass<T>& pass) const {
    pass.carry(dz_, ld_, sides_.Y.data + first_, sides_.rest.data + first_, sides_.rest.ld, count_, stream_);
  }

  /// Fetches the strip when all passes are done.
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
