#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/kernels/member.h"
#include "matrices.h"

/// A team of threads that works on a member of a batch. The threads run one after the other.
namespace gpucholmod::test {

using cuda::ColumnOfV;
using cuda::WARP;

/// A team of threads as member.h uses it; the device's team is in cuda/kernels/batch.cuh.
struct HostTeam {
  template <class S>
  struct PerThread {
    std::vector<S> of = std::vector<S>(1024);
    decltype(auto) operator[](int thread) const { return const_cast<PerThread*>(this)->of[thread]; }
    decltype(auto) operator[](int thread) { return of[thread]; }
  };
  int count;
  int size() const { return count; }
  template <class F>
  void threads(F&& f) const {
    for (int thread = 0; thread < size(); ++thread) f(thread);
  }
  template <int K>
  static ColumnOfV<K> load(const double (&v)[K]) {
    ColumnOfV<K> out;
    std::copy_n(v, K, out.q);
    return out;
  }
  template <class F>
  void each_warp(F&& f) const {
    for (int w = 0; w < size() / WARP; ++w) f(w);
  }
  template <class F>
  void lanes(F&& f) const {
    for (int lane = 0; lane < WARP; ++lane) f(lane);
  }
  template <class F>
  PerThread<double> shuffled(const PerThread<double>& x, F&& from) const {
    PerThread<double> out;
    for (int lane = 0; lane < WARP; ++lane) out[lane] = x[from(lane)];
    return out;
  }
  template <class T>
  static void start_copy(T* to, const T* from) { *to = *from; }
  static void wait_for_copies() {}
  static void end_copies() {}
  template <int>
  static void wait_for_copies() {}
  double sum(const PerThread<double>& x) const {
    double all = 0;
    for (int thread = 0; thread < size(); ++thread) all += x[thread];
    return all;
  }
  void sync_warp() const {}
  void sync() const {}
  static double rounded_square(double x) { return x * x; }
  static double reciprocal(double x) { return 1 / x; }
  /// Returns 1 / sqrt(x), with 0 for an x that has lost digits, as the device does.
  static double reciprocal_root(double x) { return 1 / std::sqrt(x > 0 && x < cuda::least_double ? 0 : x); }
};

/// Returns the number of threads of the fewest whole warps that have a thread for each column.
inline int a_thread_for_each(index_t columns) { return int((columns + WARP - 1) / WARP * WARP); }

/// Returns the packed triangle of R, in scalars T. unpacked() is the inverse.
template <class T, class S>
std::vector<T> packed(const Stored<S>& R) {
  const index_t n = R.cols();
  std::vector<T> words(cuda::words_of(n));
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i; j < n; ++j) words[cuda::row_of(n, i) + j] = T(R(i, j));
  return words;
}
template <class T>
Stored<T> unpacked(const T* words, index_t n) {
  Stored<T> R = Stored<T>::Zero(n, n);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i; j < n; ++j) R(i, j) = words[cuda::row_of(n, i) + j];
  return R;
}
template <class T>
Stored<T> unpacked(const std::vector<T>& words, index_t n) {
  return unpacked(words.data(), n);
}

}  // namespace gpucholmod::test
