#include "cpu/stages.h"

namespace gpucholmod::cpu {
namespace {

/// The number of rows of a strip that stay in the first-level cache between the first stage and the second.
constexpr index_t chunk = 128;

/// Multiplies numbers, several at once, so that compilers use vectors.
template <class T>
void multiply(T* x, index_t count, T by) {
  constexpr index_t at_once = 8;
  index_t i = 0;
  for (; i + at_once <= count; i += at_once)
    for (index_t l = 0; l < at_once; ++l) x[i + l] *= by;
  for (; i < count; ++i) x[i] *= by;
}

}  // namespace

template <class T>
Stages<T>::Stages(MatrixView<const T> V, index_t removed, T scale, Uplo uplo, Instructions instructions)
    : V_(V), scale_(scale), uplo_(uplo) {
  static_assert(chunk % 8 == 0, "only the last row block of a factor is short");
  const index_t added = V.cols - removed;
  if (added > 0 || removed == 0) add(kernels<T>(instructions, added, Sign::update, uplo), 0, added);
  if (removed > 0) add(kernels<T>(instructions, removed, Sign::downdate, uplo), added, removed);
}

template <class T>
void Stages<T>::add(const Kernels<T>& kernels, index_t first, index_t k) {
  Stage<T>& stage = stages_[count_++] = {&kernels, first, k, kernels.transform_words(k), nullptr};
  stage.transforms = scratch_.take(stage.blocks(V_.rows + kernels.rows - 1) * stage.words);
}

template <class T>
typename Stages<T>::Strips Stages<T>::begin(const Strip<T>& strip, index_t first) const {
  Strips strips{strip, strip};
  strips[1].R = strip.out;
  strips[1].ldr = strip.ldo;
  if (count_ > 1) strips[1].Vt += stages_[1].first * strip.ldv;
  for (index_t q = 0; q < V_.cols; ++q)
    stages_[0].kernels->fill(strip.Vt + q * strip.ldv, strip.ldv, V_.col(q) + first, strip.columns);
  return strips;
}

template <class T>
void Stages<T>::apply(Strips& strips, index_t row, index_t end, index_t column) const {
  const index_t at_once = count_ > 1 || scale_ != 1 ? chunk : end;
  for (index_t next; row < end; row = next) {
    next = std::min(end, row + at_once);
    for (index_t i = 0; i < count_; ++i)
      stages_[i].kernels->apply(stages_[i].transform(row), (next - row) / rows(), row, column, stages_[i].k, strips[i]);
    if (column == 0) scale_rows(strips[0], row, next, next);
  }
}

template <class T>
index_t Stages<T>::diagonal(Strips& strips, index_t row, index_t column, index_t m) const {
  for (index_t i = 0; i < count_; ++i)
    if (const index_t failing =
            stages_[i].kernels->diagonal(stages_[i].transform(row), row, column, m, stages_[i].k, strips[i]);
        failing >= 0)
      return failing;
  return -1;
}

template <class T>
void Stages<T>::scale_rows(const Strip<T>& strip, index_t row, index_t end, index_t first) const {
  if (scale_ == 1) return;
  if (uplo_ == Uplo::upper) {
    for (index_t j = 0; j < strip.columns; ++j)
      multiply(strip.out + row + j * strip.ldo, std::min(end, first + j + 1) - row, scale_);
  } else {
    for (index_t i = row; i < end; ++i) {
      const index_t j = std::max<index_t>(i - first, 0);
      multiply(strip.out + j + i * strip.ldo, strip.columns - j, scale_);
    }
  }
}

template <class T>
typename Stages<T>::CarryMemory Stages<T>::memory_to_carry(index_t m, index_t n, index_t width) const {
  return {std::vector<T>(V_.cols * ldv(width)), std::vector<T>(padded(n) * std::min(width, m))};
}

// The last row block of z is filled up with zeros; the transform of that row block has been filled up so that it leaves
// these zeros as they are.
template <class T>
void Stages<T>::carry(const RightHandSideView& sides, index_t first, index_t n, index_t width,
                      CarryMemory& memory) const {
  const bool upper = uplo_ == Uplo::upper;
  const index_t k = V_.cols, height = n - first, padded = this->padded(n), ldv = this->ldv(width);
  std::vector<T>& Vt = memory.Vt;
  for (index_t side = 0; side < sides.m(); side += width) {
    const index_t columns = std::min(width, sides.m() - side);
    std::fill_n(memory.z.begin(), padded * columns, T(0));
    const index_t ld = upper ? padded : columns;
    const auto at = [&](index_t i, index_t j) -> T& {
      return memory.z[upper ? first + i + j * ld : j + (first + i) * ld];
    };
    for (index_t j = 0; j < columns; ++j)
      for (index_t i = 0; i < height; ++i) at(i, j) = T(sides.z(i, side + j));
    for (index_t q = 0; q < k; ++q)
      for (index_t j = 0; j < columns; ++j) Vt.data()[j + q * ldv] = T(sides.Y(side + j, q));
    Strips strips;
    strips[0] = {memory.z.data(), memory.z.data(), ld, ld, columns, Vt.data(), ldv};
    strips[1] = strips[0];
    strips[1].Vt += stages_[count_ - 1].first * ldv;
    apply(strips, first, padded, 0);
    for (index_t j = 0; j < columns; ++j)
      for (index_t i = 0; i < height; ++i) sides.out(i, side + j) = double(at(i, j));
    for (index_t q = 0; q < k; ++q) {
      const Stage<T>& stage = stages_[q < stages_[0].k ? 0 : 1];
      const T unit = stage.kernels->unit(stage.transform(padded - rows()), q - stage.first);
      for (index_t j = 0; j < columns; ++j) sides.rest(side + j, q) = double(Vt.data()[j + q * ldv] * unit);
    }
  }
}

template class Stages<float>;
template class Stages<double>;

}  // namespace gpucholmod::cpu
