#pragma once

#include "cuda/kernels/member.h"

/// A pass over a member by a warp, whose threads have up to C columns each.
namespace gpucholmod::cuda {

/// Rows on their way: as many as registers and the cache of instructions have room for.
template <int K, int C>
constexpr int rows_ahead = K * C > 16 ? 1 : K * C > 4 ? 2 : 4;

/// What a warp shares.
template <int K>
struct WarpRoom {
  RowSteps<K> rows[2];
};

/// The columns j, j + 32 ... of a thread of a warp that has a member by itself, and their entries of the rows that come
/// next.
template <class T, int K, int C>
struct Columns {
  ColumnOfV<K> V[C];
  double ahead[C][rows_ahead<K, C>];
  Numbers<T> next;  ///< R(i + rows_ahead, j)
  Numbers<T> out;   ///< out(i, j)
};

/// Rows WARP slot ... of a member, in `slot`. Returns the first that fails, or -1.
template <int K, int C, int slot, class Team, class T>
GPUCHOLMOD_HOST_DEVICE int take_rows_of_slot(const Team& team, const MemberPass<T>& own, WarpRoom<K>& room,
                                             typename Team::template PerThread<Columns<T, K, C>>& columns) {
  struct AtRow {
    double r[C], products[C];
    ColumnOfV<K> v;
  };
  constexpr int ahead = rows_ahead<K, C>;
  const int n = own.n, last = n < (slot + 1) * WARP ? n : (slot + 1) * WARP;
  typename Team::template PerThread<AtRow> at;
  typename Team::template PerThread<double> diagonal;
  GPUCHOLMOD_NO_UNROLL for (int first = slot * WARP; first < last; first += ahead) {
    GPUCHOLMOD_UNROLL for (int u = 0; u < ahead; ++u) {
      const int i = first + u, lane = i % WARP;
      if (i >= last) break;
      RowSteps<K>& row = room.rows[i % 2];
      team.threads([&](int j) {
        GPUCHOLMOD_UNROLL for (int c = slot; c < C; ++c) {
          at[j].r[c] = columns[j].ahead[c][u] * own.in;
          const int column = j + c * WARP;
          if (column < n && i + ahead <= column) columns[j].ahead[c][u] = columns[j].next.get(c * WARP);
        }
        columns[j].next += n - 1 - i - ahead;
        if (j == lane) publish_row<K>(row, at[j].r[slot], columns[j].V[slot], own.signs);
      });
      team.sync_warp();
      double before = row.r;
      GPUCHOLMOD_UNROLL_BY(K > 4 ? 1 : 2) for (int s = 0; s < 2; ++s) {
        if (s == 1 && !own.signs.both) break;
        const double sign = s == 0 ? own.signs.first : -1;
        team.threads([&](int j) {
          at[j].v = Team::template load<K>(row.v[s]);
          GPUCHOLMOD_UNROLL for (int c = slot; c < C; ++c) at[j].products[c] = product<K>(at[j].v, columns[j].V[c]);
          diagonal[j] = at[j].products[slot];
        });
        double square = team.broadcast(0, diagonal, lane);
        if (row.up != 1) square = product<K>(Team::template load<K>(row.v[s]), Team::template load<K>(row.v[s]));
        Step step;
        if (!find_step<Team>(before, square, sign, step)) return i;
        if (step.inverse == 0) continue;
        team.threads([&](int j) {
          GPUCHOLMOD_UNROLL for (int c = slot; c < C; ++c)
            at[j].r[c] = take_step<K>(at[j].v, at[j].products[c], step, sign, at[j].r[c], columns[j].V[c]);
        });
      }
      const double made = before * (row.up == 1 ? 1 : 1 / up_from_tiny);
      team.threads([&](int j) {
        GPUCHOLMOD_UNROLL for (int c = slot; c < C; ++c) {
          const int column = j + c * WARP;
          if (column < n && i <= column)
            columns[j].out.set((c == slot && j == lane ? made : at[j].r[c]) * own.up, c * WARP);
        }
        columns[j].out += n - 1 - i;
      });
    }
  }
  return -1;
}

template <int K, int C, int slot, class Team, class T>
GPUCHOLMOD_HOST_DEVICE int take_rows_from(const Team& team, const MemberPass<T>& own, WarpRoom<K>& room,
                                          typename Team::template PerThread<Columns<T, K, C>>& columns) {
  const int failed = take_rows_of_slot<K, C, slot>(team, own, room, columns);
  if constexpr (slot + 1 < C) {
    if (failed < 0 && own.n > (slot + 1) * WARP) return take_rows_from<K, C, slot + 1>(team, own, room, columns);
  }
  return failed;
}

/// A pass over one member of order n <= 32 C, by a warp. Where row i fails, pivots[member] <- i.
template <int K, int C, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void modify_by_warp(const Team& team, const BatchPass<T>& pass, index_t member,
                                           WarpRoom<K>& room) {
  const MemberPass<T> own(pass, member);
  int failed = pass.pivots[member];
  if (failed < -1) return;  // lost in an earlier pass
  if (failed < 0) {
    typename Team::template PerThread<Columns<T, K, C>> columns;
    team.threads([&](int j) {
      GPUCHOLMOD_UNROLL for (int c = 0; c < C; ++c) {
        load_V<K>(pass, member, own.in, j + c * WARP, columns[j].V[c]);
        GPUCHOLMOD_UNROLL for (int u = 0; u < rows_ahead<K, C>; ++u)
          columns[j].ahead[c][u] =
              j + c * WARP < own.n && u <= j + c * WARP ? own.R.get(row_of(own.n, u) + j + c * WARP) : 0;
      }
      columns[j].next = own.R + (row_of(own.n, rows_ahead<K, C>) + j);
      columns[j].out = own.out + j;
    });
    failed = take_rows_from<K, C, 0>(team, own, room, columns);
  }
  team.sync_warp();
  team.threads([&](int j) { finish_member(pass, member, own, failed, j, WARP); });
}

}  // namespace gpucholmod::cuda
