#pragma once

#include "base/host_device.h"
#include "base/types.h"

/// The interface of a warp to the algorithm: 32 lanes in step, and products of small matrices distributed over the
/// lanes, in Warp::Arithmetic: double, or float if the card computes with floats for a factor of floats (cards.h).
///
/// The algorithm is written once, over a class Warp. DeviceWarp (cuda/kernels/device_warp.cuh) is a warp of a GPU.
/// HostWarp (tests/core/host_grid.h, which says what each function does) runs the lanes one after the other, with the
/// same share of every matrix in every lane.
namespace gpucholmod::block_columns {

constexpr int LANES = 32;

/// The memory of an operand, which decides how the caches are used.
enum class Access {
  shared,     ///< shared memory
  transform,  ///< global memory that another thread block writes during this launch
  stream      ///< the factor, which is read once
};

/// A lane's share of a 16 x 8 tile, in the arithmetic A: columns 2t and 2t + 1 of rows g and g + 8, g = lane / 4, t =
/// lane % 4.
template <class A>
struct Fragment {
  A e[4];  ///< (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
};

/// A lane's share of a tile in the order in which a product takes its left factor from the registers.
template <class A>
struct LeftFragment {
  A e[4];  ///< (g, 2t), (g + 8, 2t), (g, 2t + 1), (g + 8, 2t + 1)
};

template <class Warp>
using Tile = typename Warp::template PerLane<Fragment<typename Warp::Arithmetic>>;
template <class Warp>
using Left = typename Warp::template PerLane<LeftFragment<typename Warp::Arithmetic>>;

/// Returns the groupID of a lane; thread_in_group() returns its threadID_in_group. PTX describes by these two numbers
/// which lane holds which elements of a tile.
GPUCHOLMOD_HOST_DEVICE constexpr int group_id(int lane) { return lane / 4; }
GPUCHOLMOD_HOST_DEVICE constexpr int thread_in_group(int lane) { return lane % 4; }

/// A pair of neighbours in memory, aligned to its size.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T x, y;
};

/// Returns the tile whose element (m, n) is p[m * ld + n].
template <Access access, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> load_tile(const Warp& warp, const T* p, index_t ld) {
  using A = typename Warp::Arithmetic;
  Tile<Warp> tile;
  warp.each([&](int lane) {
    const T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    const Pair<T> low = Warp::template read<access>(reinterpret_cast<const Pair<T>*>(at));
    const Pair<T> high = Warp::template read<access>(reinterpret_cast<const Pair<T>*>(at + 8 * ld));
    tile[lane] = {{A(low.x), A(low.y), A(high.x), A(high.y)}};
  });
  return tile;
}

/// Returns the left factor whose element (m, l) is p[m * ld + l], from shared memory. Loads each word by itself, into
/// the register from which a product takes the word.
template <class Warp, class T>
GPUCHOLMOD_HOST_DEVICE Left<Warp> load_left(const Warp& warp, const T* p, index_t ld) {
  Left<Warp> left;
  warp.each([&](int lane) {
    const T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    const auto word = [](const T* from) { return typename Warp::Arithmetic(Warp::shared_word(from)); };
    left[lane] = {{word(at), word(at + 8 * ld), word(at + 1), word(at + 8 * ld + 1)}};
  });
  return left;
}

/// Returns the left factor whose element (m, k) is p[m * m_stride + k * k_stride], from shared memory, for
/// multiply_add_apart(). A lane's share is of columns k = t and t + 4. Free of bank conflicts if one stride is 1 and
/// the other is 4 more than a multiple of 8.
template <class Warp, class T>
GPUCHOLMOD_HOST_DEVICE Left<Warp> load_left_apart(const Warp& warp, const T* p, int m_stride, int k_stride) {
  Left<Warp> left;
  warp.each([&](int lane) {
    const T* at = p + group_id(lane) * m_stride + thread_in_group(lane) * k_stride;
    const auto word = [](const T* from) { return typename Warp::Arithmetic(Warp::shared_word(from)); };
    left[lane] = {{word(at), word(at + 8 * m_stride), word(at + 4 * k_stride), word(at + 8 * m_stride + 4 * k_stride)}};
  });
  return left;
}

/// Returns the left factor whose element (m, l) is p[l * ld + m], from shared memory.
template <class Warp, class T>
GPUCHOLMOD_HOST_DEVICE Left<Warp> load_left_transposed(const Warp& warp, const T* p, index_t ld) {
  using A = typename Warp::Arithmetic;
  Left<Warp> left;
  warp.each([&](int lane) {
    const T* at = p + 2 * thread_in_group(lane) * ld + group_id(lane);
    left[lane] = {{A(at[0]), A(at[8]), A(at[ld]), A(at[ld + 8])}};
  });
  return left;
}

template <class Warp>
GPUCHOLMOD_HOST_DEVICE Left<Warp> as_left(const Warp& warp, const Tile<Warp>& tile) {
  Left<Warp> left;
  warp.each([&](int lane) {
    const auto& q = tile[lane];
    left[lane] = {{q.e[0], q.e[2], q.e[1], q.e[3]}};
  });
  return left;
}

template <class Warp>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> as_tile(const Warp& warp, const Left<Warp>& left) {
  Tile<Warp> tile;
  warp.each([&](int lane) {
    const auto& q = left[lane];
    tile[lane] = {{q.e[0], q.e[2], q.e[1], q.e[3]}};
  });
  return tile;
}

template <Access access = Access::shared, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE void store_tile(const Warp& warp, const Tile<Warp>& tile, T* p, index_t ld) {
  warp.each([&](int lane) {
    T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    const auto& q = tile[lane];
    Warp::template write<access>(reinterpret_cast<Pair<T>*>(at), {T(q.e[0]), T(q.e[1])});
    Warp::template write<access>(reinterpret_cast<Pair<T>*>(at + 8 * ld), {T(q.e[2]), T(q.e[3])});
  });
}

