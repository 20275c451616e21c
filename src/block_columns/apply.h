#pragma once

#include "block_columns/sizes.h"
#include "block_columns/warp.h"

/// What the unscaled step does to V of the 16 columns of a warp.
namespace gpucholmod::block_columns {

/// What a warp holds in registers.
template <class Warp, int K>
struct State {
  Tile<Warp> V[K / 8];  ///< its columns of V, transposed: element (column, q) in tile q / 8
};

/// V <- V - R'P for eight rows.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract_half(const Warp& warp, Tile<Warp>* V, const Left<Warp>& R,
                                          const typename Warp::Arithmetic* P) {
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    warp.template multiply_add<-1, Access::shared>(V[j], R, P + 8 * j * LDB, LDB);
}

/// The same for IB rows, held in two tiles.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract(const Warp& warp, Tile<Warp>* V, const Left<Warp>* R,
                                     const typename Warp::Arithmetic* P) {
  GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) subtract_half<K>(warp, V, R[half], P + 8 * half);
}

/// The same, R by columns of eight rows, `half` words to each eight rows, in place.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract(const Warp& warp, Tile<Warp>* V, const typename Warp::Arithmetic* R, int half,
                                     const typename Warp::Arithmetic* P) {
  GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i)
    warp.template multiply_add_in_place<-1, K / 8>(V, R + i * half, 8, P + 8 * i, LDB, 8 * LDB);
}

/// V <- V T: what a rescaling asks for.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL void rescale(Warp warp, State<Warp, K>& state, const typename Warp::Arithmetic* T) {
  Tile<Warp> scaled[K / 8];
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
    scaled[j] = zero_tile(warp);
    GPUCHOLMOD_UNROLL for (int l = 0; l <= j; ++l)
      warp.template multiply_add<1, Access::transform>(scaled[j], as_left(warp, state.V[l]), T + 8 * j * LDB + 8 * l,
                                                       LDB);
  }
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = scaled[j];
}

}  // namespace gpucholmod::block_columns
