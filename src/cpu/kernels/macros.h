#pragma once

#include <type_traits>

// For the files in this folder alone, each of which is compiled for several sets of instructions.
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

namespace gpucholmod::cpu {
template <int n>
using Count = std::integral_constant<int, n>;
}
