#pragma once

#include "base/check_column.h"
#include "base/reflection.h"
#include "base/reshaped_sides.h"
#include "cpu/blocked.h"
#include "cpu/inserted.h"
#include "mpi/exchange.h"
#include "mpi/substitution.h"
#include "mpi/sweep.h"

namespace gpucholmod::mpi {

/// Inserts, deletes or moves rows and columns of A, as in cpu/reshape.h, from a factor into a new one. Each column is
/// sent to its owner in the new factor. A sweep modifies the trailing part, and begins at the block of the first row
/// that changes. Every process does by itself the work that depends on few columns alone. Within an operation of the
/// team; every process writes right.out and right.rest.
///
/// Error: the residual ratio of a modification. Reference: inst/design/reshape.md, processes.md.
template <class T>
class Reshaping {
 public:
  /// Wraps R and the new factor `out`. instructions: a set that all processes have.
  Reshaping(Team& team, const Layout& from, const Columns<T>& R, const Layout& to, const Columns<T>& out,
            const Task& task, Instructions instructions, const Poll& poll)
      : team_(team), from_(from), R_(R), to_(to), out_(out), task_(task), instructions_(instructions), poll_(poll) {}

  /// Deletes rows and columns `gone`, in ascending order. Returns the row at which this process finds a diagonal entry
  /// that is not positive, or -1.
  index_t remove(const std::vector<index_t>& gone) {
    const index_t m = to_.n, k = index_t(gone.size()), first = std::min(k > 0 ? gone[0] : m, m);
    const std::vector<index_t> keep = others_than(gone, from_.n);
    std::vector<T> V(m * k);
    const auto append = [&](std::vector<T>& own, const T* column, index_t j) {
      for (const index_t g : gone) own.push_back(g < j ? column[g] : T(0));
    };
    index_t next = 0;  // in `keep`
    tell_of_columns<T>(team_, from_, R_, k, append, [&](index_t j, const T* row) {
      if (next == m || keep[next] != j) return;
      for (index_t q = 0; q < k; ++q) V[next + q * m] = row[q];
      ++next;
    });
    const std::vector<double> Y = remove_rows(task_.right, gone, keep);
    move_columns(team_, from_, R_, to_, keep, [&](index_t j, const T* column, index_t) {
      T* const to = out_.column(j);
      for (index_t i = 0; i <= j; ++i) to[i] = column[keep[i]];
    });
    return modify_rest(first, V, k, Sign::update, Y);
  }

  /// Inserts p rows and columns, the columns X, at row `at`. R is divided by 2^e, and so is the result; X and the
  /// right-hand sides are not. Returns the failing pivot if this process finds it, or -1.
  index_t insert(index_t at, const double* X, index_t p, int e) {
    const index_t n = from_.n, m = to_.n;
    const cpu::Inserted<T> inserted(n, at, X, p, e, task_.right, [&](MatrixView<double> B) {
      if (at > 0) SharedSubstitution<T>(team_, from_, R_, B.data, p).forward(at);
    });
    if (inserted.pivot() >= 0) return at + inserted.pivot();
    std::vector<T> V(m * p);
    std::vector<index_t> source(m);
    for (index_t j = 0; j < m; ++j) source[j] = j < at ? j : j < at + p ? -1 : j - p;
    for (index_t q = 0; q < p; ++q) {
      for (index_t j = 0; j < n - at; ++j) V[at + p + j + q * m] = inserted.behind(q, j);
      if (to_.owner_of_column(at + q) == team_.rank()) inserted.put(q, out_.column(at + q));
    }
    move_columns(team_, from_, R_, to_, source, [&](index_t j, const T* column, index_t s) {
      T* const to = out_.column(j);
      std::copy_n(column, std::min(at, j + 1), to);
      if (j < at) return;
      for (index_t q = 0; q < p; ++q) to[at + q] = V[j + q * m];
      std::copy(column + at, column + s + 1, to + at + p);
    });
    return modify_rest(at + p, V, p, Sign::downdate, inserted.Y());
  }

  /// Moves row and column `from` to number `to`.
  void shift(index_t from, index_t to) {
    const index_t n = from_.n;
    task_.right.pass_through();
    std::vector<index_t> source = others_than({from}, n);
    source.insert(source.begin() + to, from);
    if (from <= to) move_right(from, to, source);
    else move_left(from, to, source);
    reflect_rows(turns_, from, from > to, task_.right.out);
  }

