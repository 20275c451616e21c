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

  /// job.saved <- V of the strip.
  GPUCHOLMOD_HOST_DEVICE void begin() {
    const index_t ldv = index_t(job_.shared.strips) * STRIP;
    team_.warps_sync([&](Warp& warp) {
      const double* from = job_.V + index_t(first_) * NB + warp.id * WARP_COLUMNS;
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
        Tile<Warp> V;
        warp.each([&](int lane) {
          const double* at = from + (8 * j + 2 * thread_in_group(lane)) * ldv + group_id(lane);
          V[lane] = {{at[0], at[ldv], at[8], at[ldv + 8]}};
        });
        store_tile(warp, V, saved(warp, j), 8);
      }
    });
  }

  /// begin(), and the row blocks above the panel.
  GPUCHOLMOD_HOST_DEVICE void catch_up() {
    begin();
    GPUCHOLMOD_NO_UNROLL for (int b = 0; b < job_.first * BLOCKS; ++b) apply(b);
  }

  /// The transform of row block b, which is one of the strip's own. A downdate that fails sets pass_state->pivot and stop.
  /// `failed` is one word of shared memory.
  GPUCHOLMOD_HOST_DEVICE void find(int b, int* failed) {
    if (job_.shared.pass_state->stop != 0) return;
    typename Team::template PerWarp<Registers> states;
    team_.warps_sync([&](Warp& warp) { load(warp, states[warp]); });
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
      load(warp, state);
      const index_t offset = first * job_.ld + index_t(b) * NB;
      apply_householder<K>(warp, state, transform(b), job_.R + offset, job_.out ? job_.out + offset : nullptr, job_.ld,
                           job_.shared.sigma, into < NB ? Diagonal{-int(into)} : Diagonal{});
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) store_tile(warp, state.V[j], saved(warp, j), 8);
    });
  }

 private:
  GPUCHOLMOD_HOST_DEVICE double* transform(int b) const { return job_.shared.transforms + index_t(b) * Transform<K>::words; }
  GPUCHOLMOD_HOST_DEVICE double* saved(const Warp& warp, int j) const {
    return job_.saved + (column_ + warp.id * WARP_COLUMNS) * K + j * 8 * WARP_COLUMNS;
  }
  GPUCHOLMOD_HOST_DEVICE void load(const Warp& warp, Registers& state) const {
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = load_tile<Access::transform>(warp, saved(warp, j), 8);
  }

  Team team_;
  const Job<T>& job_;
  int first_;       ///< the strip's first row block on the diagonal
  index_t column_;  ///< its first column, counted from the panel's
};

}  // namespace gpucholmod::block_columns
