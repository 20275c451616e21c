#pragma once

#include <utility>

#include "cuda/context.h"
#include "cuda/factor_pass.h"
#include "cuda/kernels/parts.cuh"
#include "cuda/layout.h"

namespace gpucholmod::cuda {

/// The parts of a factor in the caller's memory that cannot be worked on there: its diagonal blocks, as the caller may
/// have anything below the diagonal, and, unless it ends with a whole strip, the last one. Everything else stays where
/// it is. Work is queued in the stream of the context.
template <class T>
class PartsApart {
  using Words = PoolBuffer<T>;

 public:
  /// Bytes of device memory that they take.
  static double bytes(const Layout& layout) {
    return double(sizeof(T)) * double(ld_of(layout)) * double(NB + 2 * last_columns(layout));
  }

  PartsApart(Context& context, MatrixView<const T> R, const Layout& layout)
      : context_(context), padded_(layout.padded), ld_(ld_of(layout)), diagonal_(context.workspace(), ld_ * NB),
        last_(context.workspace(), ld_ * last_columns(layout)), next_(context.workspace(), ld_ * last_columns(layout)),
        range_(context.workspace(), 1) {
    check(cudaMemsetAsync(range_.data(), 0xff, range_.bytes(), context.stream()), "prepare to look at a diagonal");
    take_parts<<<blocks(), part_threads, 0, context.stream()>>>(R, diagonal_.data(), last_.data(), ld_, padded_,
                                                                range_.data());
    check(cudaGetLastError(), "take parts of a factor");
  }

  /// Queues the way of what the diagonal holds to the host, for diagonal_within().
  void fetch_range() const {
    check(cudaMemcpyAsync(&context_.word<DiagonalRange>(), range_.data(), range_.bytes(), cudaMemcpyDeviceToHost,
                          context_.stream()),
          "fetch what a diagonal holds");
  }

  Apart<T> of_pass(bool in_place) const {
    return {diagonal_.data(), last_.data(), in_place ? last_.data() : next_.data(), ld_};
  }
  /// A pass has been over.
  void swap() { last_.swap(next_); }
  /// Queues their way to a factor.
  void give(MatrixView<T> R) const {
    give_parts<<<blocks(), part_threads, 0, context_.stream()>>>(diagonal_.data(), last_.data(), ld_, padded_, R);
    check(cudaGetLastError(), "give parts of a factor");
  }
  /// Queues *verdict <- 1 unless all entries of the diagonal were in a range, when they were taken.
  void give_verdict(double least, double most, int* verdict) const {
    judge_diagonal<<<1, 1, 0, context_.stream()>>>(range_.data(), least, most, verdict);
    check(cudaGetLastError(), "give a verdict on a diagonal");
  }
  /// Returns whether they were; the stream has come past fetch_range().
  bool diagonal_within(double least, double most) const {
    return context_.word<DiagonalRange>().is_within(least, most);
  }

 private:
  static constexpr index_t NB = block_columns::NB, STRIP = block_columns::STRIP;
  static index_t ld_of(const Layout& layout) { return layout.padded + block_columns::margin; }
  static index_t last_columns(const Layout& layout) { return layout.n < layout.padded ? STRIP : 0; }
  unsigned blocks() const { return unsigned(padded_ / NB + (last_.data() ? STRIP : 0)); }

  Context& context_;
  index_t padded_, ld_;
  Words diagonal_, last_, next_;
  PoolBuffer<DiagonalRange> range_;
};

}  // namespace gpucholmod::cuda
