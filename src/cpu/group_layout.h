#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/types.h"
#include "cpu/group_pass.h"

/// The packing of a batch's members into groups, and the unpacking of groups into members.
namespace gpucholmod::cpu {

template <class T, class P>
using Lanes = std::array<P, group_size<T>>;

/// Calls f(place in a member's n x n matrix, place in the group) for each entry of the triangle, in the order in which
/// the matrix is stored.
template <class T, class F>
void each_entry(index_t n, Uplo uplo, F&& f) {
  if (uplo == Uplo::upper) {
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0, at = j * group_size<T>; i <= j; at += (n - 1 - i) * group_size<T>, ++i) f(i + j * n, at);
  } else {
    for (index_t i = 0, at = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j, at += group_size<T>) f(j + i * n, at);
  }
}

/// Copies members (n x n, of which the triangle that uplo names is read; null: the identity) to a group. largest <- the
/// largest magnitude of each member; NaN if a number of the member is not finite in T.
template <class T>
void gather(const Lanes<T, const double*>& members, index_t n, Uplo uplo, T* group, Lanes<T, T>& largest) {
  constexpr index_t lanes = group_size<T>;
  std::vector<double> identity;
  Lanes<T, const double*> from = members;
  for (const double*& R : from) {
    if (R) continue;
    if (identity.empty()) {
      identity.resize(n * n);
      for (index_t j = 0; j < n; ++j) identity[j + j * n] = 1;
    }
    R = identity.data();
  }
  Lanes<T, T> top{}, nothing{};
  each_entry<T>(n, uplo, [&](index_t place, index_t at) {
    T* const entry = group + at;
    for (index_t l = 0; l < lanes; ++l) entry[l] = T(from[l][place]);
    for (index_t l = 0; l < lanes; ++l) {
      const T size = std::abs(entry[l]);
      top[l] = top[l] < size ? size : top[l];
      nothing[l] += entry[l] * 0;  // NaN from the first value on that is not finite
    }
  });
  for (index_t l = 0; l < lanes; ++l) largest[l] = top[l] + nothing[l];
}

/// Copies a group to its members (n x n); the other triangle of each becomes zero. null: a member that is not wanted.
template <class T>
void scatter(const T* group, index_t n, Uplo uplo, const Lanes<T, double*>& members) {
  constexpr index_t lanes = group_size<T>;
  Lanes<T, double*> to{};
  index_t count = 0;
  std::array<index_t, lanes> lane{};
  for (index_t l = 0; l < lanes; ++l)
    if (members[l]) {
      to[count] = members[l];
      lane[count++] = l;
    }
  const auto clear = [&](index_t from, index_t last) {
    for (index_t c = 0; c < count; ++c) std::fill(to[c] + from, to[c] + last, 0.0);
  };
  if (count == lanes) {
    each_entry<T>(n, uplo, [&](index_t place, index_t at) {
      for (index_t l = 0; l < lanes; ++l) to[l][place] = double(group[at + l]);
    });
  } else {
    each_entry<T>(n, uplo, [&](index_t place, index_t at) {
      for (index_t c = 0; c < count; ++c) to[c][place] = double(group[at + lane[c]]);
    });
  }
  for (index_t j = 0; j < n; ++j) uplo == Uplo::upper ? clear(j * n + j + 1, (j + 1) * n) : clear(j * n, j * n + j);
}

/// Returns rows and columns [row, n) of one member as an upper matrix (m x m, m = n - row).
template <class T>
std::vector<double> member_of(const T* group, index_t n, index_t lane, index_t row = 0) {
  const index_t m = n - row;
  std::vector<double> R(m * m);
  for (index_t i = row; i < n; ++i)
    for (index_t j = i; j < n; ++j) R[i - row + (j - row) * m] = double(group[group_entry<T>(n, i, j) + lane]);
  return R;
}
/// Copies the upper matrix R (m x m, m = n - row) to rows and columns [row, n) of one member.
template <class T>
void put_member(const std::vector<double>& R, T* group, index_t n, index_t lane, index_t row = 0) {
  for (index_t i = row; i < n; ++i)
    for (index_t j = i; j < n; ++j) group[group_entry<T>(n, i, j) + lane] = T(R[i - row + (j - row) * (n - row)]);
}

}  // namespace gpucholmod::cpu
