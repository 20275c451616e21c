#include "cpu/blocked.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>

#include "base/factor_io.h"
#include "base/huge_pages.h"
#include "base/thread_pool.h"
#include "cpu/eigen.h"

namespace gpucholmod::cpu {
namespace {

/// Returns the number of columns of a strip. If R is stored by rows, strips are wide, so that fewer pieces of rows are
/// fetched; but each of several threads gets some 2 strips, or 4 if k > 4, as the arithmetic counts then.
template <class T>
index_t width_of_strips(index_t n, index_t k, Uplo uplo, int threads, index_t stages) {
  if (uplo == Uplo::upper) return k <= 16 && sizeof(T) == 8 ? tuning::blocked_narrow : tuning::blocked_strip;
  if (threads == 1 && stages == 1) return tuning::blocked_wide;
  const index_t pieces = threads == 1 ? 8 : threads * (k <= 4 ? 2 : 4);
  return std::clamp<index_t>(n / pieces / 8 * 8, tuning::blocked_strip,
                             threads == 1 ? 4 * tuning::blocked_strip : tuning::blocked_lower);
}

/// The distance of addresses, in bytes, that map to the same set of the first-level cache.
constexpr std::uintptr_t page = 4096;

/// Returns how many numbers a strip's part of V needs beyond its own, so that columns_apart() can place it.
template <class T>
index_t spare(index_t n, Uplo uplo) {
  return uplo == Uplo::lower && n >= 256 ? index_t(page / sizeof(T)) : 0;
}

/// Returns the address in `memory` for a strip's part of V, a quarter of a page (modulo pages) from R, the strip's part
/// of a lower factor. If rows of R are a multiple of a page apart, the tail kernel's lines of all these rows fill one
/// set of the cache, and lines of V in this set would evict them; half a page from R, `out` may be stored. `on_lines`:
/// the kernels make vectors of R begin with a cache line, and vectors of V then begin with a cache line as well.
template <class T>
T* columns_apart(T* memory, const T* R, bool on_lines) {
  const auto address = [](const T* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const std::uintptr_t of_R = on_lines ? address(R) : address(R) / 64 * 64;
  return memory + (of_R + page / 4 - address(memory)) % page / sizeof(T);
}

}  // namespace

// Two threads fetch numbers from each other's caches for about as long as they save. So the least work that is shared
// at all is shared by six threads (ten if R is lower), if there are as many threads and strips.
int useful_threads(index_t n, index_t k, Uplo uplo, int most) {
  const double work = double(n) * double(n) * double(k + 1);
  if (work < (uplo == Uplo::upper ? tuning::threads_pay_upper : tuning::threads_pay_lower)) return 1;
  const index_t strips = (n + tuning::blocked_strip - 1) / tuning::blocked_strip;
  const double best = std::min(std::sqrt(work / tuning::threads_squared), double(strips));
  return int(std::clamp(best, 1.0, double(std::max(most, 1))));
}

/// Holds the state that the threads of one call of advance() share.
template <class T>
struct BlockedSweep<T>::Walk {
  MatrixView<const T> R;
  MatrixView<T> out;
  bool clear;
  index_t origin, end;                ///< first column of R and `out`, and end of the columns of this call
  std::atomic<index_t> strip{0};      ///< next strip to take
  std::atomic<index_t> rows;          ///< number of rows whose transforms are known
  std::atomic<index_t> failing{-1};
  std::atomic<bool> stop{false};

