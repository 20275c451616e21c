#pragma once

#include <cmath>

#include "base/host_device.h"
#include "base/types.h"

/// A member of a batch: the work of a team of threads, a warp, or, for larger members, a block. Written once, over a class Team: DeviceTeam
/// (batch.cuh) is the real thing, HostTeam (tests/core/test_member.cpp) runs the threads one after the other.
///
/// The triangle lies packed by rows: R(i, j) at row_of(n, i) + j. Every row is read once and written once for up to K columns of V, which stay
/// in the registers, V(j, .) with the thread that has column j. Row i takes one reflection for the columns that are added, and then a hyperbolic
/// one for those that are taken away, v = V(i, .) of the one sign:
///
///   d^2 = r_ii^2 +- v'v      r~_j = (r_ii r_j +- v'V(j, .)) / d      V(j, .) <- V(j, .) - v (r_j + r~_j) / (r_ii + d)
///
/// the latter in the mixed form, from the new r. What takes time is that rows wait for each other: a warp by itself has no barriers, so that one
/// thread with four columns is better than four with one, and many members are under way. In a block rows go by chunks: the warp that has the
/// chunk's diagonal finds its reflections and takes them itself, and after a barrier the warps to its right take them while it goes on.
/// Reference: inst/design/batches.md; inst/design/block-householder.md for one row.
namespace gpucholmod::cuda {

template <class T>
GPUCHOLMOD_HOST_DEVICE constexpr T largest() { return sizeof(T) == 8 ? T(0x1.fffffffffffffp1023) : T(0x1.fffffep127); }

constexpr int WARP = 32;
constexpr int CHUNK = 4;  ///< rows of R that are on their way while others are done; divides WARP

/// R(i, j) of a packed triangle of order n is at row_of(n, i) + j.
GPUCHOLMOD_HOST_DEVICE constexpr index_t row_of(index_t n, index_t i) { return i * (2 * n - i - 1) / 2; }
GPUCHOLMOD_HOST_DEVICE constexpr index_t words_of(index_t n) { return n * (n + 1) / 2; }

/// What numbers of a member are multiplied by on their way in and out, and out of the last pass.
struct Factors {
  double in, out, last;
};

/// What `pivots` tells of a member after all of it has been done: that a result cannot be held, and the column.
GPUCHOLMOD_HOST_DEVICE constexpr int too_large_at(int j) { return -2 - 2 * j; }
GPUCHOLMOD_HOST_DEVICE constexpr int vanished_at(int j) { return -3 - 2 * j; }

/// Up to K columns of V, of every member. Strides are from one member to the next, 0 where something is common to all.
template <class T>
struct BatchPass {
  index_t n;
  const T* R;              ///< packed triangles
  T* out;                  ///< may be R
  const T* origin;         ///< what `out` becomes where a member fails, unless it is `out`
  const double* V;         ///< n x k each
  index_t V_stride;
  const int* order;        ///< the columns of V as they are taken, added ones first, k each; null: as they are
  const double* by;        ///< what each of these is multiplied by; null where `order` is
  const int* added;        ///< how many are added
  index_t order_stride, added_stride;
  const Factors* factors;  ///< null: 1
  int first, columns;      ///< in that order, of this pass
  bool last;               ///< no pass comes behind this one
  bool may_overflow;       ///< results may be too large for T
  int* pivots;             ///< of the members: below zero where none has failed; on exit the first row that does
};

/// One step of a row: r~_j = inverse (before r_j + sign v'V(j, .)), V(j, .) -= v beta (r_j + r~_j). inverse = 0: nothing is to be done.
struct Step {
  double before, inverse, beta;
};

/// What row i does.
template <int K>
struct alignas(16) RowSteps {
  double v[2][K];  ///< times `up`; of one sign each, zeros for the other, the second only where there are both
  double r, up;    ///< r_ii, which is multiplied so that squares do not vanish
  Step steps[2];
};

/// What a team shares: in a block, a chunk that is found while the one before it is taken.
template <int K>
struct BlockRoom {
  RowSteps<K> rows[2][CHUNK];
  int failing[2];  ///< the first row of the chunk that fails, or -1
};
template <int K>
struct WarpRoom {
  RowSteps<K> rows[2];
};

/// Columns of a pass by their sign.
struct Signs {
  int added;
  bool both;
  double first;  ///< what the first step does; the second takes away
  GPUCHOLMOD_HOST_DEVICE Signs(int added, int columns) : added(added), both(added > 0 && added < columns), first(added > 0 ? 1 : -1) {}
};

template <int K>
struct ColumnOfV {
  double q[K];
};
/// x'y, in four chains at most.
template <int K>
GPUCHOLMOD_HOST_DEVICE double product(const ColumnOfV<K>& x, const ColumnOfV<K>& y) {
  constexpr int chains = K < 4 ? K : 4;
  double sums[chains];
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) sums[q % chains] = q < chains ? x.q[q] * y.q[q] : fma(x.q[q], y.q[q], sums[q % chains]);
  return chains == 4 ? (sums[0] + sums[1]) + (sums[chains / 2] + sums[chains - 1]) : sums[0];
}

