#include "cpu/blocked.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/huge_pages.h"
#include "base/thread_pool.h"

namespace gpucholmod::cpu {
namespace {

/// Rows of a strip that stay in the first-level cache from what columns of V of one sign do to those of the other.
constexpr index_t chunk = 128;

/// Columns of a strip. Where R lies by rows, wide ones: fewer pieces of rows to fetch; but several for each thread, where k is so large that
/// the arithmetic counts.
index_t width_of_strips(index_t n, index_t k, Uplo uplo, int threads, index_t stages) {
  if (uplo == Uplo::upper) return tuning::blocked_strip;
  if (threads == 1 && stages == 1) return tuning::blocked_wide;
  const bool few = k <= 4 && threads > 1;
  const index_t pieces = few ? 8 : std::max(8, 4 * threads);
  return std::clamp<index_t>(n / pieces / 8 * 8, tuning::blocked_strip, few ? tuning::blocked_lower : 4 * tuning::blocked_strip);
}

}  // namespace

/// p threads take work / p + p, in units of what it takes to have the help of one.
int useful_threads(index_t n, index_t k, Uplo uplo, int most) {
  const double work = double(n) * double(n) * double(k + 8) / (uplo == Uplo::upper ? tuning::thread_help_upper : tuning::thread_help_lower);
  const index_t strips = (n + tuning::blocked_strip - 1) / tuning::blocked_strip;
  const double best = 1 + std::floor((std::sqrt(1 + 4 * work) - 1) / 2);
  return int(std::clamp(std::min(best, double(strips)), 1.0, double(std::max(most, 1))));
}

/// What the threads of one call share.
template <class T>
struct BlockedSweep<T>::Walk {
  MatrixView<const T> R;
  MatrixView<T> out;
  bool clear;
  index_t origin, end;                ///< columns of this call, from and to
  std::atomic<index_t> strip{0};      ///< the next to take
  std::atomic<index_t> rows;          ///< whose transforms are known
  std::atomic<index_t> failing{-1};
  std::atomic<bool> stop{false};
};

template <class T>
void BlockedSweep<T>::add_stage(const Kernels<T>& kernels, index_t first, index_t k) {
  const index_t words = kernels.transform_words(k);
  Stage& stage = stages_[count_++] = {&kernels, first, k, words, nullptr};
  stage.transforms = scratch_.take(stage.transform(V_.rows + kernels.rows - 1) - stage.transforms);
}

template <class T>
BlockedSweep<T>::BlockedSweep(MatrixView<const T> V, index_t removed, T scale, Uplo uplo, Instructions instructions, int threads)
    : V_(V), scale_(scale), uplo_(uplo), threads_(std::max(threads, 1)) {
  static_assert(tuning::blocked_strip % 8 == 0 && chunk % 8 == 0, "only the last row block of a factor is short");
  const index_t added = V.cols - removed;
  if (added > 0 || removed == 0) add_stage(kernels<T>(instructions, added, Sign::update, uplo), 0, added);
  if (removed > 0) add_stage(kernels<T>(instructions, removed, Sign::downdate, uplo), added, removed);
  width_ = std::min(width_of_strips(V.rows, V.cols, uplo, threads_, count_), (V.rows + 7) / 8 * 8);
  rows_ = stages_[0].kernels->rows;
  ldv_ = width_ + stages_[0].kernels->lanes;
  for (index_t i = 0; i < count_; ++i) block_words_ = std::max(block_words_, stages_[i].kernels->block_words(stages_[i].k));
  first_.Vt = scratch_.take(V.cols * ldv_);
  first_.block = scratch_.take(block_words_);
  others_.reserve(threads_ - 1);
  for (int t = 1; t < threads_; ++t) others_.push_back(workspace());
}

template <class T>
typename BlockedSweep<T>::Workspace BlockedSweep<T>::workspace() {
  return {scratch_.take(V_.cols * ldv_), scratch_.take(block_words_), {}, 0};
}

template <class T>
void BlockedSweep<T>::clear_strip(const Walk& walk, index_t first, index_t last) const {
  const MatrixView<T>& out = walk.out;
  for (index_t j = first; j < last; ++j)
    if (uplo_ == Uplo::upper) std::fill(out.col(j - walk.origin) + j + 1, out.col(j - walk.origin) + out.rows, T(0));
    else std::fill(out.col(j), out.col(j) + j, T(0));
}

/// Columns [first, last) of the result are about to be written for the first time.
template <class T>
void BlockedSweep<T>::provide_columns(const Walk& walk, index_t first, index_t last) const {
  const MatrixView<T>& out = walk.out;
  if (threads_ == 1 || !walk.clear || out.data == walk.R.data || first >= walk.end) return;
  const index_t from = first - walk.origin, to = std::min(last, walk.end) - walk.origin;
  provide_pages(out.data, out.col(out.cols), out.col(from), out.col(to));
}

/// Rows [row, end) of the strip, whose transforms are known, from `column` on.
template <class T>
void BlockedSweep<T>::apply(Strips& strips, index_t row, index_t end, index_t column) const {
  const index_t at_once = count_ > 1 || scale_ != 1 ? chunk : end;
  for (index_t next; row < end; row = next) {
    next = std::min(end, row + at_once);
    for (index_t i = 0; i < count_; ++i)
      stages_[i].kernels->apply(stages_[i].transform(row), (next - row) / rows_, row, column, stages_[i].k, strips[i]);
    if (column == 0) scale_rows(strips[0], row, next, next);
  }
}

/// The result, in rows [row, end) of the strip, whose first column is the factor's column `first`.
template <class T>
void BlockedSweep<T>::scale_rows(const Strip<T>& strip, index_t row, index_t end, index_t first) const {
  if (scale_ == 1) return;
  for (index_t j = 0; j < strip.columns; ++j)
    for (index_t i = row; i < std::min(end, first + j + 1); ++i)
      strip.out[uplo_ == Uplo::upper ? i + j * strip.ldo : j + i * strip.ldo] *= scale_;
}

/// False: a pivot fails, or another thread has stopped.
template <class T>
bool BlockedSweep<T>::modify_strip(Walk& walk, Workspace& mine, index_t first, index_t last) {
  const bool upper = uplo_ == Uplo::upper, discard = walk.out.data == nullptr;
  const index_t entry = first - walk.origin;
  Strips strips;
  strips[0] = {upper ? walk.R.col(entry) : walk.R.data + entry,
               discard ? mine.discarded.data() : upper ? walk.out.col(entry) : walk.out.data + entry,
               walk.R.ld,
               !discard ? walk.out.ld : count_ == 1 ? 0 : upper ? last : width_,
               last - first,
               mine.Vt,
               ldv_,
               mine.block};
  if (count_ > 1) {  // the second goes on with what the first has made
    strips[1] = strips[0];
    strips[1].R = strips[0].out;
    strips[1].ldr = strips[0].ldo;
    strips[1].Vt += stages_[1].first * ldv_;
  }
  for (index_t q = 0; q < V_.cols; ++q) stages_[0].kernels->fill(mine.Vt + q * ldv_, ldv_, V_.col(q) + first, last - first);
  for (index_t row = 0, idle = 0; row < first;) {
    const index_t known = std::min(walk.rows.load(std::memory_order_acquire), first);
    if (known > row) {
      apply(strips, row, known, 0);
      row = known;
    } else if (walk.stop.load(std::memory_order_relaxed)) {
      return false;
    } else if (++idle % 64 == 0) {
      std::this_thread::yield();
    }
  }
  for (index_t row = first; row < last; row += rows_) {
    const index_t m = std::min(rows_, last - row), next = row + m;
    for (index_t i = 0; i < count_; ++i) {
      const index_t failing = stages_[i].kernels->diagonal(stages_[i].transform(row), row, row - first, m, stages_[i].k, strips[i]);
      if (failing >= 0) {
        walk.failing = row + failing;
        return false;
      }
    }
    walk.rows.store(next, std::memory_order_release);
    if (next < last) apply(strips, row, next, next - first);
    scale_rows(strips[0], row, next, first);
  }
  if (walk.clear) clear_strip(walk, first, last);
  mine.squares += strips[0].squares;
  return true;
}

/// Strips, as long as there are any that nobody has taken. Where the others have the last of them, `told` is called once more.
template <class T>
void BlockedSweep<T>::work(Walk& walk, Workspace& mine, const Poll* told) {
  const index_t ahead = threads_ * width_;
  while (!walk.stop) {
    const index_t turn = walk.strip.load(std::memory_order_relaxed);
    const bool over = next_ + turn * width_ >= walk.end;
    const index_t first = over ? walk.end : next_ + (threads_ == 1 ? (walk.strip = turn + 1, turn) : walk.strip++) * width_;
    if (first >= walk.end) {
      if (told && threads_ > 1) (*told)(share_of_columns(walk.end, V_.rows));
      return;
    }
    if (told) (*told)(share_of_columns(first, V_.rows));
    provide_columns(walk, first + ahead, first + ahead + width_);
    if (!modify_strip(walk, mine, first, std::min(first + width_, walk.end))) walk.stop = true;
  }
}

template <class T>
index_t BlockedSweep<T>::advance(MatrixView<const T> R, MatrixView<T> out, bool clear, const Poll& poll) {
  const index_t end = uplo_ == Uplo::lower ? V_.rows : next_ + R.cols;
  Walk walk{R, out, clear && out.data != nullptr, uplo_ == Uplo::lower ? 0 : next_, end, {}, {next_}, {-1}, {false}};
  if (out.data == nullptr) {  // unless another stage goes on with it, a line of the strip is written over the one before
    const index_t words = count_ == 1 ? std::max(end, width_) : end * width_;
    first_.discarded.resize(words);
    for (Workspace& other : others_) other.discarded.resize(words);
  }
  provide_columns(walk, next_, next_ + threads_ * width_);
  poll(share_of_columns(next_, V_.rows));
  if (threads_ == 1) {
    work(walk, first_, &poll);
  } else {
    const Helpers helpers(threads_ - 1, [&](int t) { work(walk, others_[t - 1], nullptr); });
    try {
      work(walk, first_, &poll);
    } catch (...) {
      walk.stop = true;
      throw;
    }
  }
  squares_ += std::exchange(first_.squares, T(0));
  for (Workspace& other : others_) squares_ += std::exchange(other.squares, T(0));
  next_ = end;
  return walk.failing;
}

/// They are strips without a diagonal. Their last row block is filled up with zeros, as its transform is with what leaves them.
template <class T>
void BlockedSweep<T>::carry(const RightSides& sides, index_t n) const {
  const bool upper = uplo_ == Uplo::upper;
  const index_t k = V_.cols, padded = (n + rows_ - 1) / rows_ * rows_;
  std::vector<T> Vt(k * ldv_), block(block_words_);
  for (index_t first = 0; first < sides.m; first += width_) {
    const index_t columns = std::min(width_, sides.m - first);
    std::vector<T> memory(padded * columns);
    const index_t ld = upper ? padded : columns;
    const auto at = [&](index_t i, index_t j) -> T& { return memory[upper ? i + j * ld : j + i * ld]; };
    for (index_t j = 0; j < columns; ++j)
      for (index_t i = 0; i < n; ++i) at(i, j) = T(sides.z[i + (first + j) * n]);
    for (index_t q = 0; q < k; ++q)
      for (index_t j = 0; j < columns; ++j) Vt.data()[j + q * ldv_] = T(sides.Y[first + j + q * sides.m]);
    Strips strips;
    strips[0] = {memory.data(), memory.data(), ld, ld, columns, Vt.data(), ldv_, block.data()};
    strips[1] = strips[0];
    strips[1].Vt += stages_[count_ - 1].first * ldv_;
    apply(strips, 0, padded, 0);
    for (index_t j = 0; j < columns; ++j)
      for (index_t i = 0; i < n; ++i) sides.out[i + (first + j) * n] = double(at(i, j));
    for (index_t i = 0; i < count_; ++i)
      for (index_t q = stages_[i].first; q < stages_[i].first + stages_[i].k; ++q) {
        const T unit = stages_[i].kernels->unit(stages_[i].transform(padded - rows_), q - stages_[i].first);
        for (index_t j = 0; j < columns; ++j) sides.rest[first + j + q * sides.m] = double(Vt.data()[j + q * ldv_] * unit);
      }
  }
}

template <class T>
index_t modify_block(const Kernels<T>& kernels, MatrixView<const T> V, MatrixView<T> R) {
  const index_t n = R.cols, k = V.cols, ldv = kernels.rows + kernels.lanes;
  Scratch<T> scratch;
  T* const H = scratch.take(kernels.transform_words(k));
  Strip<T> strip{R.data, R.data, R.ld, R.ld, n, scratch.take(k * ldv), ldv, scratch.take(kernels.block_words(k))};
  for (index_t q = 0; q < k; ++q) kernels.fill(strip.Vt + q * ldv, ldv, V.col(q), n);
  return kernels.diagonal(H, 0, 0, n, k, strip);
}

template index_t modify_block(const Kernels<float>&, MatrixView<const float>, MatrixView<float>);
template index_t modify_block(const Kernels<double>&, MatrixView<const double>, MatrixView<double>);
template class BlockedSweep<float>;
template class BlockedSweep<double>;

}  // namespace gpucholmod::cpu
