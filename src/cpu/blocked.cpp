#include "cpu/blocked.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "base/huge_pages.h"

namespace gpucholmod::cpu {

int useful_threads(index_t n, index_t k, int most) {
  const double share = tuning::blocked_share * (n < tuning::blocked_in_cache ? 4 : 1);
  const double shares = double(n) * double(n) * double(k + 8) / share;
  const index_t strips = (n + tuning::blocked_strip - 1) / tuning::blocked_strip;
  return int(std::clamp(std::min(shares, double(strips)), 1.0, double(std::max(most, 1))));
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
BlockedSweep<T>::BlockedSweep(MatrixView<const T> V, Sign sign, Uplo uplo, Instructions instructions, int threads)
    : V_(V), uplo_(uplo), threads_(std::max(threads, 1)),
      kernels_(kernels<T>(instructions, V.cols, sign, uplo)), ldv_(tuning::blocked_strip + kernels_.lanes),
      words_(kernels_.transform_words(V.cols)), transforms_((V.rows + kernels_.rows - 1) / kernels_.rows * words_) {
  static_assert(tuning::blocked_strip % 8 == 0, "only the last row block of a factor is short");
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

/// False: a pivot fails, or another thread has stopped.
template <class T>
bool BlockedSweep<T>::modify_strip(Walk& walk, Workspace& mine, index_t first, index_t last) {
  const index_t k = V_.cols, NB = kernels_.rows;
  const bool upper = uplo_ == Uplo::upper, discard = walk.out.data == nullptr;
  const index_t entry = first - walk.origin;
  Strip<T> strip{upper ? walk.R.col(entry) : walk.R.data + entry,
                 discard ? mine.discarded.data() : upper ? walk.out.col(entry) : walk.out.data + entry,
                 walk.R.ld,
                 !discard ? walk.out.ld : upper ? last : tuning::blocked_strip,
                 last - first,
                 mine.Vt.data(),
                 ldv_,
                 mine.block.data()};
  for (index_t q = 0; q < k; ++q) {
    T* const to = strip.Vt + q * ldv_;
    std::fill(std::copy(V_.col(q) + first, V_.col(q) + last, to), to + ldv_, T(0));
  }
  for (index_t row = 0, idle = 0; row < first;) {
    const index_t known = std::min(walk.rows.load(std::memory_order_acquire), first);
    if (known > row) {
      kernels_.apply(transform(row), (known - row) / NB, row, 0, k, strip);
      row = known;
    } else if (walk.stop.load(std::memory_order_relaxed)) {
      return false;
    } else if (++idle % 64 == 0) {
      std::this_thread::yield();
    }
  }
  for (index_t row = first; row < last; row += NB) {
    const index_t m = std::min(NB, last - row), next = row + m;
    T* const H = transform(row);
    const index_t i = kernels_.diagonal(H, row, row - first, m, k, strip);
    if (i >= 0) {
      walk.failing = row + i;
      return false;
    }
    walk.rows.store(next, std::memory_order_release);
    if (next < last) kernels_.apply(H, 1, row, next - first, k, strip);
  }
  if (walk.clear) clear_strip(walk, first, last);
  mine.squares += strip.squares;
  return true;
}

template <class T>
index_t BlockedSweep<T>::advance(MatrixView<const T> R, MatrixView<T> out, bool clear, const Poll& poll) {
  const index_t n = V_.rows, k = V_.cols, end = uplo_ == Uplo::lower ? n : next_ + R.cols;
  const index_t discarded = out.data != nullptr ? 0 : end * tuning::blocked_strip;
  Walk walk{R, out, clear && out.data != nullptr, uplo_ == Uplo::lower ? 0 : next_, end, {}, {next_}, {-1}, {false}};
  std::vector<Workspace> mine;
  for (int t = 0; t < threads_; ++t)
    mine.push_back({Aligned<T>(k * ldv_), Aligned<T>(kernels_.block_words(k)), Aligned<T>(discarded)});

  const index_t ahead = threads_ * tuning::blocked_strip;
  provide_columns(walk, next_, next_ + ahead);
  const auto work = [&](int thread, const Poll* told) {
    for (;;) {
      const index_t first = next_ + walk.strip++ * tuning::blocked_strip;
      if (first >= end || walk.stop) return;
      if (told) (*told)(share_of_columns(first, n));
      provide_columns(walk, first + ahead, first + ahead + tuning::blocked_strip);
      if (!modify_strip(walk, mine[thread], first, std::min<index_t>(first + tuning::blocked_strip, end))) {
        walk.stop = true;
        return;
      }
    }
  };
  poll(share_of_columns(next_, n));
  {
    struct Threads {  // none outlives this call, also where poll throws
      Walk& walk;
      std::vector<std::thread> all;
      bool done = false;
      ~Threads() {
        if (!done) walk.stop = true;
        for (std::thread& thread : all) thread.join();
      }
    } others{walk, {}};
    try {
      for (int t = 1; t < threads_; ++t) others.all.emplace_back(work, t, nullptr);
    } catch (const std::system_error&) {  // fewer will do
    }
    work(0, &poll);
    others.done = true;
  }
  for (const Workspace& workspace : mine) squares_ += workspace.squares;
  next_ = end;
  return walk.failing;
}

template class BlockedSweep<float>;
template class BlockedSweep<double>;

}  // namespace gpucholmod::cpu
