#pragma once

#include <algorithm>

#include "base/held_factor.h"
#include "base/tuning.h"
#include "cuda/kernels/batch.cuh"
#include "cuda/memory.h"
#include "cuda/pass.h"

/// The launches that solve with the members of a batch.
namespace gpucholmod::cuda {

/// The shape of a launch that solves with a batch: the warps of a member, and H of solve_batch(), which takes at most
/// H^2 right-hand sides at a time.
struct SolveShape {
  int warps, H;
};

/// Returns the shape for `count` members of order n, scalars T, and m right-hand sides, on a GPU whose thread blocks
/// may have `shared` bytes of shared memory each. Solutions have the same bits in any shape.
template <class T>
SolveShape solve_shape(index_t n, index_t m, index_t count, int multiprocessors, index_t shared) {
  const int most = int(std::min<index_t>((n + WARP - 1) / WARP, most_warps_of_solve));
  SolveShape shape{std::min(most, 2), m == 1 ? 1 : m <= 4 ? 2 : 4};
  const auto fits = [&](int warps) { return solve_bytes<T>(n, shape.H * shape.H, warps) <= shared; };
  while (shape.H > 1 && !fits(shape.warps)) shape.H /= 2;
  const auto too_few = [&] {
    return n > tuning::solve_pairs || count * shape.warps < index_t(tuning::solve_warps_wanted) * multiprocessors;
  };
  while (2 * shape.warps <= most && fits(2 * shape.warps) && too_few()) shape.warps *= 2;
  return shape;
}

/// Queues one launch that solves with `count` members on the current device.
template <class T, int H>
void launch_solve(const BatchSolve<T>& solve, index_t count, TriangularSolve which, int warps, cudaStream_t stream) {
  const int members = solve.n <= WARP ? warps_of_block : 1;
  const index_t bytes = members * solve_bytes<T>(solve.n, H * H, warps);
  check(cudaFuncSetAttribute(solve_batch<T, H>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)),
        "set up a kernel");
  solve_batch<T, H><<<unsigned((count + members - 1) / members), dim3(WARP * warps, members), bytes, stream>>>(
      solve, count, which != TriangularSolve::back, which != TriangularSolve::forward);
  check(cudaGetLastError(), "start to solve");
}

/// Queues the launches that solve for all right-hand sides of `count` members; `first` and `last` of `solve` are not
/// read.
template <class T>
void queue_solve(BatchSolve<T> solve, index_t count, TriangularSolve which, cudaStream_t stream) {
  const index_t shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  for (solve.first = 0; solve.first < solve.m; solve.first = solve.last) {
    const index_t left = solve.m - solve.first;
    const auto [warps, H] = solve_shape<T>(solve.n, left, count, multiprocessors(), shared);
    const index_t together = H * H;
    solve.last = solve.first + std::min(left, std::max<index_t>(left / together, 1) * together);
    if (H == 1) launch_solve<T, 1>(solve, count, which, warps, stream);
    else if (H == 2) launch_solve<T, 2>(solve, count, which, warps, stream);
    else launch_solve<T, 4>(solve, count, which, warps, stream);
  }
}

}  // namespace gpucholmod::cuda
