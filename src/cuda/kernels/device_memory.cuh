#pragma once

#include <type_traits>

#include "block_columns/segment.h"

namespace gpucholmod::cuda {

/// Accesses memory for a warp of block_columns/warp.h, including what other warps have written there.
struct DeviceMemory {
  template <block_columns::Access access, class S>
  __device__ static __forceinline__ S read(const S* p) {
    if constexpr (access == block_columns::Access::shared) return *p;
    else return read_global<access>(p);
  }
  template <block_columns::Access access, class S>
  __device__ static __forceinline__ void write(S* p, const S& value) {
    if constexpr (access == block_columns::Access::stream) write_stream(p, value);
    else *p = value;
  }

  /// Reads a word of shared memory by itself: the compiler does not read the neighbouring word along with it.
  __device__ static __forceinline__ double shared_word(const double* p) {
    double value;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(unsigned(__cvta_generic_to_shared(p))) : "memory");
    return value;
  }
  __device__ static __forceinline__ float shared_word(const float* p) { return *p; }

  /// Begins to copy 16 bytes, and tells the second-level cache that the 256 bytes around them are read soon.
  static __device__ __forceinline__ void copy_16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from)
                 : "memory");
#endif
  }
  static __device__ __forceinline__ void end_copy() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  template <int pending>
  static __device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
  }

  __device__ static __forceinline__ int load_acquire(const int* flag, bool several = false) {
    int value = 0;
#if __CUDA_ARCH__ >= 700
    if (several) asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    else asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
#endif
    return value;
  }
  __device__ static __forceinline__ int load_relaxed(const int* flag) {
    return *static_cast<const volatile int*>(flag);
  }
  __device__ static __forceinline__ void store_release(int* flag, int value, bool several = false) {
#if __CUDA_ARCH__ >= 700
    if (several) asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
    else asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#endif
  }
  __device__ static __forceinline__ void add_release(int* counter, int more = 1, bool several = false) {
#if __CUDA_ARCH__ >= 700
    if (several) asm volatile("red.release.sys.global.add.s32 [%0], %1;" ::"l"(counter), "r"(more) : "memory");
    else asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(counter), "r"(more) : "memory");
#endif
  }
  __device__ static __forceinline__ void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
  /// A wait by polling. If GPUCHOLMOD_WATCHDOG gives a number of seconds, a wait of that length ends the kernel.
  struct Wait {
#ifdef GPUCHOLMOD_WATCHDOG
    unsigned long long since = now();
    __device__ __forceinline__ void pause() const {
      if (now() - since > GPUCHOLMOD_WATCHDOG * 1000000000ull) __trap();
    }
    __device__ static __forceinline__ unsigned long long now() {
      unsigned long long ns;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
      return ns;
    }
#else
    __device__ __forceinline__ void pause() const {}
#endif
  };
  /// Makes the compiler compute values that depend on x anew, instead of keeping them: for code in which registers are
  /// scarcer than time.
  __device__ static __forceinline__ void compute_anew(index_t& x) { asm volatile("" : "+l"(x)); }
  __device__ static __forceinline__ void compute_anew(int& x) { asm volatile("" : "+r"(x)); }

 private:
  template <class T>
  using Vector = std::conditional_t<std::is_same_v<T, double>, double2, float2>;

  template <block_columns::Access access, class T>
  __device__ static __forceinline__ block_columns::Pair<T> read_global(const block_columns::Pair<T>* p) {
    const auto* at = reinterpret_cast<const Vector<T>*>(p);
    const Vector<T> v = access == block_columns::Access::transform ? __ldcg(at) : __ldcs(at);
    return {v.x, v.y};
  }
  template <block_columns::Access access, class T>
  __device__ static __forceinline__ T read_global(const T* p) { return __ldcg(p); }

  template <class T>
  __device__ static __forceinline__ void write_stream(block_columns::Pair<T>* p, const block_columns::Pair<T>& v) {
    __stcs(reinterpret_cast<Vector<T>*>(p), Vector<T>{v.x, v.y});
  }
  template <class T>
  __device__ static __forceinline__ void write_stream(T* p, const T& v) { __stcs(p, v); }
};

}  // namespace gpucholmod::cuda
