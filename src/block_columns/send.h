#pragma once

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

/// Sends what the first of several ranks finds for row blocks to the memory of all other ranks, and sets their flags.
/// So thread blocks that advance and update wait for nothing but their own GPU. P is sent first, by itself, for thread
/// blocks that advance; then the rest of the transform, with the scaling if the row block is rejected. Sends every
/// senders-th row block.
///
///   Threads   a team of SEND_P_WARPS warps for P, one of SEND_WARPS for transforms
template <class Segment, int K, class Team>
class Send {
  using A = typename Segment::Arithmetic;
  using Warp = typename Team::Warp;
  using Parts = BlockTransform<K>;
  static_assert(Parts::P == 0);

 public:
  GPUCHOLMOD_HOST_DEVICE Send(Team team, const Segment& segment, int sender, int senders)
      : team_(team), s_(segment), sender_(sender), senders_(senders) {}

  /// Sends P of row blocks up to `end`.
  GPUCHOLMOD_HOST_DEVICE void send_P(int end) {
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first + sender_; b < end; b += senders_) {
      if (!team_.all_sync([&](Warp& warp) { return wait(warp, b, s_.has_P(b), all_published<K>); })) return;
      copy(b, 0, Parts::Z);
      tell(s_.has_P(b), all_published<K>);
      team_.once([&] { Warp::store_release(s_.was_sent(b), 1); });
    }
  }

  GPUCHOLMOD_HOST_DEVICE void send_transforms() {
    GPUCHOLMOD_NO_UNROLL for (int b = s_.first + sender_; b < s_.end; b += senders_) {
      if (!team_.all_sync(
              [&](Warp& warp) { return wait(warp, b, s_.complete(b), accepted) && wait(warp, b, s_.was_sent(b), 1); }))
        return;
      const int verdict = Warp::load_relaxed(s_.complete(b));
      copy(b, Parts::Z, verdict == accepted ? Parts::words : Parts::stride);
      if (verdict == rejected)
        for (int other = 0; other < s_.device_ranks - 1; ++other)
          team_.reject(reinterpret_cast<SegmentState*>(s_.of_other(other, s_.flags)), 2 * (s_.blocks - b), true);
      tell(s_.complete(b), verdict);
      if (verdict == rejected) return;
    }
  }

 private:
  /// Waits until a flag of row block b is at least `value`. Returns false if a row block before b is rejected.
  GPUCHOLMOD_HOST_DEVICE bool wait(const Warp& warp, int b, const int* flag, int value) const {
    const typename Warp::Wait wait;
    while (Warp::load_acquire(flag) < value) {
      if (is_over<Warp>(s_, b)) return false;
      wait.pause();
    }
    warp.sync();
    return true;
  }

  /// Sets the flag of the same kind and number on all other ranks.
  GPUCHOLMOD_HOST_DEVICE void tell(int* flag, int value) {
    team_.each_thread([&](int thread) {
      if (thread < s_.device_ranks - 1) Warp::store_release(s_.of_other(thread, flag), value, true);
    });
  }

  /// Copies words [first, end) of a transform, both even, to all other ranks. All loads of a batch are on their way
  /// before the first has arrived. Ends in a barrier.
  GPUCHOLMOD_HOST_DEVICE void copy(int b, int first, int end) {
    constexpr int batch = 9;
    static_assert(Parts::Z % 2 == 0 && Parts::words % 2 == 0 && Parts::stride % 2 == 0);
    const index_t transform = index_t(b) * Parts::stride;
    const auto* const from = reinterpret_cast<const Pair<A>*>(s_.transforms + transform);
    const int threads = team_.size() * LANES;
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int at = first / 2 + thread; at < end / 2; at += batch * threads) {
        Pair<A> held[batch];
        GPUCHOLMOD_UNROLL for (int i = 0; i < batch; ++i)
          if (at + i * threads < end / 2) held[i] = Warp::template read<Access::transform>(from + at + i * threads);
        GPUCHOLMOD_NO_UNROLL for (int other = 0; other < s_.device_ranks - 1; ++other) {
          auto* const to = reinterpret_cast<Pair<A>*>(s_.transforms_of(other) + transform);
          GPUCHOLMOD_UNROLL for (int i = 0; i < batch; ++i)
            if (at + i * threads < end / 2) to[at + i * threads] = held[i];
        }
      }
    });
  }

  Team team_;
  const Segment& s_;
  int sender_, senders_;
};

}  // namespace gpucholmod::block_columns
