#pragma once

#include "block_columns/transform.h"
#include "block_columns/warp.h"

/// A row block applied to the 16 columns of a warp, by the unscaled step.
namespace gpucholmod::block_columns {

/// What a warp holds in registers.
template <class Warp, int K>
struct State {
  Tile<Warp> V[K / 8];  ///< its columns of V, transposed: element (column, q) in tile q / 8
};

/// V of a warp's columns of the strip whose first row block is `first`.
template <class Warp, int K, class T>
GPUCHOLMOD_HOST_DEVICE void load_V(const Warp& warp, State<Warp, K>& state, const Job<T>& job, int first) {
  const index_t ldv = index_t(job.shared.strips) * STRIP;
  const double* from = job.V + index_t(first) * NB + warp.id * WARP_COLUMNS;
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    warp.each([&](int lane) {
      const double* at = from + (8 * j + 2 * thread_in_group(lane)) * ldv + group_id(lane);
      state.V[j][lane] = {{at[0], at[ldv], at[8], at[ldv + 8]}};
    });
}

/// job.saved <- V of a warp's columns, and back; `column`: the strip's first, counted from the panel's.
template <class Warp, int K, class T>
GPUCHOLMOD_HOST_DEVICE void save_V(const Warp& warp, const State<Warp, K>& state, const Job<T>& job, index_t column) {
  double* to = job.saved + (column + warp.id * WARP_COLUMNS) * K;
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) store_tile(warp, state.V[j], to + j * 8 * WARP_COLUMNS, 8);
}
template <class Warp, int K, class T>
GPUCHOLMOD_HOST_DEVICE void restore_V(const Warp& warp, State<Warp, K>& state, const Job<T>& job, index_t column) {
  const double* from = job.saved + (column + warp.id * WARP_COLUMNS) * K;
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    state.V[j] = load_tile<Access::transform>(warp, from + j * 8 * WARP_COLUMNS, 8);
}

/// Columns of a warp against a diagonal block: of the warp's columns, that with number `at` (from 0, may be negative or
/// beyond) is row 0's own. Columns elsewhere have at = -NB: every row reaches all of them.
struct Diagonal {
  int at = -NB;
  GPUCHOLMOD_HOST_DEVICE bool crosses() const { return at > -NB; }
};

/// V <- V - R'P for IB rows, held in two tiles.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void subtract(const Warp& warp, Tile<Warp>* V, const Left<Warp>* R, const double* P) {
  GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
      warp.template multiply_add<-1, Access::shared>(V[j], R[half], P + 8 * j * LDB + 8 * half, LDB);
}

/// Y <- R_a + sigma Z_a V for the IB rows of sub-block a, held in two tiles; then V <- V - R_a'P_a.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void begin_sub_block(const Warp& warp, State<Warp, K>& state, int a, const double* image,
                                            const Left<Warp> R[2], Left<Warp> Y[2]) {
  using Parts = Transform<K>;
  const double *Z = image + Parts::Z + a * IB * Parts::LDK, *P = image + Parts::P + a * IB;
  Tile<Warp> sum[2] = {as_tile(warp, R[0]), as_tile(warp, R[1])};
  if constexpr (K <= 16) {  // in this order nothing waits for what has just been begun
    Left<Warp> V[K / 8];
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) V[j] = as_left(warp, state.V[j]);
    GPUCHOLMOD_UNROLL for (int i = 0; i < 2; ++i) {
      if (i < K / 8)
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
          warp.template multiply_add<1, Access::shared>(sum[half], V[i], Z + 8 * half * Parts::LDK + 8 * i, Parts::LDK);
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        warp.template multiply_add<-1, Access::shared>(state.V[j], R[i], P + 8 * j * LDB + 8 * i, LDB);
    }
  } else {
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
      const Left<Warp> V = as_left(warp, state.V[j]);
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
        warp.template multiply_add<1, Access::shared>(sum[half], V, Z + 8 * half * Parts::LDK + 8 * j, Parts::LDK);
    }
    subtract<K>(warp, state.V, R, P);
  }
  GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) Y[half] = as_left(warp, sum[half]);
}

/// out <- C_a^-T Y; C_a^-1 as in Transform::C.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE void multiply_by_C(const Warp& warp, const double* C, const Left<Warp> Y[2], Tile<Warp> out[2]) {
  out[0] = out[1] = zero_tile(warp);
  warp.template multiply_add<1, Access::shared>(out[0], Y[0], C, LDC);
  warp.template multiply_add<1, Access::shared>(out[1], Y[0], C + 8 * LDC, LDC);
  warp.template multiply_add<1, Access::shared>(out[1], Y[1], C + 8 * LDC + 8, LDC);
}

/// Y <- C_a^-T (Y + sigma Z_a V) for the IB rows of sub-block a, held in two tiles; then V <- V - R_a'P_a. On entry Y is
/// R_a: the same numbers are what is added to and what V is reduced by.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void apply_sub_block(const Warp& warp, State<Warp, K>& state, int a, const double* image,
                                            const Left<Warp> R[2], Tile<Warp> Y[2]) {
  Left<Warp> begun[2];
  begin_sub_block<K>(warp, state, a, image, R, begun);
  multiply_by_C(warp, image + Transform<K>::C + a * IB * LDC, begun, Y);
}

/// Zeroes what of a tile, whose first row is row `row` of a row block, lies below the diagonal.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE void clear_below(const Warp& warp, Tile<Warp>& tile, Diagonal diagonal, int row) {
  warp.each([&](int lane) {
    GPUCHOLMOD_UNROLL for (int i = 0; i < 4; ++i)
      if (diagonal.at + row + 2 * thread_in_group(lane) + i % 2 > group_id(lane) + 8 * (i / 2)) tile[lane].e[i] = 0;
  });
}

/// V <- V T: what a rescaling asks for.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE_CALL void rescale(Warp warp, State<Warp, K>& state, const double* T) {
  Tile<Warp> scaled[K / 8];
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) {
    scaled[j] = zero_tile(warp);
    GPUCHOLMOD_UNROLL for (int l = 0; l <= j; ++l)
      warp.template multiply_add<1, Access::transform>(scaled[j], as_left(warp, state.V[l]), T + 8 * j * LDB + 8 * l, LDB);
  }
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = scaled[j];
}

}  // namespace gpucholmod::block_columns
