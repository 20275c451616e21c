// Compiled and linked by configure before it believes that CUDA can be used.
#include <cuda_runtime.h>

#include <functional>

#if CUDART_VERSION < 11080
#error "CUDA 11.8 or later is needed, for clusters of blocks of threads"
#endif

template <class T>
__global__ void add(T* x, T y) { x[threadIdx.x] += y; }

extern "C" int gpucholmod_probe(double* x) {
  const std::function<void()> start = [&] { add<<<1, 32>>>(x, 1.0); };
  start();
  return cudaGetLastError() == cudaSuccess;
}
