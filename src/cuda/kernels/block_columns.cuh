#pragma once

#include <type_traits>

#include "block_columns/cards.h"

/// Whether there are kernels for segments for an architecture, as __CUDA_ARCH__ counts them: from compute capability
/// 8.0 on, whose barriers count copies; nvcc knows all their instructions from CUDA 12.1 on.
#define GPUCHOLMOD_SEGMENTS(architecture) ((architecture) >= 800 && CUDART_VERSION >= 12010)
/// And whether these are the ones for GPUs of data centres from 9.0 on, with clusters of blocks of threads and bulk
/// copies. For tests nvcc can be told GPUCHOLMOD_CARD, Card80 or Card86: then its kernels are compiled for every
/// target, and run on newer GPUs.
#ifdef GPUCHOLMOD_CARD
#define GPUCHOLMOD_CLUSTERS(architecture) 0
#else
#define GPUCHOLMOD_CLUSTERS(architecture) \
  (GPUCHOLMOD_SEGMENTS(architecture) && (architecture) >= 900 && (architecture) < 1200)
#endif
/// For tests nvcc can be told GPUCHOLMOD_V_OUTSIDE: then V of a segment that has memory for it is outside of shared
/// memory.
#ifdef GPUCHOLMOD_V_OUTSIDE
#undef GPUCHOLMOD_V_OUTSIDE
#define GPUCHOLMOD_V_OUTSIDE true
#else
#define GPUCHOLMOD_V_OUTSIDE false
#endif
/// A parameter that stays in constant memory, where a kernel can have such.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define GPUCHOLMOD_GRID_CONSTANT
#else
#define GPUCHOLMOD_GRID_CONSTANT __grid_constant__
#endif

namespace gpucholmod::cuda {

/// The card whose kernels are compiled for an architecture. A GPU that runs code for an older one is taken for that.
#ifdef GPUCHOLMOD_CARD
template <int architecture>
using CardOf = std::enable_if_t<(architecture > 0), block_columns::GPUCHOLMOD_CARD>;
#else
template <int architecture>
using CardOf =
    std::conditional_t<GPUCHOLMOD_CLUSTERS(architecture), block_columns::Card90,
                       std::conditional_t<architecture <= 800, block_columns::Card80, block_columns::Card86> >;
#endif
/// Whether a factor of floats is computed with in floats by the kernels of any of these architectures, and of those
/// that are compiled for.
template <int... architectures>
constexpr bool computed_in_floats =
    (std::is_same_v<typename CardOf<architectures>::template Arithmetic<float>, float> || ...);
#ifdef __CUDA_ARCH_LIST__
constexpr bool has_single = computed_in_floats<__CUDA_ARCH_LIST__>;
#else
constexpr bool has_single = true;
#endif
/// f(card), where the architecture is known only when it runs.
template <class F>
auto with_card(int architecture, F&& f) {
  if (GPUCHOLMOD_CLUSTERS(architecture)) return f(CardOf<900>{});
  if (architecture <= 800) return f(CardOf<800>{});
  return f(CardOf<890>{});
}

}  // namespace gpucholmod::cuda
