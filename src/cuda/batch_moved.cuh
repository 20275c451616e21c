#pragma once

#include <vector>

#include "base/held_batch.h"
#include "cuda/context.h"
#include "cuda/kernels/batch_move.cuh"
#include "cuda/transfer.cuh"

namespace gpucholmod::cuda {

/// Moves a row and column of each member, and fetches right-hand sides. R: packed triangles of order n on the device,
/// of members with the given orders. Waits for the device. Returns false if an entry of a diagonal is too small for T.
/// In a Session.
template <class T>
bool move_rows_of_members(Context& context, const BatchShift& what, const std::vector<index_t>& orders, index_t n,
                          T* R) {
  const index_t b = index_t(orders.size()), words = n * what.sides.m * b;
  if (n * b == 0) return true;
  const cudaStream_t stream = context.stream();
  std::vector<MemberMove> moves;
  for (index_t m = 0; m < b; ++m) moves.push_back({int(orders[m]), int(what.from_of(m)), int(what.to_of(m))});
  const PoolBuffer<MemberMove> dmoves(context.pool(), b);
  const PoolBuffer<double> dz(context.pool(), words);
  const PoolBuffer<int> dany(context.pool(), 1);
  check(cudaMemcpyAsync(dmoves.data(), moves.data(), dmoves.bytes(), cudaMemcpyHostToDevice, stream), "send places");
  check(cudaMemsetAsync(dany.data(), 0, dany.bytes(), stream), "clear numbers");
  if (words > 0) send_staged(what.sides.first.z, words, dz.data(), context);
  const BatchMoves<T> of{int(n), Numbers<T>::of(R), dmoves.data(), int(what.sides.m), dz.data(), dany.data()};
  move_rows_of_batch<<<unsigned(b), unsigned((n + WARP - 1) / WARP * WARP), 0, stream>>>(of);
  check(cudaGetLastError(), "start to move rows");
  int any = 0;
  check(cudaMemcpyAsync(&any, dany.data(), sizeof any, cudaMemcpyDeviceToHost, stream), "fetch numbers");
  if (words > 0)
    check(cudaMemcpyAsync(what.sides.first.out, dz.data(), dz.bytes(), cudaMemcpyDeviceToHost, stream),
          "fetch right-hand sides");
  check(cudaStreamSynchronize(stream), "move rows");
  return !any;
}

}  // namespace gpucholmod::cuda
