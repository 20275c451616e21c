#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "cuda/batch_passes.cuh"
#include "cuda/kernels/member_sides.h"

/// Right-hand sides that come along with a batch, on the device.
namespace gpucholmod::cuda {

/// Makes members wide: calls widen_member().
///   Grid     a thread block of whole warps for each member
template <class T>
__global__ void __launch_bounds__(256) widen_members(const BatchWide<T> of) {
  widen_member(MemberTeam(int(threadIdx.x), int(blockDim.x)), of, blockIdx.x);
}
/// Takes wide members apart: calls narrow_member().
///   Grid     a thread block of whole warps for each member
template <class T>
__global__ void __launch_bounds__(256) narrow_members(const BatchWide<T> of) {
  narrow_member(MemberTeam(int(threadIdx.x), int(blockDim.x)), of, blockIdx.x);
}

/// Throws not_supported if a member and its right-hand sides have too many columns together.
inline void require_wide_member(index_t columns) {
  if (columns > most_order)
    throw Error(ErrorCode::not_supported,
                "members of a batch on a GPU and their right-hand sides have at most " + std::to_string(most_order) +
                    " columns together; a copy of the batch can be modified with some of the right-hand sides, and"
                    " then the batch with the others",
                {{"limit", double(most_order)}});
}

/// The members of a batch with their right-hand sides as columns, in memory of their own. In a Session.
template <class T>
class WideMembers : NotCopied {
 public:
  /// Queues the kernel that makes the wide members of R, the right-hand sides and V (dV, on the device). `prepared`: of
  /// V, by `task`.
  WideMembers(Context& context, const T* R, index_t n, index_t b, const double* dV, const BatchTask& task,
              const Prepared& prepared)
      : context_(context), b_(b), sides_(task.sides), exponents_(exponents(n, b, task)),
        dwide_(context.pool(), words_of(n + m()) * b), dV_(context.pool(), (n + m()) * task.k * b),
        dY_(context.pool(), task.k * m() * b), dz_(context.pool(), n * m() * b),
        drest_(context.pool(), task.k * m() * b), dshift_(context.pool(), b * m()) {
    send(sides_.first.z, dz_);
    send(sides_.first.Y, dY_);
    of_ = {n, m(), task.k, R, dwide_.data(), nullptr, dV, task.common_V ? 0 : n * task.k, dY_.data(), dV_.data(),
           dz_.data(), nullptr, nullptr};
    if (!exponents_.empty() || !prepared.factors.empty()) {
      std::vector<int> shift(b * m());
      for (index_t i = 0; i < b * m(); ++i)
        shift[i] = (prepared.factors.empty() ? 0 : std::ilogb(prepared.factors[i / m()].out)) -
                   (exponents_.empty() ? 0 : exponents_[i]);
      check(cudaMemcpyAsync(dshift_.data(), shift.data(), dshift_.bytes(), cudaMemcpyHostToDevice, context.stream()),
            "send numbers");
      wait();
      of_.shift = dshift_.data();
    }
    widen_members<T><<<unsigned(b), threads(), 0, context.stream()>>>(of_);
    check(cudaGetLastError(), "start to widen members");
  }

  /// Returns the bytes of `count` wide triangles of each member, and of the right-hand sides and V beside them.
  static double bytes(index_t n, index_t b, const BatchTask& task, int count) {
    const index_t m = task.sides.m;
    return double(b) * (count * double(sizeof(T)) * double(words_of(n + m)) +
                        8.0 * double((n + m) * task.k + 2 * task.k * m + n * m));
  }
  T* triangles() const { return dwide_.data(); }
  /// Sets V of `pass` to that of the wide members, and `rest` to the memory for what is left of it.
  void describe(BatchPass<T>& pass) const {
    pass.V = dV_.data();
    pass.rest = drest_.data();
  }

  /// Queues the kernel that takes the members `wide` apart into right-hand sides and `out`. `told`: the reports of the
  /// passes.
  void part(T* wide, const int* told, T* out) {
    of_.wide = wide;
    of_.told = told;
    of_.out = out;
    narrow_members<T><<<unsigned(b_), threads(), 0, context_.stream()>>>(of_);
    check(cudaGetLastError(), "start to part members");
  }
  /// Fetches right-hand sides into the caller's arrays.
  void fetch() const {
    const auto get = [&](const PoolBuffer<double>& from, double* to) {
      if (from.bytes() == 0) return;
      check(cudaMemcpyAsync(to, from.data(), from.bytes(), cudaMemcpyDeviceToHost, context_.stream()),
            "fetch right-hand sides");
    };
    get(dz_, sides_.first.out);
    get(drest_, sides_.first.rest);
    wait();
    for (index_t i = 0; i < b_ && !exponents_.empty(); ++i)
      for (index_t at = i * of_.k * m(); at < (i + 1) * of_.k * m(); ++at)
        sides_.first.rest[at] = std::scalbn(sides_.first.rest[at], exponents_[at / of_.k]);
  }

 private:
  index_t m() const { return sides_.m; }
  void wait() const { check(cudaStreamSynchronize(context_.stream()), "wait for right-hand sides"); }
  /// Sends numbers, and waits, as the next call uses the same page-locked memory.
  void send(const double* from, const PoolBuffer<double>& to) const {
    send_staged(from, index_t(to.bytes() / sizeof(double)), to.data(), context_);
    wait();
  }
  unsigned threads() const {
    return of_.n + of_.m <= 2 * WARP ? 2 * WARP : 256;
  }

  /// Returns an exponent e for each right-hand side of each member; an empty vector if all are 0. The right-hand side
  /// and its part of Y are divided by 2^e, so that no sum in T is out of range.
  static std::vector<int> exponents(index_t n, index_t b, const BatchTask& task) {
    constexpr int most = sizeof(T) == 8 ? 400 : 60;
    const index_t m = task.sides.m;
    std::vector<int> all(b * m);
    for_members(n, b, [&](index_t i) {
      const MemberSides sides = task.sides.of(n, task.k, i);
      cpu::ColumnOrder order;
      order.find(task, i);
      for (index_t s = 0; s < m; ++s) {
        double largest = 0;
        for (index_t j = 0; j < n; ++j) largest = std::max(largest, std::abs(sides.z[j + s * n]));
        for (index_t p = 0; p < task.k; ++p)
          largest = std::max(largest, std::abs(sides.Y[order.column[p] + s * task.k] * order.by[p]));
        const int e = largest == 0 ? 0 : largest < INFINITY ? std::ilogb(largest) : 1023;
        all[s + i * m] = std::abs(e) > most ? e : 0;
      }
    });
    if (std::all_of(all.begin(), all.end(), [](int e) { return e == 0; })) all.clear();
    return all;
  }

  Context& context_;
  index_t b_;
  BatchSides sides_;
  std::vector<int> exponents_;
  PoolBuffer<T> dwide_;
  PoolBuffer<double> dV_, dY_, dz_, drest_;
  PoolBuffer<int> dshift_;
  BatchWide<T> of_;
};

}  // namespace gpucholmod::cuda
