#pragma once

#include "cuda/kernels/batch_move.cuh"
#include "cuda/kernels/member_reshape.h"

namespace gpucholmod::cuda {

/// Splits the new columns of each member.
///   Grid     a block of whole warps for each member
template <class T>
__global__ void __launch_bounds__(1024) part_columns_of_batch(const BatchRows<T> of) {
  part_new_columns(team_of_block(), of, blockIdx.x);
}

/// Factorises the corner of each member.
///   Grid     a warp for each of `count` members
template <class T>
__global__ void __launch_bounds__(WARP* warps_of_block) factorise_corners(const BatchRows<T> of, index_t count) {
  const index_t member = index_t(blockIdx.x) * warps_of_block + threadIdx.y;
  if (member < count) factorise_corner(MemberTeam(int(threadIdx.x), WARP), of, member);
}

/// Writes the rows of each member, with the new rows at the end.
///   Grid     a block of whole warps for each member
template <class T>
__global__ void __launch_bounds__(1024) append_rows_of_batch(const BatchRows<T> of) {
  append_rows(team_of_block(), of, blockIdx.x);
}

/// Moves the new rows of each member to their places.
///   Grid     a block for each member, of a thread for each column in whole warps
///   Shared   ReshapeRoom
template <class T>
__global__ void __launch_bounds__(1024) place_rows_of_batch(const BatchRows<T> of) {
  __shared__ ReshapeRoom sRoom;
  place_rows(team_of_block(), of, blockIdx.x, sRoom);
}

/// Deletes rows of each member.
///   Grid     a block of whole warps for each member
///   Shared   ReshapeRoom
template <class T>
__global__ void __launch_bounds__(1024) remove_rows_of_batch(const BatchRowsGone<T> of) {
  __shared__ ReshapeRoom sRoom;
  remove_rows(team_of_block(), of, blockIdx.x, sRoom);
}

/// Sets the diagonal of the rows beyond each member's order to that of the identity again, after a scale has changed
/// it. `orders` has the orders of the members.
///   Grid     a thread for each diagonal entry of all members, n each
template <class T>
__global__ void clear_beyond(T* R, index_t n, index_t count, const int* orders) {
  const index_t at = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const index_t member = at / n, j = at % n;
  if (j >= orders[member]) R[member * words_of(n) + row_of(n, j) + j] = T(1);
}

}  // namespace gpucholmod::cuda
