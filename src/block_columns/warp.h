#pragma once

#include <cmath>
#include <cstring>
#include <thread>

#include "base/host_device.h"
#include "base/matrix_view.h"

/// What the algorithm asks of a warp: 32 lanes in step, and products of small matrices spread over them.
///
/// The algorithm is written once, over a class Warp: DeviceWarp (cuda/kernels/device_warp.cuh) is the real thing, HostWarp
/// below runs the lanes one after the other, with the same share of every matrix in every lane.
namespace gpucholmod::block_columns {

constexpr int LANES = 32;

/// Where an operand lies, for the caches' sake.
enum class Access {
  shared,     ///< shared memory
  transform,  ///< written by another block of threads during this launch
  stream      ///< the factor: read once
};

/// A lane's share of a 16 x 8 tile: of rows g and g + 8, g = lane / 4, the columns 2t and 2t + 1, t = lane % 4.
struct Fragment {
  double e[4];  ///< (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
};

/// The same share in the order in which a product takes its left factor from the registers.
struct LeftFragment {
  double e[4];  ///< (g, 2t), (g + 8, 2t), (g, 2t + 1), (g + 8, 2t + 1)
};

template <class Warp>
using Tile = typename Warp::template PerLane<Fragment>;
template <class Warp>
using Left = typename Warp::template PerLane<LeftFragment>;

/// groupID and threadID_in_group, as PTX calls them where it says which lane holds what of a tile.
GPUCHOLMOD_HOST_DEVICE constexpr int group_id(int lane) { return lane / 4; }
GPUCHOLMOD_HOST_DEVICE constexpr int thread_in_group(int lane) { return lane % 4; }

struct HostWarp {
  /// One S in every lane.
  template <class S>
  struct PerLane {
    S of[LANES];
    S& operator[](int lane) { return of[lane]; }
    const S& operator[](int lane) const { return of[lane]; }
  };

  int id = 0;  ///< in its block of threads

  template <class F>
  void each(F&& f) const {
    for (int lane = 0; lane < LANES; ++lane) f(lane);
  }
  void sync() const {}

  /// x <- the sum over the four lanes of a quad.
  void quad_sum(PerLane<double>& x) const {
    for (int first = 0; first < LANES; first += 4) {
      const double sum = (x[first] + x[first + 1]) + (x[first + 2] + x[first + 3]);
      for (int t = 0; t < 4; ++t) x[first + t] = sum;
    }
  }
  /// x <- the largest of the four lanes of a quad.
  void quad_max(PerLane<double>& x) const {
    for (int first = 0; first < LANES; first += 4) {
      double top = x[first];
      for (int t = 1; t < 4; ++t) top = x[first + t] > top ? x[first + t] : top;
      for (int t = 0; t < 4; ++t) x[first + t] = top;
    }
  }
  /// x <- what lane `t` of each quad holds.
  void quad_broadcast(PerLane<double>& x, int t) const {
    for (int first = 0; first < LANES; first += 4) {
      const double value = x[first + t];
      for (int other = 0; other < 4; ++other) x[first + other] = value;
    }
  }
  /// The sum over all lanes, in every lane.
  double total(const PerLane<double>& x) const {
    double sum[LANES];
    for (int lane = 0; lane < LANES; ++lane) sum[lane] = x[lane];
    for (int stride = 16; stride > 0; stride /= 2)
      for (int lane = 0; lane < stride; ++lane) sum[lane] += sum[lane + stride];
    return sum[0];
  }
  double from_lane(const PerLane<double>& x, int lane) const { return x[lane]; }
  static double reciprocal_root(double x) { return 1 / std::sqrt(x); }

  /// D (16 x 8) <- D + s A B, A 16 x 8, B 8 x 8 with B(k, n) at B[n * ld + k].
  template <int s, Access>
  void multiply_add(PerLane<Fragment>& D, const PerLane<LeftFragment>& A, const double* B, int ld) const {
    double a[16][8];
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 4; ++i) a[group_id(lane) + 8 * (i % 2)][2 * thread_in_group(lane) + i / 2] = A[lane].e[i];
    for (int lane = 0; lane < LANES; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int m = group_id(lane) + 8 * (i / 2), n = 2 * thread_in_group(lane) + i % 2;
        double sum = D[lane].e[i];
        for (int k = 0; k < 8; ++k) sum += a[m][k] * (s * B[n * ld + k]);
        D[lane].e[i] = sum;
      }
  }

