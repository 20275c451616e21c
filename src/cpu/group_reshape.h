#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/group_layout.h"

/// The insertion and deletion of rows and columns of the members of a group.
namespace gpucholmod::cpu {

/// Describes p new columns of R for every member of a group, in memory of their own: by columns, `n + p` rows of
/// `lanes` numbers each. Rows from n on are the corner, the p x p block on the diagonal.
template <class T>
struct NewColumns {
  static constexpr index_t lanes = group_size<T>;
  index_t n, p;
  double* numbers;  ///< memory of the columns, words(n, p)

  static index_t words(index_t n, index_t p) { return (n + p) * p * lanes; }
  double* at(index_t i, index_t q) const { return numbers + (i + q * (n + p)) * lanes; }
  double* corner(index_t s, index_t q) const { return at(n + s, q); }
};

/// The order of a member, and the number of its first new row.
struct NewRows {
  index_t order = 0, at = 0;

  bool operator==(const NewRows& other) const { return order == other.order && at == other.at; }
};

/// The `count` rows and columns of a member of order `order` that move, one after the other: from, from + 1, ... become
/// to, to + 1, ...
struct MovedRows {
  index_t order = 0, from = 0, to = 0, count = 1;

  bool operator==(const MovedRows& other) const {
    return order == other.order && from == other.from && to == other.to && count == other.count;
  }
};

/// Sets the new columns of every member to zero, and its corner to the identity.
template <class T>
void clear(const NewColumns<T>& columns) {
  std::fill_n(columns.numbers, NewColumns<T>::words(columns.n, columns.p), 0.0);
  for (index_t q = 0; q < columns.p; ++q) std::fill_n(columns.corner(q, q), columns.lanes, 1.0);
}

/// Copies X, the new columns of a member's matrix with rows in the order of the new matrix, to the member's lane.
template <class T>
void put_columns(MatrixView<const double> X, const NewRows& rows, index_t lane, const NewColumns<T>& columns) {
  for (index_t q = 0; q < columns.p; ++q) {
    for (index_t i = 0; i < rows.at; ++i) columns.at(i, q)[lane] = X(i, q);
    for (index_t i = rows.at; i < rows.order; ++i) columns.at(i, q)[lane] = X(i + columns.p, q);
    for (index_t s = 0; s <= q; ++s) columns.corner(s, q)[lane] = X(rows.at + s, q);
  }
}

/// Returns the sum of x_i y_i over n numbers, for each lane.
template <class T>
Lanes<T, double> dot_lanes(index_t n, const double* x, const double* y) {
  constexpr index_t lanes = group_size<T>;
  Lanes<T, double> sum{};
  for (index_t i = 0; i < n; ++i)
    for (index_t l = 0; l < lanes; ++l) sum[l] += x[i * lanes + l] * y[i * lanes + l];
  return sum;
}

/// Turns the new columns of the matrices into columns of the factors in which the new rows are the last. Returns the
/// lanes in which the corner is not positive definite; the corner is unspecified in these lanes.
template <class T>
Lanes<T, bool> find_columns(const GroupKernels<T>& kernels, const T* group, const NewColumns<T>& columns) {
  constexpr index_t lanes = group_size<T>;
  Lanes<T, bool> failed{};
  for (index_t q = 0; q < columns.p; ++q) {
    kernels.solve_forward(group, columns.n, columns.at(0, q));
    for (index_t s = 0; s <= q; ++s) {
      double* const entry = columns.corner(s, q);
      const Lanes<T, double> sum = dot_lanes<T>(columns.n + s, columns.at(0, s), columns.at(0, q));
      const double* const diagonal = columns.corner(s, s);
      for (index_t l = 0; l < lanes; ++l) {
        const double left = entry[l] - sum[l];
        if (s == q && !(left > 0)) failed[l] = true;
        entry[l] = s == q ? std::sqrt(left) : left / diagonal[l];
      }
    }
  }
  return failed;
}

/// Turns a group of order n into a group of order n + p in the same memory: the rows of every member become longer.
/// Rows and columns from n on are those of the identity.
template <class T>
void widen_group(T* group, index_t n, index_t p) {
  constexpr index_t lanes = group_size<T>;
  const index_t wide = n + p;
  for (index_t i = wide; i-- > 0;) {
    T* const row = group + group_entry<T>(wide, i, i);
    const index_t kept = std::max<index_t>(n - i, 0) * lanes;
    if (kept > 0) std::memmove(row, group + group_entry<T>(n, i, i), sizeof(T) * std::size_t(kept));
    std::fill(row + kept, row + (wide - i) * lanes, T(0));
    if (i >= n) std::fill_n(row, lanes, T(1));
  }
}
/// Turns a group of order n + p into a group of order n in the same memory. Rows and columns from n on are lost.
template <class T>
void narrow_group(T* group, index_t n, index_t p) {
  for (index_t i = 0; i < n && p > 0; ++i)
    std::memmove(group + group_entry<T>(n, i, i), group + group_entry<T>(n + p, i, i),
                 sizeof(T) * std::size_t((n - i) * group_size<T>));
}

/// The entries of one member of a group of order n.
template <class T>
struct MemberOfGroup {
  T* group;
  index_t n, lane;

