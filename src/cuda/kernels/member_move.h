#pragma once

#include "cuda/kernels/fill_triangle.h"

/// The move of a row and column of a member of a batch within its packed triangle. The code is written over a class
/// Team, as in member.h.
namespace gpucholmod::cuda {

constexpr int most_rows = 1024;  ///< largest order of a member

/// The shared memory of a team that moves or deletes rows of a member.
struct ReshapeRoom {
  double sine[most_rows], cosine[most_rows];
  double norm;
  int kept[most_rows];
};

/// Computes the rotations that take column `from` of R to place `to`: of rows i and i + 1, from the bottom up. On entry
/// room.cosine has that column from row `to` on. Runs in one thread.
GPUCHOLMOD_HOST_DEVICE void find_rotations(int from, int to, ReshapeRoom& room) {
  double norm = room.cosine[from];
  for (int i = from - 1; i >= to; --i) {
    const double entry = room.cosine[i], longer = hypot(entry, norm);
    room.sine[i] = norm / longer;
    room.cosine[i] = entry / longer;
    norm = longer;
  }
  room.norm = norm;
}

/// Moves column `from` to place `to` in the rows above both places. Runs with a thread for each column.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void move_column(const Team& team, const Numbers<T>& R, int n, int from, int to) {
  struct Rows {
    double of[at_once];
  };
  typename Team::template PerThread<Rows> here;
  const int low = from < to ? from : to, high = from < to ? to : from, step = from < to ? -1 : 1;
  GPUCHOLMOD_NO_UNROLL for (int first = 0; first < low; first += at_once) {
    team.threads([&](int j) {
      if (j < low || j > high) return;
      GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u)
        if (first + u < low) here[j].of[u] = R.get(row_of(n, first + u) + j);
    });
    team.sync();
    team.threads([&](int j) {
      if (j < low || j > high) return;
      GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u)
        if (first + u < low) R.set(here[j].of[u], row_of(n, first + u) + (j == from ? to : j + step));
    });
  }
  team.sync();
}

/// Moves row and column `from` of a member of order `order`, in a packed triangle R of order n, to place `to` < from.
/// Row i + 1 becomes sine R_i - cosine c. The row c that is carried up, at first row `from`, becomes cosine R_i + sine
/// c. Runs with a thread for each column, which reads several rows before a barrier and writes them after it.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void shift_left(const Team& team, const Numbers<T>& R, int n, int order, int from, int to,
                                       ReshapeRoom& room) {
  struct Rows {
    double of[at_once];
  };
  typename Team::template PerThread<double> carried;
  typename Team::template PerThread<Rows> here;
  team.threads([&](int j) {
    if (j >= to && j <= from) room.cosine[j] = R.get(row_of(n, j) + from);
    carried[j] = j > from && j < order ? R.get(row_of(n, from) + j) : 0;
  });
  team.sync();
  team.threads([&](int j) {
    if (j == 0) find_rotations(from, to, room);
  });
  GPUCHOLMOD_NO_UNROLL for (int last = from - 1; last >= to; last -= at_once) {
    team.threads([&](int j) {
      GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u)
        here[j].of[u] = last - u >= to && j >= last - u && j < order && j != from ? R.get(row_of(n, last - u) + j) : 0;
    });
    team.sync();
    team.threads([&](int j) {
      if (j >= order || j == from) return;
      GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u) {
        const int i = last - u;
        if (i < to || j < i) continue;
        const double r = here[j].of[u], c = carried[j];
        R.set(room.sine[i] * r - room.cosine[i] * c, row_of(n, i + 1) + (j < from ? j + 1 : j));
        carried[j] = room.cosine[i] * r + room.sine[i] * c;
      }
    });
  }
  team.sync();
  team.threads([&](int j) {
    if (j == from) R.set(room.norm, row_of(n, to) + to);
    else if (j >= to && j < order) R.set(carried[j], row_of(n, to) + (j < from ? j + 1 : j));
  });
  move_column(team, R, n, from, to);
}

