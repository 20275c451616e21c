#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "block_columns/segment.h"

namespace gpucholmod::test {

/// The diagonal blocks and the last strip of a whole factor on a simulated grid, apart from it, as cuda::PartsApart has
/// them; in the factor there is NaN in their place.
template <class Segment>
class PartsApartOnHost {
  using T = typename Segment::Scalar;
  static constexpr index_t NB = block_columns::NB, STRIP = block_columns::STRIP;

 public:
  /// Puts the parts of the segment's factor apart.
  explicit PartsApartOnHost(Segment& s)
      : out_(s.out), ld_(s.ld), n_(index_t(s.blocks) * NB), ld_apart_(n_ + 8), factor_(s.R, s.R + ld_ * n_),
        diagonal_(ld_apart_ * NB, nan), last_(ld_apart_ * STRIP, nan), last_out_(last_) {
    for (index_t j = 0; j < n_; ++j) {
      const index_t first = j / NB * NB;
      move(first, j, NB, diagonal_.data() + first + j % NB * ld_apart_);
      if (j >= n_ - STRIP) move(0, j, first, last_.data() + (j - n_ + STRIP) * ld_apart_);
    }
    const bool in_place = s.in_place();
    s.R = factor_.data();
    if (in_place) s.out = factor_.data();
    s.ld_apart = ld_apart_;
    s.diagonal = diagonal_.data();
    s.last_strip = last_.data() - (n_ - STRIP) * ld_apart_;
    T* const after = in_place ? last_.data() : last_out_.data();
    s.last_strip_out = after - (n_ - STRIP) * ld_apart_;
    s.first_of_last = int((n_ - STRIP) / block_columns::GROUP);
    after_ = after;
    in_place_ = in_place;
  }

  /// Puts the parts of the result to their places.
  void give() const {
    if (!out_) return;
    if (in_place_) std::copy(factor_.begin(), factor_.end(), out_);
    for (index_t j = 0; j < n_; ++j) {
      const index_t first = j / NB * NB;
      std::copy_n(diagonal_.data() + first + j % NB * ld_apart_, NB, out_ + first + j * ld_);
      if (j >= n_ - STRIP) std::copy_n(after_ + (j - n_ + STRIP) * ld_apart_, first, out_ + j * ld_);
    }
  }

 private:
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  void move(index_t i, index_t j, index_t count, T* to) {
    T* const from = factor_.data() + i + j * ld_;
    std::copy_n(from, count, to);
    std::fill_n(from, count, nan);
  }

  T* out_;
  index_t ld_, n_, ld_apart_;
  std::vector<T> factor_, diagonal_, last_, last_out_;
  const T* after_;
  bool in_place_;
};

}  // namespace gpucholmod::test
