#pragma once

#include <type_traits>

#include "cpu/rotation.h"
#include "paper/shape.h"

namespace gpucholmod::paper {

/// Describes one launch: rotations for `rows` rows, applied to `cols` columns of R and of V'.
template <class T>
struct Launch {
  T* panel;                      ///< rows x cols of R, column-major, leading dimension ldp
  index_t rows, cols, ldp;
  T* V;                          ///< cols x k: the rows of V that belong to the panel's columns, leading dimension ldv
  index_t ldv;
  index_t k;
  const Rotation<T>* rotations;  ///< rows x k, entry (i, q) at i k + q
};

/// Does the work of one thread block; the kernel and the tests on a CPU run this same code.
///
///   Threads   thread t owns column `block * threads + t`; E entries of its row of V stay in registers while the
///             rows of the panel stream past; the k columns of V are processed in batches of E.
///   Shared    sR (threads x (TILE + 1)): a tile of the panel, a column per thread, one entry of padding against
///             bank conflicts; sG (TILE x E): the rotations of the tile's rows, which all threads read together.
///   Barriers  `team.each_sync(f)` runs f(t, rV) for every thread, then synchronises. On the device each thread calls f
///             for itself, with rV in its registers; on the host a loop calls f for one thread after the other.
///   Repeatable bit for bit: no atomics, no reductions.
template <int E, Sign sign, class T, class Team>
GPUCHOLMOD_HOST_DEVICE void rotate_block(const Launch<T>& launch, int block, Team& team, T* sR, Rotation<T>* sG) {
  const int threads = team.threads();
  const index_t first = index_t(block) * threads;
  const index_t left = launch.cols - first;
  const int cols = left < threads ? int(left) : threads;

  for (index_t q0 = 0; q0 < launch.k; q0 += E) {
    team.each_sync([&](int t, T* rV) {
      GPUCHOLMOD_UNROLL for (int q = 0; q < E; ++q)
        rV[q] = t < cols && q0 + q < launch.k ? launch.V[first + t + (q0 + q) * launch.ldv] : T(0);
    });
    for (index_t i0 = 0; i0 < launch.rows; i0 += TILE) {
      const int rows = launch.rows - i0 < TILE ? int(launch.rows - i0) : TILE;
      team.each_sync([&](int t, T*) {
        for (int e = t; e < TILE * cols; e += threads) {
          const int i = e % TILE, j = e / TILE;
          if (i < rows) sR[j * (TILE + 1) + i] = launch.panel[i0 + i + (first + j) * launch.ldp];
        }
        for (int e = t; e < rows * E; e += threads) {
          const index_t q = q0 + e % E;
          sG[e] = q < launch.k ? launch.rotations[(i0 + e / E) * launch.k + q] : Rotation<T>::identity();
        }
      });
      team.each_sync([&](int t, T* rV) {
        if (t >= cols) return;
        for (int i = 0; i < rows; ++i) {
          T r = sR[t * (TILE + 1) + i];
          GPUCHOLMOD_UNROLL for (int q = 0; q < E; ++q) apply<sign>(sG[i * E + q], r, rV[q]);
          sR[t * (TILE + 1) + i] = r;
        }
      });
      team.each_sync([&](int t, T*) {
        for (int e = t; e < TILE * cols; e += threads) {
          const int i = e % TILE, j = e / TILE;
          if (i < rows) launch.panel[i0 + i + (first + j) * launch.ldp] = sR[j * (TILE + 1) + i];
        }
      });
    }
    team.each_sync([&](int t, T* rV) {
      GPUCHOLMOD_UNROLL for (int q = 0; q < E; ++q)
        if (t < cols && q0 + q < launch.k) launch.V[first + t + (q0 + q) * launch.ldv] = rV[q];
    });
  }
}

/// Returns the shared memory that rotate_block() needs, in bytes.
template <class T>
constexpr index_t shared_bytes(int threads, int elements) {
  return index_t(sizeof(T)) * threads * (TILE + 1) + index_t(sizeof(Rotation<T>)) * TILE * elements;
}

/// Calls f(std::integral_constant<int, E>()) with the smallest compiled E >= elements (E = 1, 4, 8, 16, 32).
template <class F>
void with_elements(index_t elements, F&& f) {
  if (elements <= 1) f(std::integral_constant<int, 1>());
  else if (elements <= 4) f(std::integral_constant<int, 4>());
  else if (elements <= 8) f(std::integral_constant<int, 8>());
  else if (elements <= 16) f(std::integral_constant<int, 16>());
  else f(std::integral_constant<int, 32>());
}

}  // namespace gpucholmod::paper
