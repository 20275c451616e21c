#pragma once

#include "block_columns/sizes.h"
#include "block_columns/warp.h"

/// The part of the unscaled step that changes V of a warp's 16 columns.
namespace gpucholmod::block_columns {

/// The V that a warp holds in registers.
template <class Warp, int K>
struct State {
  Tile<Warp> V[K / 8];  ///< V of the warp's columns: element (column, q) is in tile q / 8
};

/// Computes V <- V - R'P for eight rows of R.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract_half(const Warp& warp, Tile<Warp>* V, const Left<Warp>& R,
                                          const typename Warp::Arithmetic* P) {
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    warp.template multiply_add<-1, Access::shared>(V[j], R, P + 8 * j * LDB, LDB);
}

/// Computes V <- V - R'P for IB rows of R, held in two tiles.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract(const Warp& warp, Tile<Warp>* V, const Left<Warp>* R,
                                     const typename Warp::Arithmetic* P) {
  GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) subtract_half<K>(warp, V, R[half], P + 8 * half);
}

/// Computes V <- V - R'P for IB rows of R, which the products take in place. R is stored by columns of eight rows, with
/// `half` words for each eight rows.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract(const Warp& warp, Tile<Warp>* V, const typename Warp::Arithmetic* R, int half,
                                     const typename Warp::Arithmetic* P) {
  GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i)
    warp.template multiply_add_in_place<-1, K / 8>(V, R + i * half, 8, P + 8 * i, LDB, 8 * LDB);
}

/// Computes V <- V T, T upper, for a rescaling.
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
