#include "cpu/blocked.h"

#include <algorithm>

#include "cpu/householder.h"

namespace gpucholmod::cpu {
namespace {

constexpr int columns_at_once = 2;  // columns that share one pass over a reflector

/// Apply H to `cols` columns: of the row block at R, and of V (k x cols, ld kp).
template <Sign sign, class T>
void apply_to_columns(const BlockReflector<T>& H, T* R, index_t ld, T* V, index_t cols, index_t k, index_t kp) {
  index_t j = 0;
  for (; j + columns_at_once <= cols; j += columns_at_once)
    apply_reflector<sign, columns_at_once>(H, R + j * ld, ld, V + j * kp, k, kp);
  for (; j < cols; ++j) apply_reflector<sign, 1>(H, R + j * ld, ld, V + j * kp, k, kp);
}

}  // namespace

template <class T>
BlockedSweep<T>::BlockedSweep(MatrixView<const T> Vt, Sign sign)
    : Vt_(Vt), sign_(sign), kp_((Vt.rows + QB - 1) / QB * QB), words_(BlockReflector<T>::words(kp_)),
      reflectors_((Vt.cols + NB - 1) / NB * words_), strip_(tuning::blocked_strip * kp_) {
  static_assert(tuning::blocked_strip % tuning::blocked_rows == 0, "only the last row block of a factor is short");
}

template <class T>
template <Sign sign>
index_t BlockedSweep<T>::walk(MatrixView<T> panel, const Poll& poll) {
  const index_t n = Vt_.cols, k = Vt_.rows, origin = next_, end = origin + panel.cols;
  for (; next_ < end; next_ += tuning::blocked_strip) {
    poll(share_of_columns(next_, n));
    const index_t first = next_, last = std::min<index_t>(first + tuning::blocked_strip, end);
    std::fill(strip_.begin(), strip_.end(), T(0));
    for (index_t j = first; j < last; ++j) std::copy_n(Vt_.col(j), k, strip_.data() + (j - first) * kp_);

    for (index_t row = 0; row < first; row += NB)
      apply_to_columns<sign>(BlockReflector<T>::at(reflector(row), kp_), &panel(row, first - origin), panel.ld,
                             strip_.data(), last - first, k, kp_);

    for (index_t row = first; row < last; row += NB) {
      const index_t m = std::min<index_t>(NB, last - row), next = row + m;
      const BlockReflector<T> H = BlockReflector<T>::at(reflector(row), kp_);
      const index_t i = find_reflector<sign>(panel.block(row, row - origin, m, m), strip_.data() + (row - first) * kp_, k,
                                             kp_, H);
      if (i >= 0) return row + i;
      if (next < last)
        apply_to_columns<sign>(H, &panel(row, next - origin), panel.ld, strip_.data() + (next - first) * kp_, last - next, k,
                               kp_);
    }
  }
  return -1;
}

template <class T>
index_t BlockedSweep<T>::advance(MatrixView<T> panel, const Poll& poll) {
  return sign_ == Sign::update ? walk<Sign::update>(panel, poll) : walk<Sign::downdate>(panel, poll);
}

template class BlockedSweep<float>;
template class BlockedSweep<double>;

}  // namespace gpucholmod::cpu