/// The number of words of a stored left factor.
constexpr int LEFT = 16 * 8;

/// Stores a left factor for products: what each lane has of the first eight rows, lane after lane, then the same of the
/// other eight. So all lanes together read it without gaps, and find it in the order of a tile. If products take their
/// factors in place, it is stored by rows.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE void store_left(const Warp& warp, const Left<Warp>& left, typename Warp::Arithmetic* p) {
  if constexpr (Warp::in_place) return store_tile(warp, as_tile(warp, left), p, 8);
  warp.each([&](int lane) {
    auto* at = reinterpret_cast<Pair<typename Warp::Arithmetic>*>(p) + lane;
    at[0] = {left[lane].e[0], left[lane].e[2]};
    at[LANES] = {left[lane].e[1], left[lane].e[3]};
  });
}
/// Returns a left factor that store_left() has stored by lanes, from shared memory.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE Left<Warp> load_stored_left(const Warp& warp, const typename Warp::Arithmetic* p) {
  Left<Warp> left;
  warp.each([&](int lane) {
    const auto* at = reinterpret_cast<const Pair<typename Warp::Arithmetic>*>(p) + lane;
    left[lane] = {{at[0].x, at[LANES].x, at[0].y, at[LANES].y}};
  });
  return left;
}

/// Stores element (m, n) of a tile at p[n * ld + m].
template <Access access = Access::shared, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE void store_columns(const Warp& warp, const Tile<Warp>& tile, T* p, index_t ld) {
  warp.each([&](int lane) {
    const auto& q = tile[lane];
    T* at = p + 2 * thread_in_group(lane) * ld + group_id(lane);
    Warp::template write<access>(at, T(q.e[0]));
    Warp::template write<access>(at + ld, T(q.e[1]));
    Warp::template write<access>(at + 8, T(q.e[2]));
    Warp::template write<access>(at + ld + 8, T(q.e[3]));
  });
}

/// Returns the tile whose element (m, n) is p[n * ld + m].
template <Access access = Access::shared, class Warp>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> load_columns(const Warp& warp, const typename Warp::Arithmetic* p, index_t ld) {
  using A = typename Warp::Arithmetic;
  Tile<Warp> tile;
  warp.each([&](int lane) {
    const A* at = p + 2 * thread_in_group(lane) * ld + group_id(lane);
    const auto read = [](const A* from) { return Warp::template read<access>(from); };
    tile[lane] = {{read(at), read(at + ld), read(at + 8), read(at + ld + 8)}};
  });
  return tile;
}

template <class Warp>
GPUCHOLMOD_HOST_DEVICE Tile<Warp> zero_tile(const Warp& warp) {
  Tile<Warp> tile;
  warp.each([&](int lane) { tile[lane] = {{0, 0, 0, 0}}; });
  return tile;
}

/// Computes D <- D + E.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE void add_tile(const Warp& warp, Tile<Warp>& D, const Tile<Warp>& E) {
  warp.each([&](int lane) {
    GPUCHOLMOD_UNROLL for (int i = 0; i < 4; ++i) D[lane].e[i] += E[lane].e[i];
  });
}

template <class Warp>
GPUCHOLMOD_HOST_DEVICE void scale_tile(const Warp& warp, Tile<Warp>& D, typename Warp::Arithmetic by) {
  warp.each([&](int lane) {
    GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e) D[lane].e[e] *= by;
  });
}

/// Returns 1 if element e of a lane's share of the tile at (m, n) is on the diagonal, otherwise 0.
template <class A>
GPUCHOLMOD_HOST_DEVICE A on_diagonal(int m, int n, int lane, int e) {
  return m + group_id(lane) + 8 * (e / 2) == n + 2 * thread_in_group(lane) + e % 2;
}

/// Returns the sum of squares of a tile's elements over the whole warp.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE auto sum_of_squares(const Warp& warp, const Tile<Warp>& tile) {
  typename Warp::template PerLane<typename Warp::Arithmetic> sum;
  warp.each([&](int lane) {
    const auto& q = tile[lane];
    sum[lane] = (q.e[0] * q.e[0] + q.e[1] * q.e[1]) + (q.e[2] * q.e[2] + q.e[3] * q.e[3]);
  });
  return warp.total(sum);
}

/// Loads rows of a matrix in global memory as a left factor: element (m, l) is p[m * ld + l].
template <Access access, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE void fetch_rows(const Warp& warp, Left<Warp>& to, const T* p, index_t ld) {
  using A = typename Warp::Arithmetic;
  warp.each([&](int lane) {
    const T* at = p + group_id(lane) * ld + 2 * thread_in_group(lane);
    const Pair<T> low = Warp::template read<access>(reinterpret_cast<const Pair<T>*>(at));
    const Pair<T> high = Warp::template read<access>(reinterpret_cast<const Pair<T>*>(at + 8 * ld));
    to[lane] = {{A(low.x), A(high.x), A(low.y), A(high.y)}};
  });
}

/// Loads rows of the transpose of a matrix in global memory as a left factor: element (m, l) is p[l * ld + m].
template <Access access, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE void fetch_transposed(const Warp& warp, Left<Warp>& to, const T* p, index_t ld) {
  warp.each([&](int lane) {
    const T* at = p + 2 * thread_in_group(lane) * ld + group_id(lane);
    const auto read = [](const T* from) { return typename Warp::Arithmetic(Warp::template read<access>(from)); };
    to[lane] = {{read(at), read(at + 8), read(at + ld), read(at + ld + 8)}};
  });
}

}  // namespace gpucholmod::block_columns
