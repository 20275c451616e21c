#pragma once

// Macros for code that is compiled for the CPU and for the GPU.
#ifdef __CUDACC__
#define GPUCHOLMOD_HOST_DEVICE __host__ __device__ __forceinline__
// Functions off the hot path are compiled once, so that they cost neither registers nor compile time.
#define GPUCHOLMOD_HOST_DEVICE_CALL __host__ __device__ __noinline__
#define GPUCHOLMOD_UNROLL _Pragma("unroll")
#define GPUCHOLMOD_NO_UNROLL _Pragma("unroll 1")
#define GPUCHOLMOD_PRAGMA(x) _Pragma(#x)
#define GPUCHOLMOD_UNROLL_BY(n) GPUCHOLMOD_PRAGMA(unroll n)
#else
#define GPUCHOLMOD_HOST_DEVICE inline
#define GPUCHOLMOD_HOST_DEVICE_CALL inline
#define GPUCHOLMOD_UNROLL
#define GPUCHOLMOD_NO_UNROLL
#define GPUCHOLMOD_UNROLL_BY(n)
#endif
