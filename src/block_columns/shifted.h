#pragma once

#include "base/reflection.h"
#include "block_columns/sizes.h"
#include "block_columns/warp.h"

/// Reflections of neighbouring rows, NB at a time, that make a factor upper triangular again after one of its columns
/// has been moved. Reference: inst/design/reshape.md.
namespace gpucholmod::block_columns {

template <class T>
struct Shifted {
  T* M;  ///< n x n, upper triangular
  index_t ld, n;
  index_t first, last;    ///< range of the reflections: rows i and i + 1 are reflected, for each i of [first, last)
  Reflection<T>* turns;   ///< reflections, from that of row `first` on
  const T* below;         ///< entries M(i + 1, i), from row `first` on, if the column has moved to the right
};

/// Finds and applies reflections, with one team. Its shared memory has columns of NB + 1 rows, and reflections. (An odd
/// leading dimension is free of bank conflicts.)
template <class T, class Team>
class Reflecting {
 public:
  static constexpr int LD = NB + 1, COLUMNS = 32;  ///< leading dimension; columns that a team takes at a time
  static constexpr int words = LD * NB + 2 * NB;   ///< size of shared memory, in doubles, whatever T is

  GPUCHOLMOD_HOST_DEVICE Reflecting(Team team, const Shifted<T>& shifted)
      : team_(team), s_(shifted), tile_(reinterpret_cast<T*>(team.shared)),
        turns_(reinterpret_cast<Reflection<T>*>(tile_ + LD * NB)) {}

  /// Finds the reflections from row `begin` on after a column has moved to the right, and applies them to the columns
  /// that they are found from.
  GPUCHOLMOD_HOST_DEVICE void find(index_t begin) {
    const int count = rows_from(begin);
    team_.threads_sync([&](int thread) {
      for (int at = thread; at < LD * count; at += threads) {
        const index_t i = begin + at % LD, j = begin + at / LD;
        tile_[at] = i <= j ? s_.M[i + j * s_.ld] : i == j + 1 ? s_.below[j - s_.first] : T(0);
      }
    });
    for (int i = 0; i < count; ++i) {
      team_.threads_sync([&](int thread) {
        if (thread == 0) turns_[i] = Reflection<T>::of(tile_[i + i * LD], tile_[i + 1 + i * LD]);
      });
      team_.threads_sync([&](int thread) {
        if (const int c = i + 1 + thread; c < count) turns_[i].apply(tile_[i + c * LD], tile_[i + 1 + c * LD]);
      });
    }
    store(begin, begin, count, count);
    team_.threads_sync([&](int thread) {
      if (thread < count) s_.turns[begin - s_.first + thread] = turns_[thread];
    });
  }

  /// Applies the reflections from row `begin` on to columns from `column` on, behind those that they are found from.
  GPUCHOLMOD_HOST_DEVICE void follow(index_t begin, index_t column) { reflect(begin, column, true); }

  /// Applies all reflections, from the last to the first, to columns from `column` on after a column has moved to the
  /// left: all are known then. The last row of each column between the two places is filled only now.
  GPUCHOLMOD_HOST_DEVICE void follow_back(index_t column) {
    const index_t blocks = (s_.last - s_.first + NB - 1) / NB;
    for (index_t b = blocks - 1; b >= 0; --b)
      if (s_.first + b * NB < column + COLUMNS - 1) reflect(s_.first + b * NB, column, false);
  }

 private:
  static constexpr int threads = WARPS * LANES;

  GPUCHOLMOD_HOST_DEVICE int rows_from(index_t begin) const { return int(s_.last - begin < NB ? s_.last - begin : NB); }

  GPUCHOLMOD_HOST_DEVICE void reflect(index_t begin, index_t column, bool down) {
    const int count = rows_from(begin), columns = int(s_.n - column < COLUMNS ? s_.n - column : COLUMNS);
    team_.threads_sync([&](int thread) {
      for (int at = thread; at < LD * columns; at += threads) {
        const index_t r = at % LD, i = begin + r, j = column + at / LD;
        tile_[at] = r <= count && i <= j ? s_.M[i + j * s_.ld] : T(0);
      }
      if (thread < count) turns_[thread] = s_.turns[begin - s_.first + thread];
    });
    team_.threads_sync([&](int thread) {
      if (thread >= columns) return;
      T* const x = tile_ + thread * LD;
      if (down) {
        for (int i = 0; i < count; ++i) turns_[i].apply(x[i], x[i + 1]);
      } else {
        for (int i = count - 1; i >= 0; --i)
          if (begin + i + 1 <= column + thread) turns_[i].apply(x[i], x[i + 1]);
      }
    });
    store(begin, column, columns, count + 1);
  }

  /// Stores the entries on and above the diagonal.
  GPUCHOLMOD_HOST_DEVICE void store(index_t begin, index_t column, int columns, int rows) {
    team_.threads_sync([&](int thread) {
      for (int at = thread; at < LD * columns; at += threads) {
        const index_t r = at % LD, i = begin + r, j = column + at / LD;
        if (r < rows && i <= j) s_.M[i + j * s_.ld] = tile_[at];
      }
    });
  }

  Team team_;
  const Shifted<T>& s_;
  T* tile_;
  Reflection<T>* turns_;
};

}  // namespace gpucholmod::block_columns
