#pragma once

#include <utility>

#include "cuda/context.h"
#include "cuda/factor_pass.h"
#include "cuda/kernels/parts.cuh"
#include "cuda/layout.h"

namespace gpucholmod::cuda {

/// Holds the parts of a factor in the caller's memory that cannot be worked on there: its diagonal blocks, as the
/// caller may have anything below the diagonal, and the last strip, unless it is whole. All other entries stay where
/// they are. The parts have the leading dimension of the factor. Columns of the last strip that lie behind the factor
/// are zero, so they may overlap. Work is queued in the stream of the context.
template <class T>
class PartsApart {
 public:
  /// Returns the bytes of device memory that the parts take.
  static double bytes(const Layout& layout) {
    return double(sizeof(T)) * double(diagonal_words(layout) + 2 * last_words(layout)) +
           double(sizeof(int)) * double(of_diagonal(layout));
  }

  /// Queues copies of the parts of R. The diagonal is moderate if its entries are between `least` and `most`.
  PartsApart(Context& context, MatrixView<const T> R, const Layout& layout, double least, double most)
      : context_(context), words_(context.workspace(), diagonal_words(layout) + 2 * last_words(layout)),
        is_moderate_(context.workspace(), of_diagonal(layout)),
        parts_{words_.data(), first_beside(layout), nullptr, layout.ld, layout.padded} {
    if (last_words(layout) > 0) {
      parts_.last = words_.data() + diagonal_words(layout);
      next_ = parts_.last + last_words(layout);
    }
    take_parts<<<unsigned(parts_.pieces()), part_threads, 0, context.stream()>>>(R, parts_, T(least), T(most),
                                                                                is_moderate_.data());
    check(cudaGetLastError(), "take parts of a factor");
  }

  Apart<T> of_pass(bool in_place) const {
    return {parts_.diagonal, parts_.first_beside, parts_.last, in_place ? parts_.last : next_};
  }
  /// Makes the last strip that a pass has written the one that the next pass reads.
  void swap() { std::swap(parts_.last, next_); }
  /// Queues copies of the parts to a factor.
  void give(MatrixView<T> R) const { give(R, {}, nullptr); }
  /// Queues copies of the parts to a factor. *verdict, on the device, becomes 0 if the pass is done and the diagonal
  /// was moderate, otherwise 1.
  void give(MatrixView<T> R, const block_columns::PassEnd& pass, int* verdict) const {
    give_parts<<<unsigned(parts_.pieces()), part_threads, 0, context_.stream()>>>(parts_, R, is_moderate_.data(), pass,
                                                                                 verdict);
    check(cudaGetLastError(), "give parts of a factor");
  }
  /// Queues a look at the diagonal, for is_moderate().
  void look() const {
    find_whether_all<<<1, part_threads, 0, context_.stream()>>>(is_moderate_.data(), parts_.of_diagonal(),
                                                               &context_.word());
    check(cudaGetLastError(), "look at a diagonal");
  }
  /// Returns whether the diagonal was moderate when it was taken; the stream must have passed look().
  bool is_moderate() const { return context_.word() != 0; }

 private:
  static constexpr index_t NB = block_columns::NB, STRIP = block_columns::STRIP;
  static int first_beside(const Layout& layout) { return int(layout.ld / NB); }
  static index_t of_diagonal(const Layout& layout) { return layout.padded / NB * part_pieces; }
  static index_t diagonal_words(const Layout& layout) {
    return (layout.padded / NB > first_beside(layout) ? 2 : 1) * NB * layout.ld;
  }
  /// Returns the words of the last strip, whose last column may end behind the factor; 0 if the strip is whole.
  static index_t last_words(const Layout& layout) {
    return layout.n < layout.padded ? STRIP * layout.ld + STRIP : 0;
  }

  Context& context_;
  PoolBuffer<T> words_;
  PoolBuffer<int> is_moderate_;
  Parts<T> parts_;
  T* next_ = nullptr;
};

}  // namespace gpucholmod::cuda
