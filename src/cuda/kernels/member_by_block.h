#pragma once

#include "cuda/kernels/member.h"

/// A pass over a member by a block of a thread for each column.
namespace gpucholmod::cuda {

constexpr int CHUNK = 4;  ///< rows of R that are on their way while others are done; divides WARP

/// What a block shares: a chunk that is found while the one before it is taken.
template <int K>
struct BlockRoom {
  RowSteps<K> rows[2][CHUNK];
  int failing[2];  ///< the first row of the chunk that fails, or -1
};

/// The column of a thread of a block that has a member.
template <class T, int K>
struct OwnColumn {
  int j;  ///< -1 for threads without one
  ColumnOfV<K> V;
  double ahead[CHUNK];
  Numbers<T> next, out;

  /// R(i, j), u = i % CHUNK; row i + CHUNK starts.
  GPUCHOLMOD_HOST_DEVICE double read(int n, int i, int u) {
    const double r = ahead[u];
    if (i + CHUNK <= j) ahead[u] = next.get();
    next += n - 1 - i - CHUNK;
    return r;
  }
  GPUCHOLMOD_HOST_DEVICE void write(int n, int i, double r) {
    if (i <= j) out.set(r);
    out += n - 1 - i;
  }
};

/// Rows of a chunk that another warp has found.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void take_chunk(const RowSteps<K>* rows, int first, int last, const MemberPass<T>& own,
                                       OwnColumn<T, K>& column) {
  GPUCHOLMOD_UNROLL for (int u = 0; u < CHUNK; ++u) {
    const int i = first + u;
    if (i >= last) break;
    double r = column.read(own.n, i, u) * own.in;
    GPUCHOLMOD_UNROLL_BY(K > 4 ? 1 : 2) for (int s = 0; s < 2; ++s) {
      if (s == 1 && !own.signs.both) break;
      const Step step = rows[u].steps[s];
      if (step.inverse == 0) continue;
      const ColumnOfV<K> v = Team::template load<K>(rows[u].v[s]);
      r = take_step<K>(v, product<K>(v, column.V), step, s == 0 ? own.signs.first : -1, r, column.V);
    }
    column.write(own.n, i, r * own.up);
  }
}

/// Rows of a chunk on the diagonal, by the warp that has it. Returns the first that fails, or -1.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE int find_chunk(const Team& team, RowSteps<K>* rows, int first, const MemberPass<T>& own,
                                      typename Team::template PerThread<OwnColumn<T, K>>& columns) {
  const int warp = first / WARP;
  typename Team::template PerThread<double> r, products;
  typename Team::template PerThread<ColumnOfV<K>> v;
  GPUCHOLMOD_UNROLL for (int u = 0; u < CHUNK; ++u) {
    const int i = first + u;
    if (i >= own.n) break;
    RowSteps<K>& row = rows[u];
    team.warp(warp, [&](int j) {
      r[j] = columns[j].read(own.n, i, u) * own.in;
      if (j == i) publish_row<K>(row, r[j], columns[j].V, own.signs);
    });
    team.sync_warp();
    double before = row.r;
    GPUCHOLMOD_UNROLL_BY(K > 4 ? 1 : 2) for (int s = 0; s < 2; ++s) {
      if (s == 1 && !own.signs.both) break;
      const double sign = s == 0 ? own.signs.first : -1;
      team.warp(warp, [&](int j) {
        v[j] = Team::template load<K>(row.v[s]);
        products[j] = product<K>(v[j], columns[j].V);
      });
      double square = team.broadcast(warp, products, i);
      if (row.up != 1) square = product<K>(Team::template load<K>(row.v[s]), Team::template load<K>(row.v[s]));
      Step step;
      if (!find_step<Team>(before, square, sign, step)) return i;
      team.warp(warp, [&](int j) {
        if (j == i) row.steps[s] = step;
        if (step.inverse != 0) r[j] = take_step<K>(v[j], products[j], step, sign, r[j], columns[j].V);
      });
    }
    const double made = before * (row.up == 1 ? 1 : 1 / up_from_tiny);
    team.warp(warp, [&](int j) { columns[j].write(own.n, i, (j == i ? made : r[j]) * own.up); });
  }
  return -1;
}

/// A pass over one member by a block of a thread for each column. Where row i fails, pivots[member] <- i.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void modify_by_block(const Team& team, const BatchPass<T>& pass, index_t member,
                                            BlockRoom<K>& room) {
  const MemberPass<T> own(pass, member);
  int failed = pass.pivots[member];
  if (failed < -1) return;  // lost in an earlier pass
  typename Team::template PerThread<OwnColumn<T, K>> columns;
  team.threads([&](int j) {
    load_V<K>(pass, member, own.in, j, columns[j].V);
    columns[j].j = j < own.n ? j : -1;
    GPUCHOLMOD_UNROLL
    for (int u = 0; u < CHUNK; ++u) columns[j].ahead[u] = u <= columns[j].j ? own.R.get(row_of(own.n, u) + j) : 0;
    columns[j].next = own.R + (row_of(own.n, CHUNK) + j);
    columns[j].out = own.out + j;
  });
  GPUCHOLMOD_NO_UNROLL for (int first = 0; first < own.n && failed < 0; first += CHUNK) {
    const int warp = first / WARP, half = first / CHUNK % 2;
    RowSteps<K>* const rows = room.rows[half];
    if (team.has(warp)) {
      const int failing = find_chunk<K, Team>(team, rows, first, own, columns);
      team.warp(warp, [&](int j) {
        if (j % WARP == 0) room.failing[half] = failing;
      });
    }
    team.sync();
    failed = room.failing[half];
    team.later_warps(warp,
                     [&](int j) { take_chunk<K, Team>(rows, first, failed < 0 ? own.n : failed, own, columns[j]); });
  }
  team.sync();
  team.threads([&](int j) { finish_member(pass, member, own, failed, j, team.size()); });
}

}  // namespace gpucholmod::cuda