constexpr double tiny = 0x1p-300, up_from_tiny = 0x1p600;

/// Where the numbers of a row are all tiny, so that squares might vanish.
template <int K>
GPUCHOLMOD_HOST_DEVICE_CALL void lift(RowSteps<K>& row, bool both) {
  double largest = row.r;
  for (int q = 0; q < K; ++q) largest = fmax(largest, fmax(fabs(row.v[0][q]), both ? fabs(row.v[1][q]) : 0));
  if (!(largest < tiny)) return;
  row.up = up_from_tiny;
  row.r *= row.up;
  for (int q = 0; q < K; ++q) row.v[0][q] *= row.up;
  for (int q = 0; q < K && both; ++q) row.v[1][q] *= row.up;
}

/// r_ii and V(i, .), for all that need them; by the thread that has column i.
template <int K>
GPUCHOLMOD_HOST_DEVICE void publish_row(RowSteps<K>& row, double r, const ColumnOfV<K>& v, const Signs& signs) {
  row.r = r;
  row.up = 1;
  if (!signs.both) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) row.v[0][q] = v.q[q];
  } else {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) {
      row.v[0][q] = q < signs.added ? v.q[q] : 0;
      row.v[1][q] = q < signs.added ? 0 : v.q[q];
    }
  }
  if (r <= tiny) lift<K>(row, signs.both);
}

/// The step from r_ii, `before`, which becomes the new one, with v'v. False: the row fails.
template <class Team>
GPUCHOLMOD_HOST_DEVICE bool find_step(double& before, double square, double sign, Step& step) {
  const double squared = fma(sign, square, Team::rounded_square(before));  // exactly zero where it should be
  step = {before, 0, 0};
  if (square == 0) return true;  // to the bit
  step.inverse = Team::reciprocal_root(squared);
  const double d = squared * step.inverse;
  step.beta = Team::reciprocal(before + d);
  before = d;
  return squared > 0;
}

/// What a step makes of R(i, j), returned, and of V(j, .); uv: u'v.
template <int K>
GPUCHOLMOD_HOST_DEVICE double take_step(const ColumnOfV<K>& u, double uv, const Step& step, double sign, double r, ColumnOfV<K>& v) {
  const double made = step.inverse * fma(step.before, r, sign * uv), by = (r + made) * step.beta;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) v.q[q] -= u.q[q] * by;
  return made;
}

/// What all threads know of their member.
template <class T>
struct MemberPass {
  int n;
  const T *R, *origin;
  T* out;
  double in, up;
  Signs signs;

  GPUCHOLMOD_HOST_DEVICE MemberPass(const BatchPass<T>& pass, index_t member)
      : n(int(pass.n)),
        R(pass.R + member * words_of(pass.n)),
        origin(pass.origin + member * words_of(pass.n)),
        out(pass.out + member * words_of(pass.n)),
        in(pass.factors ? pass.factors[member].in : 1),
        up(!pass.factors ? 1 : pass.last ? pass.factors[member].last : pass.factors[member].out),
        signs(pass.added[member * pass.added_stride] - pass.first, pass.columns) {}
};

/// V(j, .) of a pass; all loads are under way before the first is used.
template <int K, class T>
GPUCHOLMOD_HOST_DEVICE void load_V(const BatchPass<T>& pass, index_t member, double in, int j, ColumnOfV<K>& V) {
  const double* const from = pass.V + member * pass.V_stride + j;
  const int columns = j < pass.n ? pass.columns : 0;
  if (!pass.order) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] = q < columns ? from[(pass.first + q) * pass.n] : 0;
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] *= in;
    return;
  }
  const index_t at = member * pass.order_stride + pass.first;
  int order[K];
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) order[q] = q < pass.columns ? pass.order[at + q] : 0;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] = q < columns ? from[order[q] * pass.n] : 0;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] *= q < columns ? pass.by[at + q] * in : 0;
}

/// After the last row: where one has failed, the member is put back; otherwise column j is looked at.
template <class T>
GPUCHOLMOD_HOST_DEVICE void finish_member(const BatchPass<T>& pass, index_t member, const MemberPass<T>& own, int failed, int j, int threads) {
  if (failed < 0) {
    for (; j < own.n; j += threads) {
      if (!(own.out[row_of(own.n, j) + j] > 0)) pass.pivots[member] = vanished_at(j);
      for (int i = 0; i <= j && pass.may_overflow; ++i)
        if (!(fabs(double(own.out[row_of(own.n, i) + j])) <= double(largest<T>()))) pass.pivots[member] = too_large_at(j);
    }
    return;
  }
  if (j == 0) pass.pivots[member] = failed;
  if (own.out != own.origin)
    for (index_t at = j; at < words_of(own.n); at += threads) own.out[at] = own.origin[at];
}

