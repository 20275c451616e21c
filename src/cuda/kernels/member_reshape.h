#pragma once

#include "cuda/kernels/fill_triangle.h"
#include "cuda/kernels/member_move.h"

/// The insertion and deletion of rows and columns of the members of a batch, from one packed triangle to another. The
/// code is written over a class Team, as in member.h.
namespace gpucholmod::cuda {

/// The order of a member, and the place of its first new row.
struct MemberRows {
  int order, at;
};

/// The state of the diagonal of a member that gets rows.
enum class NewDiagonal : int { good, not_positive, vanished };

/// Describes p rows and columns that every member gets. The new columns of R are found as if they came last.
template <class T>
struct BatchRows {
  int n, made_n, p;         ///< orders of the old and the new triangles; number of new rows
  Numbers<T> R, out;        ///< old and new packed triangles
  const MemberRows* rows;   ///< order and new rows of each member
  const double* X;          ///< new columns of A, (n + p) x p for each member, in the order of the new rows
  index_t X_stride;         ///< distance from one member to the next, or 0
  double* C;                ///< new columns of A without the new rows, then those of R; n x p for each member
  double* corner;           ///< new rows of these columns, p x p for each member
  const double* bounds;     ///< bound of the norms of each old factor's columns
  double* after;            ///< bound of the norms of each new factor's columns, set on exit
  NewDiagonal* found;       ///< state of each member
  int* any;                 ///< flag that becomes 1 if a member is not good
  int* needs_look;          ///< flag that becomes 1 if a number of X is not finite, or too large for T
  int sides;                ///< number of right-hand sides, which get p rows each; 0: none
  const double* z;          ///< right-hand sides, n x sides for each member
  const double* b;          ///< new rows of b, p x sides for each member; z = R'^-1 b
  double* rest;             ///< new rows of z if they come last, p x sides for each member
  double* made_z;           ///< new z, (n + p) x sides for each member, of which rows up to the new order are used
};

/// Splits the new columns of a member into C and the corner, and checks their numbers (`needs_look`). Rows beyond the
/// member's order become zero.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void part_new_columns(const Team& team, const BatchRows<T>& of, index_t member) {
  const MemberRows own = of.rows[member];
  const double* const X = of.X + member * of.X_stride;
  double *const C = of.C + member * of.n * of.p, *const corner = of.corner + member * of.p * of.p;
  team.threads([&](int thread) {
    bool look = false;
    for (int q = 0; q < of.p; ++q) {
      const double* const column = X + index_t(q) * (of.n + of.p);
      for (int i = thread; i < of.n; i += team.size()) {
        const double x = i < own.order ? column[i < own.at ? i : i + of.p] : 0;
        C[i + index_t(q) * of.n] = x;
        look = look || !(fabs(x) <= Numbers<double>::largest());
      }
      for (int s = thread; s < of.p; s += team.size()) {
        const double x = s <= q ? column[own.at + s] : 0;
        corner[s + q * of.p] = x;
        look = look || !(fabs(x) <= Numbers<double>::largest()) || (s == q && sqrt(fmax(x, 0.0)) > of.R.largest());
      }
    }
    if (look) *of.needs_look = 1;
  });
}

/// Computes the new rows of a member's right-hand sides as if these rows came last. C has the new columns of the
/// factor, `corner` the factor of the corner. Runs in a team of one warp.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void extend_sides(const Team& team, const BatchRows<T>& of, index_t member) {
  const double *const C = of.C + member * of.n * of.p, *const corner = of.corner + member * of.p * of.p;
  for (int s = 0; s < of.sides; ++s) {
    const index_t side = member * of.sides + s;
    const double *const z = of.z + side * of.n, *const b = of.b + side * of.p;
    double* const rest = of.rest + side * of.p;
    for (int q = 0; q < of.p; ++q) {
      typename Team::template PerThread<double> products;
      team.threads([&](int thread) {
        double sum = 0;
        for (int i = thread; i < of.rows[member].order; i += WARP) sum = fma(C[i + index_t(q) * of.n], z[i], sum);
        for (int t = thread; t < q; t += WARP) sum = fma(corner[t + q * of.p], rest[t], sum);
        products[thread] = sum;
      });
      const double made = (b[q] - team.sum(products)) / corner[q + q * of.p];
      team.sync_warp();
      team.threads([&](int thread) {
        if (thread == 0) rest[q] = made;
      });
      team.sync_warp();
    }
  }
}