 private:
  /// Modifies the trailing part S of `out`, from row and column `first` on: S <- the factor of S'S +- V V', where V (m
  /// x k) is zero above `first`. Modifies the right-hand sides too. Returns the failing pivot, or -1.
  index_t modify_rest(index_t first, const std::vector<T>& V, index_t k, Sign sign, const std::vector<double>& Y) {
    const index_t m = to_.n;
    if (first == m || k == 0) {
      task_.right.trailing(m, Y).pass_through();
      return -1;
    }
    const index_t block = to_.block_of(first);
    const int threads = cpu::useful_threads(m - to_.first(block), k, Uplo::upper, task_.threads);
    const index_t removed = sign == Sign::downdate ? k : 0;
    SharedSweep<T> sweep(team_, to_, {V.data(), m, k, m}, removed, T(1), instructions_, threads, task_.right.m() > 0);
    sweep.start_at(block);
    if (const index_t pivot = sweep.run(out_, &out_, poll_); pivot >= 0) return pivot;
    if (task_.right.m() > 0) sweep.carry(task_.right.trailing(to_.first(block), Y));
    return -1;
  }

  /// Moves a row and column to the right. From left to right, the owner of each column finds the reflection that turns
  /// the entry below the diagonal into the diagonal entry. The owner sends the reflections of a block to all others.
  void move_right(index_t from, index_t to, const std::vector<index_t>& source) {
    std::vector<T> below(to);  // entries below the diagonal, in columns of this process
    move_columns(team_, from_, R_, to_, source, [&](index_t j, const T* column, index_t s) {
      T* const into = out_.column(j);
      std::copy_n(column, std::min(s, j) + 1, into);
      if (s < j) std::fill(into + s + 1, into + j + 1, T(0));
      if (s > j) below[j] = column[j + 1];
    });
    turns_.resize(to - from);
    const auto turn = [&](index_t b, index_t t, auto&& find) {  // applies the reflections of block t to block b
      const index_t first = std::max(to_.first(t), from), last = std::min(to_.last(t), to);
      for (index_t j = std::max(to_.first(b), from); j < to_.last(b); ++j) {
        T* const column = out_.column(j);
        for (index_t i = first; i < std::min(last, j); ++i) turns_[i - from].apply(column[i], column[i + 1]);
        find(column, j);
      }
    };
    // Blocks [begin, end) give reflections.
    const index_t begin = to_.block_of(from), end = from < to ? to_.block_of(to - 1) + 1 : begin;
    index_t known = begin;
    const auto learn = [&](index_t t) {
      if (t < known) return;
      known = t + 1;
      if (to_.owner(t) == team_.rank()) return;
      const Bytes got = team_.take(to_.owner(t), next_part + t);
      std::memcpy(static_cast<void*>(turns_.data() + std::max(to_.first(t), from) - from), got.data(), got.size());
    };
    for (index_t b = begin; b < to_.blocks(); ++b) {
      if (to_.owner(b) != team_.rank()) continue;
      for (index_t t = begin; t < std::min(b, end); ++t) {
        learn(t);
        turn(b, t, [](T*, index_t) {});
        team_.look();
      }
      if (b >= end) continue;
      turn(b, b, [&](T* column, index_t j) {
        if (j < to) turns_[j - from] = Reflection<T>::of(column[j], below[j]);
      });
      const index_t first = std::max(to_.first(b), from), last = std::min(to_.last(b), to);
      team_.send(team_.others(), next_part + b, turns_.data() + first - from, sizeof(Reflection<T>) * (last - first));
    }
    for (index_t t = begin; t < end; ++t) learn(t);
  }

  /// Moves a row and column to the left. The moved column gives all reflections, from its last entry up, which each
  /// process applies to its own columns.
  void move_left(index_t from, index_t to, const std::vector<index_t>& source) {
    std::vector<T> moved(from + 1);
    if (from_.owner_of_column(from) == team_.rank()) {
      std::copy_n(R_.column(from), from + 1, moved.begin());
      team_.send(team_.others(), next_part, moved.data(), sizeof(T) * moved.size());
    } else {
      const Bytes got = team_.take(from_.owner_of_column(from), next_part);
      std::copy_n(reinterpret_cast<const T*>(got.data()), from + 1, moved.begin());
    }
    turns_ = fold_up(moved.data(), from, to);
    move_columns(team_, from_, R_, to_, source, [&](index_t j, const T* column, index_t s) {
      T* const into = out_.column(j);
      if (j == to) std::copy_n(moved.begin(), j + 1, into);
      if (j == to) return;
      std::copy_n(column, s + 1, into);
      if (s < j) into[j] = 0;
      for (std::size_t t = 0; t < turns_.size() && j > to; ++t)
        if (const index_t i = from - index_t(t); i <= j) turns_[t].apply(into[i - 1], into[i]);
    });
  }

  Team& team_;
  const Layout& from_;
  const Columns<T>& R_;
  const Layout& to_;
  const Columns<T>& out_;
  const Task& task_;
  Instructions instructions_;
  const Poll& poll_;
  std::vector<Reflection<T>> turns_;
};

}  // namespace gpucholmod::mpi
