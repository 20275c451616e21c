#pragma once

#include "block_columns/segment.h"

/// What goes from global to shared memory for a team, by one warp of its own, through a staging ring: slots in turn,
/// each of which is filled, waited for, and released by every warp of the team. A team goes on until everything has
/// come, or the ring is closed.
namespace gpucholmod::block_columns {

/// P of row blocks up to `end`, as it is published, or up to one that is rejected; those that columns are taken past on
/// this rank. Waits for the others too, and on several ranks for that of the rejected row block: the flags of a rank
/// are cleared behind its launch, when nothing may be sent there any more.
template <int K, class S, class Warp, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void feed_P(const Warp& warp, const S& s, int end, StagingRing& ring) {
  const int unneeded = s.several() ? 0 : 1;
  int known = s.start();  // of the row blocks before this one it is known that they are there
  GPUCHOLMOD_NO_UNROLL for (int b = s.first; b < end; ++b) {
    const bool own = s.own_row_block(b) == b;
    const int i = s.number_of_row_block(s.own_row_block(b));  // of the next that is filled
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

/// Transforms of accepted row blocks; each when that of `later` row blocks behind it is accepted too, as far as there
/// is one.
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
