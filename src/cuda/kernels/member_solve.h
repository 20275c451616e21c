#pragma once

#include "cuda/kernels/member.h"

/// Triangular systems of the members of a batch, by a team of a thread for each column.
namespace gpucholmod::cuda {

/// Right-hand sides of every member: B (n x m each).
template <class T>
struct BatchSolve {
  index_t n, m;
  Numbers<T> R;
  double* B;
};

/// B <- R'^-1 B of columns [first, first + K) of one member, row by row; x (2): room of a team.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void substitute_forward(const Team& team, const BatchSolve<T>& solve, index_t member,
                                               index_t first, double (*x)[K]) {
  const int n = int(solve.n), columns = int(solve.m - first < K ? solve.m - first : K);
  const Numbers<T> R = solve.R + member * words_of(n);
  double* const B = solve.B + (member * solve.m + first) * n;
  typename Team::template PerThread<ColumnOfV<K>> b;
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] = q < columns && j < n ? B[index_t(q) * n + j] : 0;
  });
  GPUCHOLMOD_NO_UNROLL for (int i = 0; i < n; ++i) {
    team.warp(i / WARP, [&](int thread) {
      if (thread != i) return;
      const double r = R.get(row_of(n, i) + i);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) x[i % 2][q] = b[thread].q[q] /= r;
    });
    team.sync();
    team.threads([&](int j) {
      if (j <= i || j >= n) return;
      const double r = R.get(row_of(n, i) + j);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] -= r * x[i % 2][q];
    });
  }
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q)
      if (q < columns && j < n) B[index_t(q) * n + j] = b[j].q[q];
  });
}

/// B <- R^-1 B likewise, from the last column of R on.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void substitute_back(const Team& team, const BatchSolve<T>& solve, index_t member, index_t first,
                                            double (*x)[K]) {
  const int n = int(solve.n), columns = int(solve.m - first < K ? solve.m - first : K);
  const Numbers<T> R = solve.R + member * words_of(n);
  double* const B = solve.B + (member * solve.m + first) * n;
  typename Team::template PerThread<ColumnOfV<K>> b;
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] = q < columns && j < n ? B[index_t(q) * n + j] : 0;
  });
  GPUCHOLMOD_NO_UNROLL for (int i = n - 1; i >= 0; --i) {
    team.warp(i / WARP, [&](int thread) {
      if (thread != i) return;
      const double r = R.get(row_of(n, i) + i);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) x[i % 2][q] = b[thread].q[q] /= r;
    });
    team.sync();
    team.threads([&](int j) {
      if (j >= i) return;
      const double r = R.get(row_of(n, j) + i);
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) b[j].q[q] -= r * x[i % 2][q];
    });
  }
  team.threads([&](int j) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q)
      if (q < columns && j < n) B[index_t(q) * n + j] = b[j].q[q];
  });
}

}  // namespace gpucholmod::cuda
