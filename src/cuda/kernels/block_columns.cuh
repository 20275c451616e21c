#pragma once

#include <type_traits>

#include "block_columns/cards.h"

/// Returns whether there are kernels for segments for an architecture, as __CUDA_ARCH__ counts them: from compute
/// capability 8.0 on, whose mbarriers count copies, and from CUDA 12.1 on, whose nvcc knows all their instructions.
#define GPUCHOLMOD_SEGMENTS(architecture) ((architecture) >= 800 && CUDART_VERSION >= 12010)
/// Returns whether these kernels are the ones for GPUs of data centres, of compute capability 9.0 to 11.x, with thread
/// block clusters and bulk copies. For tests GPUCHOLMOD_CARD can be defined as Card80 or Card86: nvcc then compiles the
/// kernels of that card for every target, and they run on newer GPUs.
#ifdef GPUCHOLMOD_CARD
#define GPUCHOLMOD_CLUSTERS(architecture) 0
#else
#define GPUCHOLMOD_CLUSTERS(architecture) \
  (GPUCHOLMOD_SEGMENTS(architecture) && (architecture) >= 900 && (architecture) < 1200)
#endif
/// True if GPUCHOLMOD_V_OUTSIDE has been defined, for tests. Then V of every segment that has memory for V outside of
/// shared memory is kept in that memory.
#ifdef GPUCHOLMOD_V_OUTSIDE
#undef GPUCHOLMOD_V_OUTSIDE
#define GPUCHOLMOD_V_OUTSIDE true
#else
#define GPUCHOLMOD_V_OUTSIDE false
#endif
/// Marks a kernel's parameter that stays in constant memory, if the architecture allows it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#define GPUCHOLMOD_GRID_CONSTANT
#else
#define GPUCHOLMOD_GRID_CONSTANT __grid_constant__
#endif

namespace gpucholmod::cuda {

/// The card whose kernels are compiled for an architecture. A GPU that runs code for an older architecture is taken for
/// a GPU of that architecture.
#ifdef GPUCHOLMOD_CARD
template <int architecture>
using CardOf = std::enable_if_t<(architecture > 0), block_columns::GPUCHOLMOD_CARD>;
#else
template <int architecture>
using CardOf =
    std::conditional_t<GPUCHOLMOD_CLUSTERS(architecture), block_columns::Card90,
                       std::conditional_t<architecture <= 800, block_columns::Card80, block_columns::Card86> >;
#endif
/// True if the kernels of any of these architectures compute in floats with a factor of floats.
template <int... architectures>
constexpr bool computed_in_floats =
    (std::is_same_v<typename CardOf<architectures>::template Arithmetic<float>, float> || ...);
/// True if computed_in_floats is true for the architectures that the kernels are compiled for, or if these are unknown.
#ifdef __CUDA_ARCH_LIST__
constexpr bool has_single = computed_in_floats<__CUDA_ARCH_LIST__>;
#else
constexpr bool has_single = true;
#endif
/// Returns f(card) for an architecture that is known only at run time.
template <class F>
auto with_card(int architecture, F&& f) {
  if (GPUCHOLMOD_CLUSTERS(architecture)) return f(CardOf<900>{});
  if (architecture <= 800) return f(CardOf<800>{});
  return f(CardOf<890>{});
}

}  // namespace gpucholmod::cuda
