#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/group_layout.h"

/// Rows and columns of the members of a group come and go.
namespace gpucholmod::cpu {

/// p new columns of R for every member of a group, in memory of their own: by columns, `n + p` rows of `lanes` numbers
/// each. Rows from n on are the corner, the p x p block on the diagonal.
template <class T>
struct NewColumns {
  static constexpr index_t lanes = group_size<T>;
  index_t n, p;
  double* numbers;  ///< words(n, p)

  static index_t words(index_t n, index_t p) { return (n + p) * p * lanes; }
  double* at(index_t i, index_t q) const { return numbers + (i + q * (n + p)) * lanes; }
  double* corner(index_t s, index_t q) const { return at(n + s, q); }
};

/// The order of a member, and the number of its first new row.
struct NewRows {
  index_t order = 0, at = 0;

  bool operator==(const NewRows& other) const { return order == other.order && at == other.at; }
};

/// Rows and columns of a member of order `order` that move, one after the other: from, from + 1 .. become to, to + 1 ..
struct MovedRows {
  index_t order = 0, from = 0, to = 0, count = 1;

  bool operator==(const MovedRows& other) const {
    return order == other.order && from == other.from && to == other.to && count == other.count;
  }
};

/// The new columns of every member become zero, and its corner the identity.
template <class T>
void clear(const NewColumns<T>& columns) {
  std::fill_n(columns.numbers, NewColumns<T>::words(columns.n, columns.p), 0.0);
  for (index_t q = 0; q < columns.p; ++q) std::fill_n(columns.corner(q, q), columns.lanes, 1.0);
}

/// Puts X, the new columns of a member's matrix with rows in the order of the new matrix, into the member's lane.
template <class T>
void put_columns(MatrixView<const double> X, const NewRows& rows, index_t lane, const NewColumns<T>& columns) {
  for (index_t q = 0; q < columns.p; ++q) {
    for (index_t i = 0; i < rows.at; ++i) columns.at(i, q)[lane] = X(i, q);
    for (index_t i = rows.at; i < rows.order; ++i) columns.at(i, q)[lane] = X(i + columns.p, q);
    for (index_t s = 0; s <= q; ++s) columns.corner(s, q)[lane] = X(rows.at + s, q);
  }
}

/// Returns the sum of x_i y_i of n numbers, for each lane.
template <class T>
Lanes<T, double> dot_lanes(index_t n, const double* x, const double* y) {
  constexpr index_t lanes = group_size<T>;
  Lanes<T, double> sum{};
  for (index_t i = 0; i < n; ++i)
    for (index_t l = 0; l < lanes; ++l) sum[l] += x[i * lanes + l] * y[i * lanes + l];
  return sum;
}

/// Columns of the matrices become those of the factors, where the new rows come last. Returns in which lanes the corner
/// is not positive definite: there it is unspecified.
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

/// A group of order n becomes one of order n + p in the same memory, or back: the rows of every member become longer
/// or shorter. Rows and columns from n on are the identity's; going back, they are lost.
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

/// Puts the new columns of a member behind its rows, in a group that has been widened for them.
template <class T>
void append_columns(const NewColumns<T>& columns, const NewRows& rows, const MemberOfGroup<T>& R) {
  for (index_t i = 0; i < rows.order; ++i)
    for (index_t q = 0; q < columns.p; ++q) R(i, rows.order + q) = T(columns.at(i, q)[R.lane]);
  for (index_t s = 0; s < columns.p; ++s)
    for (index_t q = s; q < columns.p; ++q) R(rows.order + s, rows.order + q) = T(columns.corner(s, q)[R.lane]);
}

/// Some lanes of a group of order n, side by side.
template <int count, class T>
struct LanesOfGroup {
  T* group;  ///< from the first of them on
  index_t n;

  T* operator()(index_t i, index_t j) const { return group + group_entry<T>(n, i, j); }
};

/// R <- the members in these lanes of another group of order n.
template <class T>
void take_lanes(const Lanes<T, bool>& which, const T* from, index_t n, T* R) {
  for (index_t at = 0; at < group_words<T>(n); at += group_size<T>)
    for (index_t l = 0; l < group_size<T>; ++l)
      if (which[l]) R[at + l] = from[at + l];
}

/// Rows and columns `gone` (p, ascending) of A, of order n, leave it in some lanes, of which `members` are in use:
/// n - p are left, and those that follow in the memory are the identity's. V (n - p rows, ld apart, x p; `stride` from
/// one member to the next) <- what was in the rows of R: R is the factor of the new matrix when V V' has been added.
/// Returns whether any of that is not zero.
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