/// Moves row and column `from` to place `to` > from, from the top down. Row i becomes sine R_(i+1) - cosine c. The row
/// c that is carried down, at first row `from`, becomes cosine R_(i+1) + sine c. Runs with a thread for each column. A
/// rotation takes an entry of c into the diagonal, so it is known only after the rotations before it have changed c.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void shift_right(const Team& team, const Numbers<T>& R, int n, int order, int from, int to,
                                        ReshapeRoom& room) {
  struct Rows {
    double of[at_once];
  };
  typename Team::template PerThread<double> carried;
  typename Team::template PerThread<Rows> here;
  team.threads([&](int j) { carried[j] = j >= from && j < order ? R.get(row_of(n, from) + j) : 0; });
  GPUCHOLMOD_NO_UNROLL for (int first = from; first < to; first += at_once) {
    team.threads([&](int j) {
      GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u)
        here[j].of[u] = first + u < to && j > first + u && j < order ? R.get(row_of(n, first + u + 1) + j) : 0;
    });
    team.sync();
    GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u) {
      const int i = first + u;
      if (i >= to) continue;
      team.threads([&](int j) {
        if (j != i + 1) return;
        const double entry = carried[j], norm = here[j].of[u], longer = hypot(entry, norm);
        room.sine[i] = norm / longer;
        room.cosine[i] = -entry / longer;
        R.set(longer, row_of(n, i) + i);
      });
      team.sync();
      team.threads([&](int j) {
        if (j >= order || (j <= i + 1 && j != from)) return;
        const double r = here[j].of[u], c = carried[j];
        R.set(room.sine[i] * r - room.cosine[i] * c, row_of(n, i) + (j == from ? to : j <= to ? j - 1 : j));
        carried[j] = room.cosine[i] * r + room.sine[i] * c;
      });
    }
  }
  team.sync();
  team.threads([&](int j) {
    if (j == from || (j > to && j < order)) R.set(carried[j], row_of(n, to) + (j == from ? to : j));
  });
  move_column(team, R, n, from, to);
}

/// Moves row and column `from` of a member to place `to`, which is another one.
template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void shift(const Team& team, const Numbers<T>& R, int n, int order, int from, int to,
                                  ReshapeRoom& room) {
  from > to ? shift_left(team, R, n, order, from, to, room) : shift_right(team, R, n, order, from, to, room);
}

/// Moves row `from` of a member's right-hand sides, each of `rows` rows, to place `to`, by the rotations in `room`.
/// Runs with a thread for each right-hand side.
template <class Team>
GPUCHOLMOD_HOST_DEVICE void rotate_sides(const Team& team, double* sides, int count, int rows, int from, int to,
                                         const ReshapeRoom& room) {
  const int step = from < to ? 1 : -1, above = from < to ? 0 : -1;
  team.threads([&](int thread) {
    for (int s = thread; s < count; s += team.size()) {
      double* const z = sides + index_t(s) * rows;
      double carried = z[from];
      for (int i = from; i != to; i += step) {
        const double sine = room.sine[i + above], cosine = room.cosine[i + above], here = z[i + step];
        z[i] = sine * here - cosine * carried;
        carried = cosine * here + sine * carried;
      }
      z[to] = carried;
    }
  });
  team.sync();
}

/// Describes the move of a row and column of one member.
struct MemberMove {
  int order, from, to;
};

/// Describes the moves of a row and column of every member.
template <class T>
struct BatchMoves {
  int n;                    ///< order of the triangles
  Numbers<T> R;             ///< packed triangles
  const MemberMove* moves;  ///< move of each member
  int sides;                ///< number of right-hand sides whose rows move along; 0: none
  double* z;                ///< right-hand sides, n x sides for each member
  int* any;                 ///< flag that becomes 1 if an entry of a diagonal is too small
};

template <class Team, class T>
GPUCHOLMOD_HOST_DEVICE void move_rows(const Team& team, const BatchMoves<T>& of, index_t member, ReshapeRoom& room) {
  const MemberMove own = of.moves[member];
  if (own.from == own.to) return;
  const Numbers<T> R = of.R + member * words_of(of.n);
  shift(team, R, of.n, own.order, own.from, own.to, room);
  rotate_sides(team, of.z + member * of.sides * of.n, of.sides, of.n, own.from, own.to, room);
  team.threads([&](int j) {
    if (j < own.order && !(R.get(row_of(of.n, j) + j) >= R.least_normal())) *of.any = 1;
  });
}

}  // namespace gpucholmod::cuda
