#pragma once

#include "cuda/kernels/member.h"

/// A pass over one member by a team of L threads, each of which has up to SLOTS columns: j, j + L, ...
///
/// A small member has a few threads of a warp, so that even its short rows keep most of these threads busy. A large
/// member has several warps. One chain takes most of the time of a row: one thread passes V(i, .) and r_ii through
/// shared memory to all threads; each thread then computes the roots itself, and modifies the row in its own columns.
/// There is one barrier in a row, a warp's barrier if L <= WARP. R is copied to shared memory rows_ahead rows before it
/// is needed, and each thread waits only for its own copies.
namespace gpucholmod::cuda {

constexpr int SLOTS = 4;       ///< largest number of columns of a thread
constexpr int rows_ahead = 4;  ///< number of rows of R on their way to shared memory

/// Returns the number of threads of a member of order n: 4, 8, ... 256.
inline int threads_of_member(index_t n) {
  int threads = SLOTS;
  while (threads * SLOTS < n) threads *= 2;
  return threads;
}

/// Holds the shared memory of the threads of a member.
template <class T, int K, int L>
struct ModifyRoom {
  PublishedRow<K> rows[2];
  T ahead[rows_ahead][SLOTS * L];  ///< R(i, j) at (i % rows_ahead, j)
};

/// Holds the columns of a thread, from the slot that has the diagonal of row i on.
template <class T, int K>
struct ColumnsOfThread {
  ColumnOfV<K> V[SLOTS];
  int j;            ///< the column in the first slot
  Numbers<T> next;  ///< R(i + rows_ahead, j)
  Numbers<T> out;   ///< out(i, j)
  T* ahead;         ///< column j of ModifyRoom::ahead
};

template <class Team, class T, int K, int L>
class ModifyMember {
 public:
  GPUCHOLMOD_HOST_DEVICE ModifyMember(const Team& team, const MemberPass<T>& own, ModifyRoom<T, K, L>& room)
      : team_(team), own_(own), room_(room) {}

  /// Returns the first row that fails, or -1.
  GPUCHOLMOD_HOST_DEVICE int run(const BatchPass<T>& pass, index_t member) {
    team_.threads([&](int j) {
      ColumnsOfThread<T, K>& mine = columns_[j];
      mine.j = j;
      mine.next = own_.R + j;
      mine.out = own_.out + j;
      mine.ahead = room_.ahead[0] + j;
      GPUCHOLMOD_UNROLL for (int i = 0; i < rows_ahead; ++i) start_row<SLOTS>(mine, i);
      GPUCHOLMOD_UNROLL for (int c = 0; c < SLOTS; ++c) load_V<K>(pass, member, own_.in, j + c * L, mine.V[c]);
    });
    return take_rows<SLOTS>(0, pass, member);
  }

 private:
  template <class S>
  using PerThread = typename Team::template PerThread<S>;
  /// Holds a thread's entries of a row.
  template <int slots>
  struct OwnOfRow {
    double r[slots], products[slots];
  };

  /// Starts to copy row i of R.
  template <int slots>
  GPUCHOLMOD_HOST_DEVICE void start_row(ColumnsOfThread<T, K>& mine, int i) const {
    if (i < own_.rows) {
      T* const to = mine.ahead + i % rows_ahead * (SLOTS * L);
      GPUCHOLMOD_UNROLL for (int c = 0; c < slots; ++c) {
        const int column = mine.j + c * L;
        if (column < own_.n && i <= column) Team::start_copy(to + c * L, mine.next.at + c * L);
      }
      mine.next += own_.n - 1 - i;
    }
    Team::end_copies();
  }

  /// Modifies rows i, i + 1, ..., of which only the last `slots` slots have entries. Returns the first row that fails,
  /// or -1.
  template <int slots>
  GPUCHOLMOD_HOST_DEVICE int take_rows(int i, const BatchPass<T>& pass, index_t member) {
    if (own_.n - i > (slots - 1) * L) {
      const int end = own_.rows < i + L ? own_.rows : i + L;
      GPUCHOLMOD_NO_UNROLL for (; i < end; ++i)
        if (!take_row<slots>(i)) return i;
      if (i == own_.rows) {
        if (i < own_.n) team_.threads([&](int j) { put_rest<slots>(columns_[j], pass, member); });
        return -1;
      }
      team_.threads([&](int j) { leave_first_slot<slots>(columns_[j]); });
    }
    if constexpr (slots > 1) {
      return take_rows<slots - 1>(i, pass, member);
    } else {
      return -1;
    }
  }

