#pragma once

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// Brings messages of row blocks from the first owner of a factor to the memory of another, every relays-th of them, and says there that they
/// are complete: so those that rewrite wait for nothing but their own GPU. The message of a refused row block comes with its scaling.
///
///   Threads   one team of RELAY_WARPS warps
///   Shared    a word
template <class Segment, int K, class Team>
class Relay {
  using A = typename Segment::Arithmetic;
  using Warp = typename Team::Warp;
  using Parts = Message<K>;

 public:
  /// `number`: of the block of threads among the owner's relays.
  GPUCHOLMOD_HOST_DEVICE Relay(Team team, const Segment& segment, int number) : team_(team), s_(segment), number_(number) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first + number_; b < s_.end; b += s_.relays) {
      if (!team_.all_sync([&](Warp& warp) { return warp.id > 0 || wait(warp, b); })) return;
      const int verdict = int(*team_.shared);
      const index_t at = index_t(b) * Parts::stride;
      const int words = verdict == accepted ? Parts::words : Parts::stride;
      team_.threads_sync([&](int thread) { copy(s_.first_messages + at, s_.messages + at, words, thread); });
      if (verdict == refused) team_.refuse(s_.own_state(), 2 * (s_.blocks - b));
      team_.once([&] { Warp::store_release(s_.complete(b), verdict); });
      if (verdict == refused) return;
    }
  }

 private:
  /// Until there is a verdict, which comes to the team's memory. False: a row block before b is refused.
  GPUCHOLMOD_HOST_DEVICE bool wait(const Warp& warp, int b) const {
    const typename Warp::Wait wait;
    int verdict;
    while ((verdict = Warp::load_acquire(s_.completed(b), true)) == open) {
      if (is_over<Warp>(s_.own_state(), s_.blocks, b)) return false;
      wait.pause();
    }
    warp.sync();
    warp.once([&] { *team_.shared = verdict; });
    return true;
  }

  /// A thread's share of so many words, an even number: all is on its way before anything has come.
  GPUCHOLMOD_HOST_DEVICE static void copy(const A* from, A* to, int words, int thread) {
    constexpr int threads = RELAY_WARPS * LANES, batch = 8;
    const auto *const source = reinterpret_cast<const Pair<A>*>(from), *const end = source + words / 2;
    auto* target = reinterpret_cast<Pair<A>*>(to) + thread;
    GPUCHOLMOD_NO_UNROLL for (const auto* at = source + thread; at < end; at += batch * threads, target += batch * threads) {
      Pair<A> held[batch];
      GPUCHOLMOD_UNROLL for (int i = 0; i < batch; ++i)
        if (end - at > i * threads) held[i] = Warp::template read<Access::transform>(at + i * threads);
      GPUCHOLMOD_UNROLL for (int i = 0; i < batch; ++i)
        if (end - at > i * threads) target[i * threads] = held[i];
    }
  }

  Team team_;
  const Segment& s_;
  int number_;
};

}  // namespace gpucholmod::block_columns
