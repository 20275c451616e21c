#include "cpu/kernels.h"

#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "cpu/group_pass.h"

namespace gpucholmod::cpu {

bool takes_halves = [] {
#if GPUCHOLMOD_X86
  __builtin_cpu_init();
  return __builtin_cpu_is("amdfam19h") != 0;
#else
  return false;
#endif
}();

bool available(Instructions instructions) {
#if GPUCHOLMOD_X86
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (instructions == Instructions::avx2) return avx2;
  if (instructions == Instructions::avx512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
  return instructions == Instructions::plain || instructions == Instructions::automatic;
}

Instructions resolve(Instructions asked) {
  if (asked == Instructions::automatic)
    return available(Instructions::avx512) ? Instructions::avx512
           : available(Instructions::avx2) ? Instructions::avx2
                                           : Instructions::plain;
  if (!available(asked))
    throw Error(ErrorCode::bad_argument, "'instructions' must be a set that this machine has",
                {{"argument", "instructions"}, {"value", asked == Instructions::avx2 ? "avx2" : "avx512"}});
  return asked;
}

template <class T>
const Kernels<T>& kernels([[maybe_unused]] Instructions instructions, index_t k, Sign sign, Uplo uplo) {
#if GPUCHOLMOD_X86
  if (instructions == Instructions::avx512) return avx512::kernels<T>(k, sign, uplo);
  if (instructions == Instructions::avx2) return avx2::kernels<T>(k, sign, uplo);
#endif
  return plain::kernels<T>(k, sign, uplo);
}

template <class T>
T squares_of_columns([[maybe_unused]] Instructions instructions, MatrixView<const T> R, Uplo uplo, index_t first,
                     index_t last, T* copy) {
#if GPUCHOLMOD_X86
  if (instructions == Instructions::avx512) return avx512::squares_of_triangle(R, uplo, first, last, copy);
  if (instructions == Instructions::avx2) return avx2::squares_of_triangle(R, uplo, first, last, copy);
#endif
  return plain::squares_of_triangle(R, uplo, first, last, copy);
}

template <class T>
T squares_of_triangle(Instructions instructions, MatrixView<const T> R, Uplo uplo, T* copy) {
  return squares_of_columns(instructions, R, uplo, 0, R.cols, copy);
}

template <class T>
T squares_by_threads(Instructions instructions, MatrixView<const T> R, Uplo uplo, int threads) {
  constexpr index_t block = 64;
  std::vector<T> sums((R.cols + block - 1) / block);
  for_columns(
      R.cols, threads,
      [&](index_t first, index_t last) {
        sums[first / block] = squares_of_columns<T>(instructions, R, uplo, first, last, nullptr);
      },
      [] {}, block);
  return std::accumulate(sums.begin(), sums.end(), T(0));
}

template <class T>
const GroupKernels<T>& group_kernels([[maybe_unused]] Instructions instructions) {
#if GPUCHOLMOD_X86
  if (instructions == Instructions::avx512) return avx512::group_kernels<T>();
  if (instructions == Instructions::avx2) return avx2::group_kernels<T>();
#endif
  return plain::group_kernels<T>();
}

template double squares_of_triangle(Instructions, MatrixView<const double>, Uplo, double*);
template float squares_of_triangle(Instructions, MatrixView<const float>, Uplo, float*);
template double squares_by_threads(Instructions, MatrixView<const double>, Uplo, int);
template float squares_by_threads(Instructions, MatrixView<const float>, Uplo, int);
template const GroupKernels<float>& group_kernels(Instructions);
template const GroupKernels<double>& group_kernels(Instructions);
template const Kernels<float>& kernels(Instructions, index_t, Sign, Uplo);
template const Kernels<double>& kernels(Instructions, index_t, Sign, Uplo);

}  // namespace gpucholmod::cpu
