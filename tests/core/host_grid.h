#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "block_columns/segment.h"

/// Warps and teams of warps on the CPU, for tests of block_columns/: any number of thread blocks, each team of warps in
/// one thread.
namespace gpucholmod::block_columns {

/// A warp that computes in the arithmetic A. Its lanes run one after the other. The comments on functions hold for a
/// warp of a GPU, too.
template <class A>
struct HostLanes {
  using Arithmetic = A;
  /// Holds one S for each lane.
  template <class S>
  struct PerLane {
    S of[LANES];
    S& operator[](int lane) { return of[lane]; }
    const S& operator[](int lane) const { return of[lane]; }
  };

  int id = 0;  ///< number of the warp in its team

  template <class F>
  void each(F&& f) const {
    for (int lane = 0; lane < LANES; ++lane) f(lane);
  }
  void sync() const {}

  /// Returns the sum over all lanes, which every lane receives.
  A total(const PerLane<A>& x) const {
    A sum[LANES];
    for (int lane = 0; lane < LANES; ++lane) sum[lane] = x[lane];
    for (int stride = 16; stride > 0; stride /= 2)
      for (int lane = 0; lane < stride; ++lane) sum[lane] += sum[lane + stride];
    return sum[0];
  }
  A from_lane(const PerLane<A>& x, int lane) const { return x[lane]; }
  static A reciprocal_root(A x) { return 1 / std::sqrt(x); }
  static A reciprocal(A x) { return 1 / x; }  ///< like reciprocal_root(), for x far from the ends of the range

  /// Computes D (16 x 8) <- D + s A B, A (16 x 8) in `left`, B (8 x 8) with B(k, n) at B[n * ld + k].
  template <int s, Access>
  void multiply_add(PerLane<Fragment<A>>& D, const PerLane<LeftFragment<A>>& left, const A* B, int ld) const {
    A a[16][8];
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 4; ++i) a[group_id(lane) + 8 * (i % 2)][2 * thread_in_group(lane) + i / 2] = left[lane].e[i];
    multiply_add_dense<s>(D, a, B, ld);
  }
  template <int s>
  void multiply_add_dense(PerLane<Fragment<A>>& D, const A (&a)[16][8], const A* B, int ld) const {
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int m = group_id(lane) + 8 * (i / 2), n = 2 * thread_in_group(lane) + i % 2;
        A sum = D[lane].e[i];
        for (int k = 0; k < 8; ++k) sum += a[m][k] * (s * B[n * ld + k]);
        D[lane].e[i] = sum;
      }
  }

  /// Computes D_j <- D_j + s L B_j for `count` matrices B_j; L(m, k) at left[m * left_ld + k] (16 x 8), B_j(k, n) at
  /// right[j * stride + n * right_ld + k].
  template <int s, int count>
  void multiply_add_in_place(PerLane<Fragment<A>>* D, const A* left, int left_ld, const A* right, int right_ld,
                             int stride) const {
    A a[16][8];
    for (int m = 0; m < 16; ++m)
      for (int k = 0; k < 8; ++k) a[m][k] = left[m * left_ld + k];
    for (int j = 0; j < count; ++j) multiply_add_dense<s>(D[j], a, right + j * stride, right_ld);
  }
  /// Holds 16 rows of a matrix of order NB. load_rows() reads element (m, l) from p[m * ld + l].
  struct Rows {
    A e[16][NB];
  };
  Rows load_rows(const A* p, int ld) const {
    Rows rows;
    for (int m = 0; m < 16; ++m) std::copy_n(p + m * ld, NB, rows.e[m]);
    return rows;
  }
  /// Computes D <- D + s rows P, P(l, q) at P[q * ld + l].
  template <int s>
  void multiply_add_rows_of(PerLane<Fragment<A>>& D, const Rows& rows, const A* P, int ld) const {
    PerLane<Fragment<A>> sum[2] = {D, {}};  // two sums, in the order of Solve on other cards
    for (int first = 0; first < NB; first += 8)
      multiply_add_in_place<s, 1>(&sum[first / 8 % 2], rows.e[0] + first, NB, P + first, ld, 0);
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 4; ++i) D[lane].e[i] = sum[0][lane].e[i] + sum[1][lane].e[i];
  }

  /// Computes D <- D + s A B, A from load_left_apart(), B(k, n) at B[k * k_stride + n * n_stride].
  template <int s>
  void multiply_add_apart(PerLane<Fragment<A>>& D, const PerLane<LeftFragment<A>>& left, const A* B, int k_stride,
                          int n_stride) const {
    A a[16][8], columns[64];
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 4; ++i)
        a[group_id(lane) + 8 * (i % 2)][thread_in_group(lane) + 4 * (i / 2)] = left[lane].e[i];
    for (int k = 0; k < 8; ++k)
      for (int n = 0; n < 8; ++n) columns[n * 8 + k] = B[k * k_stride + n * n_stride];
    multiply_add_dense<s>(D, a, columns, 8);
  }

  /// Computes D <- D + s A B as multiply_add(), but with B(k, n) at B[k * ld + n].
  template <int s>
  void multiply_add_rows(PerLane<Fragment<A>>& D, const PerLane<LeftFragment<A>>& left, const A* B, int ld) const {
    A columns[64];
    for (int k = 0; k < 8; ++k)
      for (int n = 0; n < 8; ++n) columns[n * 8 + k] = B[k * ld + n];
    multiply_add<s, Access::shared>(D, left, columns, 8);
  }

  /// Computes D <- D + A B as multiply_add(), but with B(k, n) = tile(8 * half + n, k).
  template <int half>
  void multiply_add_half(PerLane<Fragment<A>>& D, const PerLane<LeftFragment<A>>& left,
                         const PerLane<Fragment<A>>& tile) const {
    A columns[64];
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 2; ++i)
        columns[group_id(lane) * 8 + 2 * thread_in_group(lane) + i] = tile[lane].e[2 * half + i];
    multiply_add<1, Access::shared>(D, left, columns, 8);
  }
  template <class T>
  static T shared_word(const T* p) { return *p; }
  static void compute_anew(index_t&) {}
  static void compute_anew(int&) {}

  template <Access, class S>
  static S read(const S* p) { return *p; }
  template <Access, class S>
  static void write(S* p, const S& value) { *p = value; }

  /// Returns the number of lanes before the first lane for which f is false.
  template <class F>
  int leading(F&& f) const {
    int lane = 0;
    while (lane < LANES && f(lane)) ++lane;
    return lane;
  }
  /// Loads a flag. With `several`, everything that another rank wrote before it set the flag may be read afterwards.
  /// The stores below, with `several`, let other ranks read everything that this rank wrote before.
  static int load_acquire(const int* flag, bool = false) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
  static int load_relaxed(const int* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }  ///< Orders nothing
  static void store_release(int* flag, int value, bool = false) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
  static void add_release(int* counter, int more = 1, bool = false) {
    __atomic_fetch_add(counter, more, __ATOMIC_RELEASE);
  }
  static void prefetch(const void*) {}  ///< Fetches the cache line into the second-level cache
  /// Begins to copy 16 bytes to shared memory. All these copies up to the next end_copy() count as one copy.
  static void copy_16(void* to, const void* from) { std::memcpy(to, from, 16); }
  static void end_copy() {}
  /// Waits until all copies that this lane has begun are complete, except the last `pending`. Copies of other lanes are
  /// complete after sync().
  template <int pending>
  static void wait_for_copies() {}
  template <class F>
  void once(F&& f) const { f(); }  ///< Calls f in one lane
  static void pause() { std::this_thread::yield(); }
  /// A wait that polls.
  struct Wait {
    void pause() const { HostLanes::pause(); }
  };
};