  /// Writes the remaining V of the right-hand sides to pass.rest, after the last row.
  template <int slots>
  GPUCHOLMOD_HOST_DEVICE void put_rest(const ColumnsOfThread<T, K>& mine, const BatchPass<T>& pass,
                                       index_t member) const {
    GPUCHOLMOD_UNROLL for (int c = 0; c < slots; ++c) {
      const int side = mine.j + c * L - own_.rows;
      if (side < 0 || side >= own_.n - own_.rows) continue;
      double* const to = pass.rest + (member * (own_.n - own_.rows) + side) * pass.k + pass.first;
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q)
        if (q < pass.columns) to[q] = mine.V[c].q[q];
    }
  }

  template <int slots>
  GPUCHOLMOD_HOST_DEVICE void leave_first_slot(ColumnsOfThread<T, K>& mine) const {
    GPUCHOLMOD_UNROLL for (int c = 0; c + 1 < slots; ++c) mine.V[c] = mine.V[c + 1];
    mine.j += L;
    mine.next += L;
    mine.out += L;
    mine.ahead += L;
  }

  /// Modifies row i. Returns false if the row fails. Whether it fails is tested last, so that products do not wait for
  /// roots.
  template <int slots>
  GPUCHOLMOD_HOST_DEVICE bool take_row(int i) {
    const int diagonal = i % L;
    const Signs& signs = own_.signs;
    PublishedRow<K>& row = room_.rows[i % 2];
    PerThread<OwnOfRow<slots>> own;
    Team::template wait_for_copies<rows_ahead - 1>();
    team_.threads([&](int j) {
      const ColumnsOfThread<T, K>& mine = columns_[j];
      const T* const from = mine.ahead + i % rows_ahead * (SLOTS * L);
      GPUCHOLMOD_UNROLL for (int c = 0; c < slots; ++c) own[j].r[c] = double(from[c * L]) * own_.in;
      if (j == diagonal) publish_row<K>(row, own[j].r[0], mine.V[0], signs);
    });
    team_.sync();
    team_.threads([&](int j) { start_row<slots>(columns_[j], i + rows_ahead); });
    double r = row.r;
    bool found = true;
    GPUCHOLMOD_UNROLL_BY(K > 4 ? 1 : 2) for (int s = 0; s <= int(signs.both); ++s) {
      const ColumnOfV<K> v = Team::template load<K>(row.v[s]);
      Step step;
      found = find_step<Team>(r, product<K>(v, v), s == 0 ? signs.first : -1, step) && found;
      team_.threads([&](int j) {
        ColumnOfV<K>* const V = columns_[j].V;
        GPUCHOLMOD_UNROLL for (int c = 0; c < slots; ++c) own[j].products[c] = product<K>(v, V[c]);
        GPUCHOLMOD_UNROLL for (int c = 0; c < slots; ++c)
          own[j].r[c] = take_step<K>(v, own[j].products[c], step, own[j].r[c], V[c]);
      });
    }
    if (row.up != 1) r *= 1 / up_from_tiny;
    team_.threads([&](int j) {
      ColumnsOfThread<T, K>& mine = columns_[j];
      if (j == diagonal) own[j].r[0] = r;
      GPUCHOLMOD_UNROLL for (int c = 0; c < slots; ++c) {
        const int column = mine.j + c * L;
        if (column < own_.n && i <= column) mine.out.set(own[j].r[c] * own_.up, c * L);
      }
      mine.out += own_.n - 1 - i;
    });
    return found;
  }

  const Team& team_;
  const MemberPass<T>& own_;
  ModifyRoom<T, K, L>& room_;
  PerThread<ColumnsOfThread<T, K>> columns_;
};

/// Runs a pass over one member of order n <= SLOTS L. If row i fails, sets pivots[member] to i.
template <int K, int L, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void modify_member(const Team& team, const BatchPass<T>& pass, index_t member,
                                          ModifyRoom<T, K, L>& room) {
  const MemberPass<T> own(pass, member);
  int failed = pass.pivots[member];
  if (failed < -1) return;  // an earlier pass has lost the member
  if (failed < 0) failed = ModifyMember<Team, T, K, L>(team, own, room).run(pass, member);
  Team::wait_for_copies();
  team.sync();
  team.threads([&](int j) { finish_member(pass, member, own, failed, j, L); });
}

}  // namespace gpucholmod::cuda
