#pragma once

#include <type_traits>
#include <utility>

// Macros for the files in this folder only, each of which is compiled for several sets of instructions.
#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#define GPUCHOLMOD_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define GPUCHOLMOD_TARGET_BEGIN(set) \
  GPUCHOLMOD_PRAGMA(clang attribute push(__attribute__((target(set))), apply_to = function))
#define GPUCHOLMOD_TARGET_END _Pragma("clang attribute pop")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define GPUCHOLMOD_TARGET_BEGIN(set) _Pragma("GCC push_options") GPUCHOLMOD_PRAGMA(GCC target(set))
#define GPUCHOLMOD_TARGET_END _Pragma("GCC pop_options")
#endif

// The operations of a Pack of AVX whose intrinsics differ only in two parts of their names.
#define PACK_OPERATIONS(intrinsic, scalar) \
  static INLINE V zero() { return intrinsic##_setzero_##scalar(); } \
  static INLINE V set1(T x) { return intrinsic##_set1_##scalar(x); } \
  static INLINE V load(const T* p) { return intrinsic##_loadu_##scalar(p); } \
  static INLINE void store(T* p, V x) { intrinsic##_storeu_##scalar(p, x); } \
  static INLINE V kept(V x) { \
    asm("" : "+v"(x)); \
    return x; \
  } \
  static INLINE V add(V a, V b) { return intrinsic##_add_##scalar(a, b); } \
  static INLINE V sub(V a, V b) { return intrinsic##_sub_##scalar(a, b); } \
  static INLINE V mul(V a, V b) { return intrinsic##_mul_##scalar(a, b); } \
  static INLINE V div(V a, V b) { return intrinsic##_div_##scalar(a, b); } \
  static INLINE V sqrt(V a) { return intrinsic##_sqrt_##scalar(a); } \
  static INLINE V fma(V a, V b, V c) { return intrinsic##_fmadd_##scalar(a, b, c); } \
  static INLINE V fnma(V a, V b, V c) { return intrinsic##_fnmadd_##scalar(a, b, c); } \
  static INLINE V fms(V a, V b, V c) { return intrinsic##_fmsub_##scalar(a, b, c); }

namespace gpucholmod::cpu {
template <int n>
using Count = std::integral_constant<int, n>;
}
