#include "mpi/sweep.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace gpucholmod::mpi {
namespace {

/// The most rows that a thread does before messages are sent and received again.
constexpr index_t chunk = 256;

}  // namespace

/// Holds what the threads of a process share in a run.
template <class T>
struct SharedSweep<T>::Walk {
  const Columns<T>& R;
  const Columns<T>* to;
  const Poll& poll;
  std::atomic<index_t> next;              ///< next block that a thread takes
  std::atomic<index_t> known;             ///< first block whose transforms are not known yet
  index_t sent;                           ///< first block that has not been sent or received yet
  std::atomic<index_t> failing{-1};
  std::atomic<bool> stop{false};
};

template <class T>
SharedSweep<T>::SharedSweep(Team& team, const Layout& layout, MatrixView<const T> V, index_t removed, T scale,
                            Instructions instructions, int threads, bool carries)
    : team_(team), layout_(layout), stages_(V, removed, scale, Uplo::upper, instructions), carries_(carries) {
  static_assert(block_width % 8 == 0 && panel_width(0) % 8 == 0, "only the last row block of a factor is short");
  rows_ = stages_.rows();
  ldv_ = stages_.ldv(layout.width);
  for (int t = 0; t < std::max(threads, 1); ++t) workspaces_.push_back({stages_.scratch(V.cols * ldv_), {}});
}

/// Sends new transforms of this process, and takes those of other processes that have come. Called by one thread alone:
/// the thread that called run().
template <class T>
void SharedSweep<T>::communicate(Walk& walk) {
  std::vector<T> message;
  const index_t blocks = layout_.blocks();
  for (;; ++walk.sent) {
    const index_t b = walk.sent;
    const bool own = b < blocks && layout_.owner(b) == team_.rank();
    if (b >= blocks || (own ? walk.known.load(std::memory_order_acquire) <= b : !team_.arrived(layout_.owner(b), b)))
      return;
    if (own) {
      message.clear();
      for (const cpu::Stage<T>& stage : stages_)
        message.insert(message.end(), stage.transform(layout_.first(b)), stage.transform(layout_.last(b) + rows_ - 1));
      team_.send(carries_ ? team_.others() : layout_.behind(b, team_.rank()), b, message.data(),
                 sizeof(T) * message.size());
      continue;
    }
    const Bytes got = team_.take(layout_.owner(b), b);
    const char* from = got.data();
    for (const cpu::Stage<T>& stage : stages_) {
      T* const to = stage.transform(layout_.first(b));
      const std::size_t bytes = sizeof(T) * (stage.transform(layout_.last(b) + rows_ - 1) - to);
      std::memcpy(to, from, bytes);
      from += bytes;
    }
    walk.known.store(b + 1, std::memory_order_release);
  }
}

template <class T>
typename cpu::Stages<T>::Strips SharedSweep<T>::begin(const Walk& walk, Workspace& mine, index_t b) const {
  const MatrixView<T> R = walk.R.block(b), out = walk.to ? walk.to->block(b) : R;
  const bool one = stages_.count() == 1;
  // In a dry run of one stage, each column overwrites the column before.
  if (!walk.to) mine.discarded.resize(one ? R.rows : R.rows * layout_.width);
  T* const into = walk.to ? out.data : mine.discarded.data();
  return stages_.begin({R.data, into, R.ld,
                        walk.to ? out.ld
                        : one   ? 0
                                : R.rows,
                        R.cols, mine.Vt, ldv_},
                       layout_.first(b));
}

/// Modifies block b. Returns false if a pivot fails or another thread has stopped.
template <class T>
bool SharedSweep<T>::modify_block(Walk& walk, Workspace& mine, index_t b, bool calling) {
  const index_t first = layout_.first(b), last = layout_.last(b);
  auto strips = begin(walk, mine, b);
  const auto tend = [&] {
    team_.look();
    communicate(walk);
  };
  Clock since;
  for (index_t row = layout_.first(first_), idle = 0; row < first;) {
    if (calling) tend();
    const index_t known = walk.known.load(std::memory_order_acquire),
                  end = std::min({layout_.first(known), row + chunk, first});
    if (end > row) {
      stages_.apply(strips, row, end, 0);
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
    if (const index_t failing = stages_.diagonal(strips, row, row - first, m); failing >= 0) {
      walk.failing = row + failing;
      return false;
    }
    if (next < last) stages_.apply(strips, row, next, next - first);
  }
  stages_.scale_rows(strips[0], first, last, first);
  walk.known.store(b + 1, std::memory_order_release);
  if (calling) tend();
  return true;
}

/// Modifies blocks of this process until its threads have taken all blocks.
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
  const index_t rank = team_.rank(), P = layout_.size;
  Walk walk{R, to, poll, {first_ + (rank - first_ % P + P) % P}, {first_}, first_};
  std::atomic<int> busy{0};
  const auto help = [&](int t) {
    ++busy;
    work(walk, workspaces_[t], false);
    --busy;
  };
  const Helpers helpers(int(workspaces_.size()) - 1, help);
  try {
    work(walk, workspaces_[0], true);
    // While helpers work, this thread sends the transforms that they find and receives those that they wait for.
    for (index_t idle = 0; busy > 0 && !walk.stop; ++idle) {
      team_.look();
      communicate(walk);
      pause(idle);
    }
    if (walk.failing < 0) communicate(walk);
    for (; carries_ && to && walk.failing < 0 && walk.known < layout_.blocks(); communicate(walk))
      team_.wait(layout_.owner(walk.known), walk.known);
  } catch (...) {
    walk.stop = true;
    throw;
  }
  return walk.failing;
}

template class SharedSweep<float>;
template class SharedSweep<double>;

}  // namespace gpucholmod::mpi