  template <Access, class S>
  static S read(const S* p) { return *p; }
  template <Access, class S>
  static void write(S* p, const S& value) { *p = value; }

  /// How many lanes, counted from lane 0, hold true before the first that does not.
  template <class F>
  int leading(F&& f) const {
    int lane = 0;
    while (lane < LANES && f(lane)) ++lane;
    return lane;
  }
  static int load_acquire(const int* flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
  static int load_relaxed(const int* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }  ///< orders nothing
  static void prefetch(const void*) {}  ///< the cache line into the second-level cache
  /// Begins to copy 16 bytes into shared memory; they count as one copy with all others up to the next end_copy().
  static void copy_16(void* to, const void* from) { std::memcpy(to, from, 16); }
  static void end_copy() {}
  /// Until all copies that this lane has begun are there, but for the last `pending`; the other lanes' after sync().
  template <int pending>
  static void wait_for_copies() {}
  template <class F>
  void once(F&& f) const { f(); }  ///< in one lane
  static void pause() { std::this_thread::yield(); }
};

/// Two neighbours in memory, aligned to twice their size.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};

/// The tile whose element (m, n) is p[m * ld + n].
template <Access access, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> load_tile(const Warp& warp, const T* p, index_t ld) {
  Tile<Warp> tile;
  warp.each([&](int lane) {
    const T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    const Pair<T> low = Warp::template read<access>(reinterpret_cast<const Pair<T>*>(at));
    const Pair<T> high = Warp::template read<access>(reinterpret_cast<const Pair<T>*>(at + 8 * ld));
    tile[lane] = {{double(low.x), double(low.y), double(high.x), double(high.y)}};
  });
  return tile;
}

/// The same as a left factor, from shared memory.
template <class Warp, class T>
GPUCHOLMOD_HOST_DEVICE Left<Warp> load_left(const Warp& warp, const T* p, index_t ld) {
  Left<Warp> left;
  warp.each([&](int lane) {
    const T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    left[lane] = {{double(at[0]), double(at[8 * ld]), double(at[1]), double(at[8 * ld + 1])}};
  });
  return left;
}

template <class Warp>
GPUCHOLMOD_HOST_DEVICE Left<Warp> as_left(const Warp& warp, const Tile<Warp>& tile) {
  Left<Warp> left;
  warp.each([&](int lane) {
    const Fragment& q = tile[lane];
    left[lane] = {{q.e[0], q.e[2], q.e[1], q.e[3]}};
  });
  return left;
}

template <Access access = Access::shared, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE void store_tile(const Warp& warp, const Tile<Warp>& tile, T* p, index_t ld) {
  warp.each([&](int lane) {
    T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    const Fragment& q = tile[lane];
    Warp::template write<access>(reinterpret_cast<Pair<T>*>(at), {T(q.e[0]), T(q.e[1])});
    Warp::template write<access>(reinterpret_cast<Pair<T>*>(at + 8 * ld), {T(q.e[2]), T(q.e[3])});
  });
}

/// Element (m, n) to p[n * ld + m].
template <class Warp>
GPUCHOLMOD_HOST_DEVICE void store_transposed(const Warp& warp, const Tile<Warp>& tile, double* p, index_t ld) {
  warp.each([&](int lane) {
    const Fragment& q = tile[lane];
    double* at = p + 2 * thread_in_group(lane) * ld + group_id(lane);
    at[0] = q.e[0];
    at[ld] = q.e[1];
    at[8] = q.e[2];
    at[ld + 8] = q.e[3];
  });
}

template <class Warp>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> zero_tile(const Warp& warp) {
  Tile<Warp> tile;
  warp.each([&](int lane) { tile[lane] = {{0, 0, 0, 0}}; });
  return tile;
}

/// The sum of squares of a tile's elements over the whole warp.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE double sum_of_squares(const Warp& warp, const Tile<Warp>& tile) {
  typename Warp::template PerLane<double> sum;
  warp.each([&](int lane) {
    const Fragment& q = tile[lane];
    sum[lane] = (q.e[0] * q.e[0] + q.e[1] * q.e[1]) + (q.e[2] * q.e[2] + q.e[3] * q.e[3]);
  });
  return warp.total(sum);
}

}  // namespace gpucholmod::block_columns
