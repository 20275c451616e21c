#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/held_batch.h"
#include "cpu/group_pass.h"

/// Solutions with the members of a group of order n: b (n x lanes, the last contiguous) is a right-hand side of each
/// member.
namespace gpucholmod::cpu {

/// Copies right-hand sides of members (n numbers each) to b; null: a right-hand side that is not wanted.
template <class T>
void gather_sides(const Lanes<T, const double*>& from, index_t n, double* b) {
  for (index_t l = 0; l < group_size<T>; ++l)
    for (index_t i = 0; from[l] && i < n; ++i) b[i * group_size<T> + l] = from[l][i];
}
/// Copies b to right-hand sides of members (n numbers each); null: a right-hand side that is not wanted.
template <class T>
void scatter_sides(const double* b, index_t n, const Lanes<T, double*>& to) {
  for (index_t l = 0; l < group_size<T>; ++l)
    for (index_t i = 0; to[l] && i < n; ++i) to[l][i] = b[i * group_size<T> + l];
}

/// The members of a group: the number of the first, their count, and the orders of all members of the batch.
struct MembersOfGroup {
  index_t first, count;
  const std::vector<index_t>& orders;

  index_t order(index_t lane) const { return orders[first + lane]; }
};

/// Computes the `wanted` results of the members of a group, which holds the factors of the modified matrices.
template <class T>
void solve_wanted(const GroupKernels<T>& kernels, const T* group, index_t n, const MembersOfGroup& members,
                  const BatchSystems& wanted) {
  constexpr index_t lanes = group_size<T>;
  for (index_t l = 0; wanted.logdet && l < members.count; ++l) {
    double sum = 0;
    for (index_t j = 0; j < members.order(l); ++j) sum += 2 * std::log(double(group[group_entry<T>(n, j, j) + l]));
    wanted.logdet[members.first + l] = sum;
  }
  std::vector<double> b(n * lanes);
  for (index_t s = 0; wanted.solves() && s < wanted.m; ++s) {
    Lanes<T, const double*> from{};
    Lanes<T, double*> to{};
    for (index_t l = 0; l < members.count; ++l) {
      const index_t m = members.first + l;
      from[l] = wanted.b_of(n, m) + s * n;
      if (wanted.solution) to[l] = wanted.solution + (s + m * wanted.m) * n;
    }
    gather_sides<T>(from, n, b.data());
    kernels.solve_forward(group, n, b.data());
    for (index_t l = 0; wanted.quadratic && l < members.count; ++l) {
      double sum = 0;
      for (index_t i = 0; i < members.order(l); ++i) sum += b[i * lanes + l] * b[i * lanes + l];
      wanted.quadratic[s + (members.first + l) * wanted.m] = sum;
    }
    if (!wanted.solution) continue;
    kernels.solve_back(group, n, b.data());
    scatter_sides<T>(b.data(), n, to);
  }
}

}  // namespace gpucholmod::cpu
