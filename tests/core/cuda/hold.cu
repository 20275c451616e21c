#include "hold.h"

namespace gpucholmod::test {
namespace {

/// Spins for `ns` nanoseconds. Each thread block takes so much shared memory that no other fits beside it.
__global__ void spin(unsigned long long ns) {
  extern __shared__ char all[];
  if (threadIdx.x == 0) all[0] = 0;
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

}  // namespace

void hold_multiprocessors(int blocks, double seconds, cudaStream_t stream) {
  constexpr int bytes = 200 * 1024;
  cuda::check(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "set up a kernel");
  spin<<<unsigned(blocks), 32, bytes, stream>>>((unsigned long long)(seconds * 1e9));
  cuda::check(cudaGetLastError(), "start a kernel");
}

}  // namespace gpucholmod::test
