#pragma once

#include "block_columns/householder.h"

/// The plain path: Householder steps for one row block after the other, two launches each, and one launch for all row
/// blocks above the panel, whose transforms are there. It needs neither tensor cores nor blocks of threads that wait
/// for each other. Between launches V is in job.saved, strip by strip.
namespace gpucholmod::block_columns {

template <class T, int K, class Team>
class Stepwise {
  using Warp = typename Team::Warp;
  using Registers = State<Warp, K>;

 public:
  GPUCHOLMOD_HOST_DEVICE Stepwise(Team team, const Job<T>& job, int strip)
      : team_(team), job_(job), first_(strip * BLOCKS), column_(index_t(strip - job.first) * STRIP) {}

  /// job.saved <- V of the strip, past the row blocks above the panel.
  GPUCHOLMOD_HOST_DEVICE void catch_up() {
    team_.warps_sync([&](Warp& warp) {
      Registers state;
      load_V(warp, state, job_, first_);
      save_V(warp, state, job_, column_);
    });
    GPUCHOLMOD_NO_UNROLL for (int b = 0; b < job_.first * BLOCKS; ++b) apply(b);
  }

  /// The transform of row block b, which is one of the strip's own. A downdate that fails sets pass_state->pivot and stop.
  /// `failed` is one word of shared memory.
  GPUCHOLMOD_HOST_DEVICE void find(int b, int* failed) {
    if (job_.shared.pass_state->stop != 0) return;
    typename Team::template PerWarp<Registers> states;
    team_.warps_sync([&](Warp& warp) { restore_V(warp, states[warp], job_, column_); });
    const int x = b % BLOCKS;
    const int failing = find_householder<K>(team_, states, x * (WARPS / BLOCKS), transform(b),
                                            job_.R + (column_ + x * NB) * job_.ld + index_t(b) * NB, job_.ld,
                                            job_.shared.sigma, failed);
    if (failing >= 0) team_.stop(job_.shared.pass_state, b * NB + failing);
  }

  /// Row block b, on the columns of the strip that it reaches.
  GPUCHOLMOD_HOST_DEVICE void apply(int b) {
    if (job_.shared.pass_state->stop != 0) return;
    team_.warps_sync([&](Warp& warp) {
      const index_t first = column_ + warp.id * WARP_COLUMNS, into = index_t(first_ - b) * NB + warp.id * WARP_COLUMNS;
      if (into < 0) return;
      Registers state;
      restore_V(warp, state, job_, column_);
      const index_t offset = first * job_.ld + index_t(b) * NB;
      apply_householder<K>(warp, state, transform(b), job_.R + offset, job_.out ? job_.out + offset : nullptr, job_.ld,
                           job_.shared.sigma, into < NB ? Diagonal{-int(into)} : Diagonal{});
      save_V(warp, state, job_, column_);
    });
  }

 private:
  GPUCHOLMOD_HOST_DEVICE double* transform(int b) const { return job_.shared.transforms + index_t(b) * Transform<K>::words; }

  Team team_;
  const Job<T>& job_;
  int first_;       ///< the strip's first row block on the diagonal
  index_t column_;  ///< its first column, counted from the panel's
};

}  // namespace gpucholmod::block_columns
