#pragma once

#include <cstring>
#include <vector>

#include "mpi/columns.h"
#include "mpi/team.h"

/// The exchange of a factor's columns between processes, within an operation of the team.
namespace gpucholmod::mpi {

constexpr index_t ahead = 2;  ///< most blocks of a process on their way from or to process 0 at once

/// Sends each block of R from process 0 to its owner. In process 0, get(b, buffer) appends the columns of block b, down
/// to the diagonal, to an empty buffer.
template <class T, class Get>
void deal(Team& team, const Layout& layout, const Columns<T>& R, Get&& get) {
  const index_t apart = ahead * layout.size;
  const auto unpack = [&](index_t b, const T* from) {
    const MatrixView<T> to = R.fresh(b);
    for (index_t j = layout.first(b); j < layout.last(b); from += ++j)
      std::copy_n(from, j + 1, to.col(j - layout.first(b)));
    R.written(b);
  };
  std::vector<T> buffer;
  for (index_t b = 0; b < layout.blocks(); ++b) {
    const int to = layout.owner(b);
    if (team.rank() == 0) {
      buffer.clear();
      get(b, buffer);
      if (to != 0 && b >= apart) team.take(to, b - apart);
      if (to != 0) team.send(to, b, buffer.data(), sizeof(T) * buffer.size());
      else unpack(b, buffer.data());
      team.look();
    } else if (to == team.rank()) {
      const Bytes got = team.take(0, b);
      unpack(b, reinterpret_cast<const T*>(got.data()));
      team.send(0, b, nullptr, 0);
    }
  }
}

/// Calls put(column, number) in process 0 for each column, from left to right.
template <class T, class Put>
void collect(Team& team, const Layout& layout, const Columns<T>& R, Put&& put) {
  const index_t apart = ahead * layout.size;
  std::vector<T> packed;
  for (index_t b = 0; b < layout.blocks(); ++b) {
    const int from = layout.owner(b);
    if (from == team.rank()) {
      packed.clear();
      for (index_t j = layout.first(b); j < layout.last(b); ++j)
        packed.insert(packed.end(), R.column(j), R.column(j) + j + 1);
      if (from != 0 && b >= apart) team.take(0, b - apart);
      if (from != 0) team.send(0, b, packed.data(), sizeof(T) * packed.size());
    }
    if (team.rank() != 0) continue;
    Bytes got;
    const T* columns = packed.data();
    if (from != 0) {
      got = team.take(from, b);
      team.send(from, b, nullptr, 0);
      columns = reinterpret_cast<const T*>(got.data());
    }
    for (index_t j = layout.first(b); j < layout.last(b); columns += ++j) put(columns, j);
    team.look();
  }
}

/// Gathers `count` numbers of each column in all processes: calls append(own, column, j), which appends the numbers of
/// column j of R, in the process that has the column, and tell(j, numbers) for every column in every process.
template <class S, class T, class Append, class Tell>
void tell_of_columns(Team& team, const Layout& layout, const Columns<T>& R, index_t count, Append&& append,
                     Tell&& tell) {
  std::vector<S> own;
  R.each_column([&](const T* column, index_t, index_t j) { append(own, column, j); });
  const std::vector<Bytes> all = team.exchange(own.data(), sizeof(S) * own.size());
  std::vector<const S*> at;
  for (const Bytes& one : all) at.push_back(reinterpret_cast<const S*>(one.data()));
  for (index_t j = 0; j < layout.n; ++j) {
    const S*& from = at[layout.owner_of_column(j)];
    tell(j, from);
    from += count;
  }
}

/// Calls place(j, column, s) for each column j of another factor that this process will have: `column` holds column s =
/// source[j] of R, s + 1 numbers. Columns with a negative source[j] are left out. Sends do not wait; a process waits at
/// its own blocks alone, for the columns that other processes send there.
template <class T, class Place>
void move_columns(Team& team, const Layout& layout, const Columns<T>& R, const Layout& to,
                  const std::vector<index_t>& source, Place&& place) {
  std::vector<T> packed;
  for (index_t b = 0; b < to.blocks(); ++b) {
    std::vector<char> sends(team.size());
    packed.clear();
    for (index_t j = to.first(b); j < to.last(b); ++j) {
      if (source[j] < 0) continue;
      const int from = layout.owner_of_column(source[j]);
      sends[from] = true;
      if (from == team.rank()) packed.insert(packed.end(), R.column(source[j]), R.column(source[j]) + source[j] + 1);
    }
    if (to.owner(b) != team.rank()) {
      if (!packed.empty()) team.send(to.owner(b), b, packed.data(), sizeof(T) * packed.size());
      team.look();
      continue;
    }
    std::vector<Bytes> got(team.size());
    std::vector<const T*> at(team.size(), packed.data());
    for (int p = 0; p < team.size(); ++p) {
      if (p == team.rank() || !sends[p]) continue;
      got[p] = team.take(p, b);
      at[p] = reinterpret_cast<const T*>(got[p].data());
    }
    for (index_t j = to.first(b); j < to.last(b); ++j) {
      if (source[j] < 0) continue;
      const T*& column = at[layout.owner_of_column(source[j])];
      place(j, column, source[j]);
      column += source[j] + 1;
    }
  }
}

}  // namespace gpucholmod::mpi
