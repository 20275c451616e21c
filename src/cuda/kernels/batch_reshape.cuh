#pragma once

#include "cuda/kernels/batch_move.cuh"
#include "cuda/kernels/member_reshape.h"

namespace gpucholmod::cuda {

///   Grid     a block of whole warps for each member
template <class T>
__global__ void __launch_bounds__(1024) part_columns_of_batch(const BatchRows<T> of) {
  part_new_columns(team_of_block(), of, blockIdx.x);
}

///   Grid     a warp for each of `count` members
template <class T>
__global__ void __launch_bounds__(WARP* warps_of_block) factorise_corners(const BatchRows<T> of, index_t count) {
  const index_t member = index_t(blockIdx.x) * warps_of_block + threadIdx.y;
  if (member < count) factorise_corner(MemberTeam(int(threadIdx.x), WARP), of, member);
}

///   Grid     a block of whole warps for each member
template <class T>
__global__ void __launch_bounds__(1024) append_rows_of_batch(const BatchRows<T> of) {
  append_rows(team_of_block(), of, blockIdx.x);
}

///   Grid     a block for each member, of a thread for each column in whole warps
///   Shared   ReshapeRoom
template <class T>
__global__ void __launch_bounds__(1024) place_rows_of_batch(const BatchRows<T> of) {
  __shared__ ReshapeRoom sRoom;
  place_rows(team_of_block(), of, blockIdx.x, sRoom);
}

///   Grid     a block of whole warps for each member
///   Shared   ReshapeRoom
template <class T>
__global__ void __launch_bounds__(1024) remove_rows_of_batch(const BatchRowsGone<T> of) {
  __shared__ ReshapeRoom sRoom;
  remove_rows(team_of_block(), of, blockIdx.x, sRoom);
}

/// What a scale has made of rows that members have not becomes the identity's again. orders: of the members.
///   Grid     a thread for each diagonal entry of all members, n each
template <class T>
__global__ void clear_beyond(T* R, index_t n, index_t count, const int* orders) {
  const index_t at = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const index_t member = at / n, j = at % n;
  if (j >= orders[member]) R[member * words_of(n) + row_of(n, j) + j] = T(1);
}

}  // namespace gpucholmod::cuda
