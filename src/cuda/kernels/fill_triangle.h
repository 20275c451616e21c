#pragma once

#include "cuda/kernels/member.h"

namespace gpucholmod::cuda {

constexpr int at_once = 8;  ///< numbers that a thread has on their way at a time

/// Sets entry (i, j) of the first `rows` rows of a packed triangle of order n to f(i, j).
template <class Team, class T, class F>
GPUCHOLMOD_HOST_DEVICE void fill_triangle(const Team& team, const Numbers<T>& out, int n, int rows, F&& f) {
  team.threads([&](int thread) {
    double x[at_once];
    for (int i = thread / WARP; i < rows; i += team.size() / WARP) {
      const Numbers<T> row = out + row_of(n, i);
      GPUCHOLMOD_NO_UNROLL for (int j = i + thread % WARP; j < n; j += at_once * WARP) {
        GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u)
          if (j + u * WARP < n) x[u] = f(i, j + u * WARP);
        GPUCHOLMOD_UNROLL for (int u = 0; u < at_once; ++u)
          if (j + u * WARP < n) row.set(x[u], j + u * WARP);
      }
    }
  });
}

}  // namespace gpucholmod::cuda
