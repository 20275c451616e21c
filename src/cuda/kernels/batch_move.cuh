#pragma once

#include "cuda/kernels/batch.cuh"
#include "cuda/kernels/member_move.h"

namespace gpucholmod::cuda {

/// Returns the team of all threads of a thread block, which works on one member.
__device__ __forceinline__ MemberTeam team_of_block() { return MemberTeam(int(threadIdx.x), int(blockDim.x)); }

/// Moves a row and column of each member.
///   Grid     a block for each member, of a thread for each column in whole warps
///   Shared   ReshapeRoom
template <class T>
__global__ void __launch_bounds__(1024) move_rows_of_batch(const BatchMoves<T> of) {
  __shared__ ReshapeRoom sRoom;
  move_rows(team_of_block(), of, blockIdx.x, sRoom);
}

}  // namespace gpucholmod::cuda
