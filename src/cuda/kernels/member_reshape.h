#pragma once

#include "cuda/kernels/fill_triangle.h"
#include "cuda/kernels/member_move.h"

/// Rows and columns of the members of a batch come and go, from one packed triangle to another. Written over a class
/// Team, as member.h is.
namespace gpucholmod::cuda {

/// A member's order, and the first of its new rows.
struct MemberRows {
  int order, at;
};

/// What is found out of a member that is to get rows.
enum class NewDiagonal : int { good, not_positive, vanished };

/// p rows and columns that every member gets. Columns of R that come of them are found as if they came last.
template <class T>
struct BatchRows {
  int n, made_n, p;         ///< orders of the triangles that are there, and of those that are made
  Numbers<T> R, out;        ///< packed triangles
  const MemberRows* rows;   ///< of the members
  const double* X;          ///< n + p x p each: the new columns of A, in the order of the new rows
  index_t X_stride;         ///< from one member to the next, or 0
  double* C;                ///< n x p each: the new columns of A without the new rows, then those of R
  double* corner;           ///< p x p each: their new rows
  const double* bounds;     ///< of the norms of each factor's columns
  double* after;            ///< on exit: the same of the new factor
  NewDiagonal* found;       ///< of the members
  int* any;                 ///< becomes 1 where one is not good
  int* needs_look;          ///< becomes 1 where a number of X is not finite, or too large for T
  int sides;                ///< right-hand sides that get as many rows, 0: none
  const double* z;          ///< n x sides each
  const double* b;          ///< p x sides each: the new rows of b, whose z is R'^-1 b
  double* rest;             ///< p x sides each: what z gets if these rows come last
  double* made_z;           ///< n + p x sides each: the new z, of which rows up to the new order count
};

/// Parts the new columns of a member, and looks at them. Rows beyond the member's order become zero.
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

/// Rows that right-hand sides of a member get if they come last, C being that of the factor and `corner` its own. By a
/// team of one warp.
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

/// The corner of a member, C being R'^-1 of what it was, becomes its Cholesky factor. By a team of one warp.
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

/// The rows of a member, its new ones at the end; those of the identity beyond. One that is not good stays as it is.
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

/// The new rows of a member, which append_rows() has put at its end, go to their places.
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

/// p rows and columns that every member loses.
template <class T>
struct BatchRowsGone {
  int n, p;              ///< order of the triangles that are there; those that are made have n - p
  Numbers<T> R, out;     ///< packed triangles
  const int* orders;     ///< of the members
  const int* gone;       ///< p each, ascending
  index_t gone_stride;   ///< from one member to the next, or 0
  double* V;             ///< n - p x p each: what was in the rows
};

/// The rows of a member without those that go, and V, which is to be added.
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
