#pragma once

#include <algorithm>

#include "cpu/group_pass.h"

/// Triangular systems of the members of a group (of order n), of a right-hand side each: b (n x lanes, the last
/// contiguous).
namespace gpucholmod::cpu {

/// b <- R'^-1 b.
template <class T>
void solve_forward(const T* R, index_t n, double* __restrict b) {
  constexpr index_t lanes = group_size<T>;
  for (index_t i = 0; i < n; ++i) {
    double x[lanes];
    for (index_t l = 0; l < lanes; ++l) x[l] = b[i * lanes + l] /= double(R[l]);
    R += lanes;
    for (index_t j = i + 1; j < n; ++j, R += lanes)
      for (index_t l = 0; l < lanes; ++l) b[j * lanes + l] -= double(R[l]) * x[l];
  }
}

/// b <- R^-1 b.
template <class T>
void solve_back(const T* group, index_t n, double* __restrict b) {
  constexpr index_t lanes = group_size<T>;
  for (index_t i = n; i-- > 0;) {
    const T* const diagonal = group + group_entry<T>(n, i, i);
    const T* R = diagonal + lanes;
    double x[lanes];
    std::copy_n(b + i * lanes, lanes, x);
    for (index_t j = i + 1; j < n; ++j, R += lanes)
      for (index_t l = 0; l < lanes; ++l) x[l] -= double(R[l]) * b[j * lanes + l];
    for (index_t l = 0; l < lanes; ++l) b[i * lanes + l] = x[l] / double(diagonal[l]);
  }
}

}  // namespace gpucholmod::cpu
