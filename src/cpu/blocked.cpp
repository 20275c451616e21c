#include "cpu/blocked.h"

#include <algorithm>
#include <vector>

#include "cpu/householder.h"

namespace gpucholmod::cpu {
namespace {

constexpr int columns_at_once = 2;  // columns that share one pass over a reflector

/// Apply H to columns [first, last) of the row block that starts at R(row, 0); V holds the columns from `origin`.
template <Sign sign, class T>
void apply_to_columns(const BlockReflector<T>& H, MatrixView<T> R, index_t row, index_t first, index_t last,
                      index_t origin, T* V, index_t k, index_t kp) {
  index_t j = first;
  for (; j + columns_at_once <= last; j += columns_at_once)
    apply_reflector<sign, columns_at_once>(H, &R(row, j), R.ld, V + (j - origin) * kp, k, kp);
  for (; j < last; ++j) apply_reflector<sign, 1>(H, &R(row, j), R.ld, V + (j - origin) * kp, k, kp);
}

template <Sign sign, class T>
index_t walk_strips(MatrixView<T> R, MatrixView<const T> Vt, const Poll& poll) {
  const index_t n = R.cols, k = Vt.rows, kp = (k + QB - 1) / QB * QB;
  const index_t words = BlockReflector<T>::words(kp), blocks = (n + NB - 1) / NB;
  std::vector<T> reflectors(blocks * words);
  const auto reflector = [&](index_t row) {
    return BlockReflector<T>::at(reflectors.data() + row / NB * words, kp);
  };
  std::vector<T> strip(tuning::blocked_strip * kp);

  for (index_t first = 0; first < n; first += tuning::blocked_strip) {
    poll();
    const index_t last = std::min<index_t>(first + tuning::blocked_strip, n);
    std::fill(strip.begin(), strip.end(), T(0));
    for (index_t j = first; j < last; ++j) std::copy_n(Vt.col(j), k, strip.data() + (j - first) * kp);

    for (index_t row = 0; row < first; row += NB)
      apply_to_columns<sign>(reflector(row), R, row, first, last, first, strip.data(), k, kp);

    for (index_t row = first; row < last; row += NB) {
      const index_t m = std::min<index_t>(NB, last - row);
      const index_t i = find_reflector<sign>(R.block(row, row, m, m), strip.data() + (row - first) * kp, k, kp,
                                             reflector(row));
      if (i >= 0) return row + i;
      if (row + m < last)
        apply_to_columns<sign>(reflector(row), R, row, row + m, last, first, strip.data(), k, kp);
    }
  }
  return -1;
}

}  // namespace

template <class T>
index_t blocked(MatrixView<T> R, MatrixView<const T> Vt, Sign sign, const Poll& poll) {
  static_assert(tuning::blocked_strip % tuning::blocked_rows == 0, "only the last row block of a factor is short");
  return sign == Sign::update ? walk_strips<Sign::update>(R, Vt, poll) : walk_strips<Sign::downdate>(R, Vt, poll);
}

template index_t blocked(MatrixView<float>, MatrixView<const float>, Sign, const Poll&);
template index_t blocked(MatrixView<double>, MatrixView<const double>, Sign, const Poll&);

}  // namespace gpucholmod::cpu
