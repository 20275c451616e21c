#include "mpi/sweep.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace gpucholmod::mpi {
namespace {

/// Rows of a block at a time: in between messages come and go. Where V has columns of both signs these rows stay in the first-level cache from
/// one to the other.
constexpr index_t chunk = 256, chunk_of_two = 128;

}  // namespace

/// What the threads of a process share.
template <class T>
struct SharedSweep<T>::Walk {
  const Columns<T>& R;
  const Columns<T>* to;
  const Poll& poll;
  std::atomic<index_t> next;              ///< block to take
  std::atomic<index_t> known{0};          ///< blocks whose transforms are there
  index_t sent = 0;                       ///< blocks that need no sending any more
  std::atomic<index_t> failing{-1};
  std::atomic<bool> stop{false};
};

template <class T>
void SharedSweep<T>::add_stage(const cpu::Kernels<T>& kernels, index_t first, index_t k) {
  Stage& stage = stages_[count_++] = {&kernels, first, k, kernels.transform_words(k), nullptr};
  stage.transforms = scratch_.take(stage.transform(V_.rows + kernels.rows - 1) - stage.transforms);
}

template <class T>
SharedSweep<T>::SharedSweep(Team& team, const Layout& layout, MatrixView<const T> V, index_t removed, T scale, Instructions instructions,
                            int threads)
    : team_(team), layout_(layout), V_(V), scale_(scale) {
  static_assert(block_width % 8 == 0, "only the last row block of a factor is short");
  const index_t added = V.cols - removed;
  if (added > 0 || removed == 0) add_stage(cpu::kernels<T>(instructions, added, Sign::update, Uplo::upper), 0, added);
  if (removed > 0) add_stage(cpu::kernels<T>(instructions, removed, Sign::downdate, Uplo::upper), added, removed);
  rows_ = stages_[0].kernels->rows;
  ldv_ = block_width + stages_[0].kernels->lanes;
  index_t words = 0;
  for (index_t i = 0; i < count_; ++i) words = std::max(words, stages_[i].kernels->block_words(stages_[i].k));
  for (int t = 0; t < std::max(threads, 1); ++t) workspaces_.push_back({scratch_.take(V.cols * ldv_), scratch_.take(words), {}});
}

/// Sends what is new of this process's own, and takes what has come of the others': by the calling thread alone.
template <class T>
void SharedSweep<T>::communicate(Walk& walk) {
  std::vector<T> message;
  const index_t blocks = layout_.blocks();
  for (;; ++walk.sent) {
    const index_t b = walk.sent;
    const bool own = b < blocks && layout_.owner(b) == team_.rank();
    if (b >= blocks || (own ? walk.known.load(std::memory_order_acquire) <= b : !team_.arrived(layout_.owner(b), b))) return;
    if (own) {
      message.clear();
      for (index_t i = 0; i < count_; ++i)
        message.insert(message.end(), stages_[i].transform(layout_.first(b)), stages_[i].transform(layout_.last(b) + rows_ - 1));
      team_.send(layout_.behind(b, team_.rank()), b, message.data(), sizeof(T) * message.size());
      continue;
    }
    const Bytes got = team_.take(layout_.owner(b), b);
    const char* from = got.data();
    for (index_t i = 0; i < count_; ++i) {
      T* const to = stages_[i].transform(layout_.first(b));
      const std::size_t bytes = sizeof(T) * (stages_[i].transform(layout_.last(b) + rows_ - 1) - to);
      std::memcpy(to, from, bytes);
      from += bytes;
    }
    walk.known.store(b + 1, std::memory_order_release);
  }
}

template <class T>
typename SharedSweep<T>::Strips SharedSweep<T>::begin(const Walk& walk, Workspace& mine, index_t b) const {
  const MatrixView<T> R = walk.R.block(b), out = walk.to ? walk.to->block(b) : R;
  if (!walk.to) mine.discarded.resize(count_ == 1 ? R.rows : R.rows * block_width);  // a column is written over the one before
  Strips strips;
  strips[0] = {R.data, walk.to ? out.data : mine.discarded.data(), R.ld, walk.to ? out.ld : count_ == 1 ? 0 : R.rows, R.cols, mine.Vt, ldv_, mine.block};
  strips[1] = strips[0];  // goes on with what the first has made
  strips[1].R = strips[0].out;
  strips[1].ldr = strips[0].ldo;
  if (count_ > 1) strips[1].Vt += stages_[1].first * ldv_;
  for (index_t q = 0; q < V_.cols; ++q) stages_[0].kernels->fill(mine.Vt + q * ldv_, ldv_, V_.col(q) + layout_.first(b), R.cols);
  return strips;
}

