#pragma once

#include "block_columns/segment.h"

/// The copies from global to shared memory for a team, which a warp beside the team makes through a staging ring. This
/// warp fills the ring's slots in turn; every warp of the team waits for each slot, and releases the slot. A team goes
/// on until everything has arrived, or the ring is closed.
namespace gpucholmod::block_columns {

/// Feeds P of row blocks up to `end`, or up to a rejected one, as P is published; only of row blocks that this rank
/// takes columns past. Waits for P of the other row blocks too, and on several ranks for P of the rejected row block:
/// the flags of a rank are cleared behind its launch, and no rank may send P there any more by then.
template <int K, class S, class Warp, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void feed_P(const Warp& warp, const S& s, int end, StagingRing& ring) {
  const int unneeded = s.several() ? 0 : 1;
  int known = s.start();  // P of the row blocks before this one is known to be published
  GPUCHOLMOD_NO_UNROLL for (int b = s.first; b < end; ++b) {
    const bool own = s.own_row_block(b) == b;
    const int i = s.number_of_row_block(s.own_row_block(b));  // number of the next row block that fills a slot
    if (own) ring.wait_empty(warp, i, [] { return false; });
    const typename Warp::Wait wait;
    while (known <= b) {
      known = b + warp.leading([&](int lane) {
        return b + lane < end && Warp::load_acquire(s.has_P(b + lane), s.is_led()) == all_published<K>;
      });
      if (known > b) break;
      if (is_over<Warp>(s, b + unneeded)) {
        ring.close(warp, i);
        return;
      }
      wait.pause();
    }
    if (own)
      ring.fill(warp, i, s.transforms + index_t(b) * BlockTransform<K>::stride + BlockTransform<K>::P, K * LDB);
  }
}

/// Feeds the block transforms of accepted row blocks: each when the row blocks up to `later` behind it, as far as they
/// exist, are accepted as well, or one of these is rejected.
template <int K, class S, class Warp, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void feed_transforms(const Warp& warp, const S& s, int later, StagingRing& ring) {
  int known = s.start();
  GPUCHOLMOD_NO_UNROLL for (int b = s.first; b < s.end; ++b) {
    const int i = b - s.first, last = b + later < s.last() ? b + later : s.last() - 1;
    ring.wait_empty(warp, i, [] { return false; });
    const typename Warp::Wait wait;
    while (known <= last) {
      known += warp.leading([&](int lane) {
        return known + lane < s.last() && Warp::load_acquire(s.complete(known + lane), s.is_led()) == accepted;
      });
      if (known > last) break;
      if (Warp::load_acquire(s.complete(known), s.is_led()) == rejected) {
        if (known > b) break;
        ring.close(warp, i);
        return;
      }
      wait.pause();
    }
    ring.fill(warp, i, s.transforms + index_t(b) * BlockTransform<K>::stride, BlockTransform<K>::words);
  }
}

}  // namespace gpucholmod::block_columns