  T& operator()(index_t i, index_t j) const { return group[group_entry<T>(n, i, j) + lane]; }
};

/// Copies the new columns of a member behind its rows, in a group that has been widened for the new columns.
template <class T>
void append_columns(const NewColumns<T>& columns, const NewRows& rows, const MemberOfGroup<T>& R) {
  for (index_t i = 0; i < rows.order; ++i)
    for (index_t q = 0; q < columns.p; ++q) R(i, rows.order + q) = T(columns.at(i, q)[R.lane]);
  for (index_t s = 0; s < columns.p; ++s)
    for (index_t q = s; q < columns.p; ++q) R(rows.order + s, rows.order + q) = T(columns.corner(s, q)[R.lane]);
}

/// The entries of `count` neighbouring lanes of a group of order n.
template <int count, class T>
struct LanesOfGroup {
  T* group;  ///< address of the group's first entry in the first of these lanes
  index_t n;

  T* operator()(index_t i, index_t j) const { return group + group_entry<T>(n, i, j); }
};

/// Copies the members in the lanes `which` from the group `from` to the group R, both of order n.
template <class T>
void take_lanes(const Lanes<T, bool>& which, const T* from, index_t n, T* R) {
  for (index_t at = 0; at < group_words<T>(n); at += group_size<T>)
    for (index_t l = 0; l < group_size<T>; ++l)
      if (which[l]) R[at + l] = from[at + l];
}

/// Removes rows and columns `gone` (p, ascending) of A, of order n, in some lanes, of which `members` are in use: n - p
/// rows and columns are left, and those behind them in memory become the identity's. V (n - p x p, columns ld apart,
/// members `stride` apart) <- the entries that were in the removed rows of R: R becomes the factor of the new matrix
/// when VV' is added. Returns whether V has an entry that is not zero.
template <int count, class T>
bool remove_rows(const LanesOfGroup<count, T>& R, index_t n, const index_t* gone, index_t p, index_t members, double* V,
                 index_t ld, index_t stride) {
  std::vector<index_t> kept;
  for (index_t i = 0; i < n; ++i)
    if (!std::binary_search(gone, gone + p, i)) kept.push_back(i);
  bool any = false;
  for (index_t q = 0; q < p; ++q)
    for (index_t t = 0; t < n - p; ++t)
      for (index_t l = 0; l < members; ++l) {
        const double v = kept[t] > gone[q] ? double(R(gone[q], kept[t])[l]) : 0;
        V[t + q * ld + l * stride] = v;
        any = any || v != 0;
      }
  for (index_t t = 0; t < n - p; ++t) {
    for (index_t j = t; j < n - p; ++j) std::copy_n(R(kept[t], kept[j]), count, R(t, j));
    for (index_t j = n - p; j < n; ++j) std::fill_n(R(t, j), count, T(0));
  }
  for (index_t t = n - p; t < n; ++t)
    for (index_t j = t; j < n; ++j) std::fill_n(R(t, j), count, T(t == j));
  return any;
}

}  // namespace gpucholmod::cpu