/// A warp of a card, with the card's sizes.
template <class Card_, class A = double>
struct HostWarpOf : HostLanes<A> {
  using Card = Card_;
  static constexpr bool in_place = Card::products == Products::fma;
};
using HostWarp = HostWarpOf<Card90>;

/// A team: a thread block or a part of one. Its warps run one after the other, so that all are done when a function
/// that ends in a barrier returns.
template <class Card, class A = double>
struct HostTeamOf {
  using Warp = HostWarpOf<Card, A>;
  template <class S>
  struct PerWarp {
    S of[16];  // no team has more warps
    S& operator[](const Warp& warp) { return of[warp.id]; }
  };

  template <class S>
  struct PerThread {
    S of[WARPS * LANES];
    S& operator[](int thread) { return of[thread]; }
  };

  A* shared;
  int warp_count = WARPS;

  int size() const { return warp_count; }
  template <class F>
  void warps_sync(F&& f) {
    for (int w = 0; w < warp_count; ++w) {
      Warp warp{{w}};
      f(warp);
    }
  }
  template <class F>
  void each_warp(F&& f) { warps_sync(f); }
  template <class F>
  bool all_sync(F&& f) {
    bool all = true;
    for (int w = 0; w < warp_count; ++w) {
      Warp warp{{w}};
      all = f(warp) && all;
    }
    return all;
  }
  /// Returns to each warp the value of f for this warp, without a barrier. (Here all warps have one value.)
  template <class F>
  bool all_warps(F&& f) { return all_sync(f); }
  /// Calls f(warp, i) in the warps for which is_first(warp), and g(warp, i) in the others, for i from `begin` on, until
  /// calls return false or i is `end`; without a barrier. Returns this i. Here all warps do i before one does i + 1, in
  /// the order of their numbers.
  template <class P, class F, class G>
  int each_in_step(int begin, int end, P&& is_first, F&& f, G&& g) {
    int i = begin;
    while (i < end && all_sync([&](Warp& warp) { return is_first(warp) ? f(warp, i) : g(warp, i); })) ++i;
    return i;
  }
  template <class F>
  void threads_sync(F&& f) {
    for (int thread = 0; thread < warp_count * LANES; ++thread) f(thread);
  }
  template <class F>
  void each_thread(F&& f) { threads_sync(f); }
  template <class F>
  void once(F&& f) { f(); }
  /// Calls f(team of the first `count` warps) in these, without a barrier for all.
  template <class F>
  void with_first(int count, F&& f) { f(HostTeamOf{shared, count}); }
  void barrier() {}
  void store_release(int* flag, int value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
  /// Tells all roles that a row block is rejected; `left` as in SegmentState.
  void reject(SegmentState* state, int left, bool = false) {
    int known = __atomic_load_n(&state->left, __ATOMIC_RELAXED);
    while (known < left &&
           !__atomic_compare_exchange_n(&state->left, &known, left, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    store_release(&state->stop, 1);
  }
  void stop(PassState* pass_state, Stop why, int pivot, double entry = 0) {
    pass_state->pivot = pivot;
    pass_state->set_entry(entry);
    store_release(&pass_state->stop, why);
  }
};

using HostTeam = HostTeamOf<Card90>;

}  // namespace gpucholmod::block_columns