/// Rows on their way: as many as registers and the cache of instructions have room for.
template <int K, int C>
constexpr int rows_ahead = K * C > 16 ? 1 : K * C > 4 ? 2 : 4;

/// The columns j, j + 32 ... of a thread of a warp that has a member by itself, and their entries of the rows that come next.
template <int K, int C, class T>
struct Columns {
  ColumnOfV<K> V[C];
  T ahead[C][rows_ahead<K, C>];
  const T* next;  ///< R(i + rows_ahead, j)
  T* out;         ///< out(i, j)
};

/// Rows WARP slot ... of a member, in `slot`. Returns the first that fails, or -1.
template <int K, int C, int slot, class Team, class T>
GPUCHOLMOD_HOST_DEVICE int take_rows_of_slot(const Team& team, const MemberPass<T>& own, WarpRoom<K>& room,
                                             typename Team::template PerThread<Columns<K, C, T>>& columns) {
  struct Numbers {
    double r[C], products[C];
    ColumnOfV<K> v;
  };
  constexpr int ahead = rows_ahead<K, C>;
  const int n = own.n, last = n < (slot + 1) * WARP ? n : (slot + 1) * WARP;
  typename Team::template PerThread<Numbers> at;
  typename Team::template PerThread<double> diagonal;
  GPUCHOLMOD_NO_UNROLL for (int first = slot * WARP; first < last; first += ahead) {
    GPUCHOLMOD_UNROLL for (int u = 0; u < ahead; ++u) {
      const int i = first + u, lane = i % WARP;
      if (i >= last) break;
      RowSteps<K>& row = room.rows[i % 2];
      team.threads([&](int j) {
        GPUCHOLMOD_UNROLL for (int c = slot; c < C; ++c) {
          at[j].r[c] = double(columns[j].ahead[c][u]) * own.in;
          const int column = j + c * WARP;
          if (column < n && i + ahead <= column) columns[j].ahead[c][u] = columns[j].next[c * WARP];
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
          if (column < n && i <= column) columns[j].out[c * WARP] = T((c == slot && j == lane ? made : at[j].r[c]) * own.up);
        }
        columns[j].out += n - 1 - i;
      });
    }
  }
  return -1;
}

template <int K, int C, int slot, class Team, class T>
GPUCHOLMOD_HOST_DEVICE int take_rows_from(const Team& team, const MemberPass<T>& own, WarpRoom<K>& room,
                                          typename Team::template PerThread<Columns<K, C, T>>& columns) {
  const int failed = take_rows_of_slot<K, C, slot>(team, own, room, columns);
  if constexpr (slot + 1 < C) {
    if (failed < 0 && own.n > (slot + 1) * WARP) return take_rows_from<K, C, slot + 1>(team, own, room, columns);
  }
  return failed;
}

/// A pass over one member of order n <= 32 C, by a warp. Where row i fails, pivots[member] <- i.
template <int K, int C, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void modify_by_warp(const Team& team, const BatchPass<T>& pass, index_t member, WarpRoom<K>& room) {
  const MemberPass<T> own(pass, member);
  int failed = pass.pivots[member];
  if (failed < 0) {
    typename Team::template PerThread<Columns<K, C, T>> columns;
    team.threads([&](int j) {
      GPUCHOLMOD_UNROLL for (int c = 0; c < C; ++c) {
        load_V<K>(pass, member, own.in, j + c * WARP, columns[j].V[c]);
        GPUCHOLMOD_UNROLL for (int u = 0; u < rows_ahead<K, C>; ++u)
          columns[j].ahead[c][u] = j + c * WARP < own.n && u <= j + c * WARP ? own.R[row_of(own.n, u) + j + c * WARP] : T(0);
      }
      columns[j].next = own.R + row_of(own.n, rows_ahead<K, C>) + j;
      columns[j].out = own.out + j;
    });
    failed = take_rows_from<K, C, 0>(team, own, room, columns);
  }
  team.sync_warp();
  team.threads([&](int j) { finish_member(pass, member, own, failed, j, WARP); });
}

/// The column of a thread of a block that has a member.
template <int K, class T>
struct OwnColumn {
  int j;  ///< -1 for threads without one
  ColumnOfV<K> V;
  T ahead[CHUNK];
  const T* next;
  T* out;