/// Replaces the corner of a member by the Cholesky factor of the corner less C'C; C has been multiplied by R'^-1.
/// Then extends the right-hand sides and records the state of the member. Runs in a team of one warp.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void factorise_corner(const Team& team, const BatchRows<T>& of, index_t member) {
  const double* const C = of.C + member * of.n * of.p;
  double* const corner = of.corner + member * of.p * of.p;
  NewDiagonal found = NewDiagonal::good;
  double longest = 0;
  for (int q = 0; q < of.p; ++q) {
    longest = fmax(longest, corner[q + q * of.p]);
    for (int s = 0; s <= q; ++s) {
      typename Team::template PerThread<double> products;
      team.threads([&](int thread) {
        double sum = 0;
        for (int i = thread; i < of.n; i += WARP) sum = fma(C[i + index_t(s) * of.n], C[i + index_t(q) * of.n], sum);
        for (int t = thread; t < s; t += WARP) sum = fma(corner[t + s * of.p], corner[t + q * of.p], sum);
        products[thread] = sum;
      });
      const double left = corner[s + q * of.p] - team.sum(products);
      const double made = s == q ? sqrt(left) : left / corner[s + s * of.p];
      if (s == q && !(left > 0)) found = NewDiagonal::not_positive;
      if (s == q && found == NewDiagonal::good && !(double(T(made)) >= of.R.least_normal()))
        found = NewDiagonal::vanished;
      team.sync_warp();
      team.threads([&](int thread) {
        if (thread == 0) corner[s + q * of.p] = made;
      });
      team.sync_warp();
    }
  }
  extend_sides(team, of, member);
  team.threads([&](int thread) {
    if (thread != 0) return;
    of.found[member] = found;
    if (found != NewDiagonal::good) *of.any = 1;
    const double before = of.bounds[member], longer = sqrt(longest) * (1 + (sizeof(T) == 4 ? 0x1p-19 : 0x1p-48));
    of.after[member] = found == NewDiagonal::good ? fmax(before, fmin(longer, of.R.largest())) : before;
  });
}

/// Writes the rows of a member with the new rows at the end, and rows of the identity beyond. A member that is not good
/// keeps its old rows.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void append_rows(const Team& team, const BatchRows<T>& of, index_t member) {
  const int order = of.rows[member].order, made = of.found[member] == NewDiagonal::good ? order + of.p : order;
  const Numbers<T> R = of.R + member * words_of(of.n), out = of.out + member * words_of(of.made_n);
  const double *const C = of.C + member * of.n * of.p, *const corner = of.corner + member * of.p * of.p;
  fill_triangle(team, out, of.made_n, of.made_n, [&](int i, int j) {
    if (j < order) return R.get(row_of(of.n, i) + j);
    if (j >= made) return double(i == j);
    return i < order ? C[i + index_t(j - order) * of.n] : corner[i - order + (j - order) * of.p];
  });
  team.threads([&](int thread) {
    for (index_t at = thread; at < index_t(made) * of.sides; at += team.size()) {
      const index_t i = at % made, side = member * of.sides + at / made;
      of.made_z[side * (of.n + of.p) + i] = i < order ? of.z[side * of.n + i] : of.rest[side * of.p + i - order];
    }
  });
}

/// Moves the new rows of a member, which append_rows() has put at the end, to their places.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void place_rows(const Team& team, const BatchRows<T>& of, index_t member, ReshapeRoom& room) {
  const MemberRows own = of.rows[member];
  if (own.at == own.order || of.found[member] != NewDiagonal::good) return;
  const Numbers<T> R = of.out + member * words_of(of.made_n);
  const int rows = of.n + of.p;
  for (int q = 0; q < of.p; ++q) {
    shift(team, R, of.made_n, own.order + of.p, own.order + q, own.at + q, room);
    if (of.sides > 0)
      rotate_sides(team, of.made_z + member * of.sides * rows, of.sides, rows, own.order + q, own.at + q, room);
  }
  team.threads([&](int thread) {
    for (int j = own.at + thread; j < own.order + of.p; j += team.size()) {
      if (R.get(row_of(of.made_n, j) + j) >= R.least_normal()) continue;
      of.found[member] = NewDiagonal::vanished;
      *of.any = 1;
    }
  });
}

/// Describes p rows and columns that every member loses.
template <class T>
struct BatchRowsGone {
  int n, p;              ///< order of the old triangles, and number of deleted rows; the new triangles have order n - p
  Numbers<T> R, out;     ///< old and new packed triangles
  const int* orders;     ///< old order of each member
  const int* gone;       ///< deleted rows, p for each member, ascending
  index_t gone_stride;   ///< distance from one member to the next, or 0
  double* V;             ///< contents of the deleted rows, (n - p) x p for each member
};

/// Writes the rows of a member without the deleted ones to `out`, and V, whose columns are to be added to the member.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void remove_rows(const Team& team, const BatchRowsGone<T>& of, index_t member,
                                        ReshapeRoom& room) {
  const int made_n = of.n - of.p, order = of.orders[member] - of.p;
  const int* const gone = of.gone + member * of.gone_stride;
  const Numbers<T> R = of.R + member * words_of(of.n), out = of.out + member * words_of(made_n);
  team.threads([&](int thread) {
    for (int t = thread; t < order; t += team.size()) {
      int kept = t;
      for (int q = 0; q < of.p; ++q) kept += gone[q] <= kept;
      room.kept[t] = kept;
    }
  });
  team.sync();
  fill_triangle(team, out, made_n, made_n, [&](int i, int j) {
    return j >= order ? double(i == j) : R.get(row_of(of.n, room.kept[i]) + room.kept[j]);
  });
  double* const V = of.V + member * made_n * of.p;
  team.threads([&](int thread) {
    for (int q = 0; q < of.p; ++q)
      for (int t = thread; t < made_n; t += team.size())
        V[t + index_t(q) * made_n] =
            t < order && room.kept[t] > gone[q] ? R.get(row_of(of.n, gone[q]) + room.kept[t]) : 0;
  });
}

}  // namespace gpucholmod::cuda