  /// Records a failing pivot; of several, the first row's counts.
  void fail(index_t pivot) {
    index_t first = failing;
    while ((first < 0 || pivot < first) && !failing.compare_exchange_weak(first, pivot)) {}
  }
};

template <class T>
index_t BlockedSweep<T>::rows_of_zeros(MatrixView<const T> V) {
  index_t rows = V.rows;
  for (index_t q = 0; q < V.cols && rows > 0; ++q)
    rows = std::find_if(V.col(q), V.col(q) + rows, [](T v) { return v != 0; }) - V.col(q);
  return rows / 8 * 8;
}

template <class T>
RightHandSideView BlockedSweep<T>::trailing(const RightHandSideView& sides) const {
  const index_t rows = sides.z.rows - first_row_;
  for (index_t j = 0; j < sides.m(); ++j) std::copy_n(sides.z.col(j), first_row_, sides.out.col(j));
  return {sides.z.block(first_row_, 0, rows, sides.m()), sides.Y, sides.out.block(first_row_, 0, rows, sides.m()),
          sides.rest};
}

template <class T>
BlockedSweep<T>::BlockedSweep(MatrixView<const T> V, index_t removed, T scale, Uplo uplo, Instructions instructions,
                              int threads)
    : V_(V), uplo_(uplo), threads_(std::max(threads, 1)), stages_(V, removed, scale, uplo, instructions),
      is_scaled_(scale != 1) {
  static_assert(tuning::blocked_strip % 8 == 0 && tuning::blocked_narrow % 8 == 0,
                "only the last row block of a factor is short");
  width_ = std::min(width_of_strips<T>(V.rows, V.cols, uplo, threads_, stages_.count()), (V.rows + 7) / 8 * 8);
  rows_ = stages_.rows();
  ldv_ = stages_.ldv(width_);
  first_.Vt = stages_.scratch(V.cols * ldv_ + spare<T>(V.rows, uplo));
  others_.reserve(threads_ - 1);
  for (int t = 1; t < threads_; ++t) others_.push_back(workspace());
}

template <class T>
typename BlockedSweep<T>::Workspace BlockedSweep<T>::workspace() {
  return {stages_.scratch(V_.cols * ldv_ + spare<T>(V_.rows, uplo_)), {}, 0};
}

template <class T>
void BlockedSweep<T>::clear_strip(const Walk& walk, index_t first, index_t last) const {
  const MatrixView<T>& out = walk.out;
  for (index_t j = first; j < last; ++j)
    if (uplo_ == Uplo::upper) std::fill(out.col(j - walk.origin) + j + 1, out.col(j - walk.origin) + out.rows, T(0));
    else std::fill(out.col(j), out.col(j) + j, T(0));
}

/// Has the system provide memory for columns [first, last) of the result, which are about to be written.
template <class T>
void BlockedSweep<T>::provide_columns(const Walk& walk, index_t first, index_t last) const {
  const MatrixView<T>& out = walk.out;
  if (threads_ == 1 || !walk.clear || out.data == walk.R.data || first >= walk.end) return;
  const index_t from = first - walk.origin, to = std::min(last, walk.end) - walk.origin;
  provide_pages(out.data, out.col(out.cols), out.col(from), out.col(to));
}

template <class T>
bool BlockedSweep<T>::keep_rows(Walk& walk, Workspace& mine, index_t first, index_t last) const {
  const MatrixView<const T>& R = walk.R;
  const bool upper = uplo_ == Uplo::upper;
  const index_t origin = upper ? walk.origin : 0;
  for (index_t j = first; j < std::min(last, first_row_); ++j) {
    const T entry = R(j, j - origin);
    if (!is_normal(entry)) return walk.fail(j), false;
    if (entry < least_safe<T>) mine.squares = std::numeric_limits<T>::infinity();
  }
  if (!walk.out.data || walk.out.data == R.data) return true;
  const auto keep = [&](const T* from, T* to, index_t count) {
    const Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> numbers(from, count);
    mine.squares += numbers.square().sum();
    std::copy_n(from, count, to);
  };
  for (index_t j = first; upper && j < last; ++j)
    keep(R.col(j - origin), walk.out.col(j - origin), std::min(j + 1, first_row_));
  for (index_t i = 0; !upper && i < std::min(first_row_, last); ++i) {
    const index_t begin = std::max(i, first);
    keep(R.col(i) + begin, walk.out.col(i) + begin, last - begin);
  }
  return true;
}

/// Modifies the strip of columns [first, last). Returns false if a pivot fails or another thread has stopped.
template <class T>
bool BlockedSweep<T>::modify_strip(Walk& walk, Workspace& mine, index_t first, index_t last) {
  const bool upper = uplo_ == Uplo::upper, discard = walk.out.data == nullptr;
  const index_t entry = first - walk.origin, start = std::min(first_row_, last);
  if (start > 0 && !keep_rows(walk, mine, first, last)) return false;
  const T* const R = upper ? walk.R.col(entry) : walk.R.data + entry;
  const bool apart = spare<T>(V_.rows, uplo_) > 0, on_lines = V_.rows >= 2 * stages_.begin()->kernels->long_rows;
  auto strips = stages_.begin({R,
                               discard ? mine.discarded.data() : upper ? walk.out.col(entry) : walk.out.data + entry,
                               walk.R.ld,
                               !discard ? walk.out.ld : stages_.count() == 1 ? 0 : upper ? last : width_,
                               last - first,
                               apart ? columns_apart(mine.Vt, R, on_lines) : mine.Vt,
                               ldv_},
                              first);
  for (index_t row = start, idle = 0; row < first;) {
    const index_t known = std::min(walk.rows.load(std::memory_order_acquire), first);
    if (known > row) {
      stages_.apply(strips, row, known, 0);
      row = known;
    } else if (walk.stop.load(std::memory_order_relaxed)) {
      return false;
    } else if (++idle % 64 == 0) {
      std::this_thread::yield();
    }
  }
  for (index_t row = std::max(first, start); row < last; row += rows_) {
    const index_t m = std::min(rows_, last - row), next = row + m;
    if (const index_t failing = stages_.diagonal(strips, row, row - first, m); failing >= 0) {
      walk.fail(row + failing);
      return false;
    }
    walk.rows.store(next, std::memory_order_release);
    if (next < last) stages_.apply(strips, row, next, next - first);
  }
  stages_.scale_rows(strips[0], first, last, first);
  if (walk.clear) clear_strip(walk, first, last);
  mine.squares += strips[0].squares;
  return true;
}

/// Takes and modifies strips until all are taken. With several threads, calls `told` once more at the end, while other
/// threads may still work on the last strips.
template <class T>
void BlockedSweep<T>::work(Walk& walk, Workspace& mine, const Poll* told) {
  const index_t ahead = threads_ * width_;
  while (!walk.stop) {
    const index_t turn = walk.strip.load(std::memory_order_relaxed);
    const bool over = next_ + turn * width_ >= walk.end;
    const index_t first =
        over ? walk.end : next_ + (threads_ == 1 ? (walk.strip = turn + 1, turn) : walk.strip++) * width_;
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
  if (next_ == 0 && !is_scaled_) {
    first_row_ = rows_of_zeros(V_);
    stages_.start_at(first_row_);
  }
  Walk walk{R,   out, clear && out.data != nullptr, uplo_ == Uplo::lower ? 0 : next_,
            end, {},  {std::max(next_, first_row_)}, {-1}, {false}};
  // In a dry run with one stage, each line of a strip overwrites the preceding line; a second stage reads all lines.
  if (out.data == nullptr) {
    const index_t words = stages_.count() == 1 ? std::max(end, width_) : end * width_;
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

template class BlockedSweep<float>;
template class BlockedSweep<double>;

}  // namespace gpucholmod::cpu
