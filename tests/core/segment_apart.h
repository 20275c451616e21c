#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "block_columns/segment.h"

namespace gpucholmod::test {

/// Holds the diagonal blocks and the last strip of a whole factor on a simulated grid apart from the factor, as
/// cuda::PartsApart does. Their place in the factor holds NaN. The last strip's diagonal blocks lie beside the others.
template <class Segment>
class PartsApartOnHost {
  using T = typename Segment::Scalar;
  static constexpr index_t NB = block_columns::NB, STRIP = block_columns::STRIP;

 public:
  /// Moves the parts of the segment's factor to memory of their own.
  explicit PartsApartOnHost(Segment& s)
      : s_(s), out_(s.out), n_(index_t(s.blocks) * NB), factor_(s.R, s.R + s.ld * n_), diagonal_(2 * NB * s.ld, nan),
        last_(STRIP * s.ld, nan), last_out_(last_) {
    in_place_ = s.in_place();
    s.diagonal = diagonal_.data();
    s.first_beside = s.blocks - block_columns::BLOCKS;
    T* const after = in_place_ ? last_.data() : last_out_.data();
    s.last_columns = last_.data() - (n_ - STRIP) * s.ld;
    s.last_columns_out = after - (n_ - STRIP) * s.ld;
    s.first_of_last = int((n_ - STRIP) / block_columns::GROUP);
    for (index_t j = 0; j < n_; ++j) {
      const int b = int(j / NB);
      move(b * NB, j, NB, s.column_after(b, j));
      if (j >= n_ - STRIP) move(0, j, b * NB, last_.data() + (j - n_ + STRIP) * s.ld);
    }
    s.R = factor_.data();
    if (in_place_) s.out = factor_.data();
  }

  /// Copies the parts of the result to their places.
  void give() const {
    if (!out_) return;
    if (in_place_) std::copy(factor_.begin(), factor_.end(), out_);
    for (index_t j = 0; j < n_; ++j) {
      const int b = int(j / NB);
      std::copy_n(s_.column_after(b, j), NB, out_ + b * NB + j * s_.ld);
      if (j >= n_ - STRIP) std::copy_n(s_.last_columns_out + j * s_.ld, b * NB, out_ + j * s_.ld);
    }
  }

 private:
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  void move(index_t i, index_t j, index_t count, T* to) {
    T* const from = factor_.data() + i + j * s_.ld;
    std::copy_n(from, count, to);
    std::fill_n(from, count, nan);
  }

  const Segment& s_;
  T* out_;
  index_t n_;
  std::vector<T> factor_, diagonal_, last_, last_out_;
  bool in_place_;
};

}  // namespace gpucholmod::test