  /// R(i, j), u = i % CHUNK; row i + CHUNK starts.
  GPUCHOLMOD_HOST_DEVICE double read(int n, int i, int u) {
    const double r = double(ahead[u]);
    if (i + CHUNK <= j) ahead[u] = *next;
    next += n - 1 - i - CHUNK;
    return r;
  }
  GPUCHOLMOD_HOST_DEVICE void write(int n, int i, double r) {
    if (i <= j) *out = T(r);
    out += n - 1 - i;
  }
};

/// Rows of a chunk that another warp has found.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void take_chunk(const RowSteps<K>* rows, int first, int last, const MemberPass<T>& own, OwnColumn<K, T>& column) {
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
                                      typename Team::template PerThread<OwnColumn<K, T>>& columns) {
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
GPUCHOLMOD_HOST_DEVICE void modify_by_block(const Team& team, const BatchPass<T>& pass, index_t member, BlockRoom<K>& room) {
  const MemberPass<T> own(pass, member);
  typename Team::template PerThread<OwnColumn<K, T>> columns;
  team.threads([&](int j) {
    load_V<K>(pass, member, own.in, j, columns[j].V);
    columns[j].j = j < own.n ? j : -1;
    GPUCHOLMOD_UNROLL for (int u = 0; u < CHUNK; ++u) columns[j].ahead[u] = u <= columns[j].j ? own.R[row_of(own.n, u) + j] : T(0);
    columns[j].next = own.R + row_of(own.n, CHUNK) + j;
    columns[j].out = own.out + j;
  });
  int failed = pass.pivots[member];
  GPUCHOLMOD_NO_UNROLL for (int first = 0; first < own.n && failed < 0; first += CHUNK) {
    const int warp = first / WARP, half = first / CHUNK % 2;
    RowSteps<K>* const rows = room.rows[half];
    if (team.has(warp)) {
      const int failing = find_chunk<K, Team, T>(team, rows, first, own, columns);
      team.warp(warp, [&](int j) {
        if (j % WARP == 0) room.failing[half] = failing;
      });
    }
    team.sync();
    failed = room.failing[half];
    team.later_warps(warp, [&](int j) { take_chunk<K, Team, T>(rows, first, failed < 0 ? own.n : failed, own, columns[j]); });
  }
  team.sync();
  team.threads([&](int j) { finish_member(pass, member, own, failed, j, team.size()); });
}

/// Right-hand sides of every member: B (n x m each).
template <class T>
struct BatchSolve {
  index_t n, m;
  const T* R;
  double* B;
};

/// B <- R'^-1 B of columns [first, first + K) of one member, row by row; x (2): room of a team.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void substitute_forward(const Team& team, const BatchSolve<T>& solve, index_t member, index_t first, double (*x)[K]) {
  const int n = int(solve.n), columns = int(solve.m - first < K ? solve.m - first : K);
  const T* const R = solve.R + member * words_of(n);
  double* const B = solve.B + (member * solve.m + first) * n;
  typename Team::template PerThread<ColumnOfV<K>> b;
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] = q < columns && j < n ? B[index_t(q) * n + j] : 0;
  });
  GPUCHOLMOD_NO_UNROLL for (int i = 0; i < n; ++i) {
    team.warp(i / WARP, [&](int thread) {
      if (thread != i) return;
      const double r = double(R[row_of(n, i) + i]);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) x[i % 2][q] = b[thread].q[q] /= r;
    });
    team.sync();
    team.threads([&](int j) {
      if (j <= i || j >= n) return;
      const double r = double(R[row_of(n, i) + j]);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] -= r * x[i % 2][q];
    });
  }
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q)
      if (q < columns && j < n) B[index_t(q) * n + j] = b[j].q[q];
  });
}

/// B <- R^-1 B likewise, from the last column of R on.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void substitute_back(const Team& team, const BatchSolve<T>& solve, index_t member, index_t first, double (*x)[K]) {
  const int n = int(solve.n), columns = int(solve.m - first < K ? solve.m - first : K);
  const T* const R = solve.R + member * words_of(n);
  double* const B = solve.B + (member * solve.m + first) * n;
  typename Team::template PerThread<ColumnOfV<K>> b;
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] = q < columns && j < n ? B[index_t(q) * n + j] : 0;
  });
  GPUCHOLMOD_NO_UNROLL for (int i = n - 1; i >= 0; --i) {
    team.warp(i / WARP, [&](int thread) {
      if (thread != i) return;
      const double r = double(R[row_of(n, i) + i]);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) x[i % 2][q] = b[thread].q[q] /= r;
    });
    team.sync();
    team.threads([&](int j) {
      if (j >= i) return;
      const double r = double(R[row_of(n, j) + i]);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] -= r * x[i % 2][q];
    });
  }
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q)
      if (q < columns && j < n) B[index_t(q) * n + j] = b[j].q[q];
  });
}

}  // namespace gpucholmod::cuda