/// Rows [row, end), whose transforms are known, from `column` of the block on.
template <class T>
void SharedSweep<T>::apply(Strips& strips, index_t row, index_t end, index_t column) const {
  const index_t at_once = count_ > 1 || scale_ != 1 ? chunk_of_two : end;
  for (index_t next; row < end; row = next) {
    next = std::min(end, row + at_once);
    for (index_t i = 0; i < count_; ++i)
      stages_[i].kernels->apply(stages_[i].transform(row), (next - row) / rows_, row, column, stages_[i].k, strips[i]);
    if (column == 0) scale_rows(strips[0], row, next, next);
  }
}

/// The result, in rows [row, end) of the block, whose first column is the factor's column `first`.
template <class T>
void SharedSweep<T>::scale_rows(const cpu::Strip<T>& strip, index_t row, index_t end, index_t first) const {
  if (scale_ == 1) return;
  for (index_t j = 0; j < strip.columns; ++j)
    for (index_t i = row; i < std::min(end, first + j + 1); ++i) strip.out[i + j * strip.ldo] *= scale_;
}

/// False: a pivot fails, or another thread has stopped.
template <class T>
bool SharedSweep<T>::modify_block(Walk& walk, Workspace& mine, index_t b, bool calling) {
  const index_t first = layout_.first(b), last = layout_.last(b);
  Strips strips = begin(walk, mine, b);
  const auto tend = [&] {
    team_.look();
    communicate(walk);
  };
  Clock since;
  for (index_t row = 0, idle = 0; row < first;) {
    if (calling) tend();
    const index_t known = walk.known.load(std::memory_order_acquire), end = std::min({layout_.first(known), row + chunk, first});
    if (end > row) {
      apply(strips, row, end, 0);
      row = end;
      idle = 0;
      since = Clock();
      continue;
    }
    if (walk.stop) return false;
    if (++idle % 64 == 0 && calling) {
      walk.poll(share_of_columns(first, layout_.n));
      if (layout_.owner(known) != team_.rank()) team_.expect(layout_.owner(known), since);
    }
    pause(idle);
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
    if (next < last) apply(strips, row, next, next - first);
    scale_rows(strips[0], row, next, first);
  }
  walk.known.store(b + 1, std::memory_order_release);
  if (calling) tend();
  return true;
}

/// Blocks of this process, as long as there are any that no thread of it has taken.
template <class T>
void SharedSweep<T>::work(Walk& walk, Workspace& mine, bool calling) {
  while (!walk.stop) {
    const index_t b = walk.next.fetch_add(layout_.size);
    if (b >= layout_.blocks()) return;
    if (calling) walk.poll(share_of_columns(layout_.first(b), layout_.n));
    if (!modify_block(walk, mine, b, calling)) walk.stop = true;
  }
}

template <class T>
index_t SharedSweep<T>::run(const Columns<T>& R, const Columns<T>* to, const Poll& poll) {
  Walk walk{R, to, poll, {team_.rank()}};
  std::atomic<int> busy{0};
  const auto help = [&](int t) {
    ++busy;
    work(walk, workspaces_[t], false);
    --busy;
  };
  const Helpers helpers(int(workspaces_.size()) - 1, help);
  try {
    work(walk, workspaces_[0], true);
    for (index_t idle = 0; busy > 0 && !walk.stop; ++idle) {  // what they find is sent here, and what they wait for is received
      team_.look();
      communicate(walk);
      pause(idle);
    }
    if (walk.failing < 0) communicate(walk);
  } catch (...) {
    walk.stop = true;
    throw;
  }
  return walk.failing;
}

template class SharedSweep<float>;
template class SharedSweep<double>;

}  // namespace gpucholmod::mpi
