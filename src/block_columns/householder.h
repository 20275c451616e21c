#pragma once

#include "block_columns/apply.h"

/// A row block by mixed hyperbolic Householder steps, row by row: slower than the unscaled step, and always stable.
///
/// Row i, r = R_ii, v = V(i, :), rho = sqrt(r^2 + sigma |v|^2), y = v / (r + rho), tau = rho / (r + rho):
///
///   R~_i = (R_i + sigma y'V) / tau - R_i
///   V <- V - y (R~_i + R_i)               update
///   V <- V - y (R~_i + y'V) / (1 - tau)   downdate, from the *new* row, as in Chambers' mixed rotations
///
/// Reference: inst/design/block-householder.md.
namespace gpucholmod::block_columns {

/// Step i of the transform on the columns of a warp; its row is row `row`, from 0 to 7, of the tile R.
/// Columns left of number `own` are left alone; in that column itself, the pivot's, R~ = rho.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE void householder_step(const Warp& warp, State<Warp, K>& state, Tile<Warp>& R, int row,
                                             const double* transform, int i, double sigma, int own) {
  using Parts = Transform<K>;
  const auto scalar = [&](int where) { return Warp::template read<Access::transform>(transform + where + i); };
  const double inv_tau = scalar(Parts::inv_tau), inv_ctau = scalar(Parts::inv_ctau), rho = scalar(Parts::rho);
  typename Warp::template PerLane<double> yv[2], old[2];
  typename Warp::template PerLane<Pair<double>> y[K / 8];
  GPUCHOLMOD_UNROLL for (int h = 0; h < 2; ++h) warp.each([&](int lane) { yv[h][lane] = 0; });
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    warp.each([&](int lane) {
      y[j][lane] = Warp::template read<Access::transform>(
          reinterpret_cast<const Pair<double>*>(transform + Parts::Z + i * Parts::LDK + 8 * j + 2 * thread_in_group(lane)));
      const Fragment& v = state.V[j][lane];
      yv[0][lane] += v.e[0] * y[j][lane].x + v.e[1] * y[j][lane].y;
      yv[1][lane] += v.e[2] * y[j][lane].x + v.e[3] * y[j][lane].y;
    });
  GPUCHOLMOD_UNROLL for (int h = 0; h < 2; ++h) {
    warp.quad_sum(yv[h]);
    warp.each([&](int lane) { old[h][lane] = row % 2 == 0 ? R[lane].e[2 * h] : R[lane].e[2 * h + 1]; });
    warp.quad_broadcast(old[h], row / 2);
    warp.each([&](int lane) {
      const int column = group_id(lane) + 8 * h;
      const bool reached = column > own;
      const double r = old[h][lane];
      const double changed = (r + sigma * yv[h][lane]) * inv_tau - r;
      const double z = sigma > 0 ? changed + r : (changed + yv[h][lane]) * inv_ctau;
      yv[h][lane] = reached ? z : 0;
      if (thread_in_group(lane) == row / 2 && column >= own) {
        const double now = reached ? changed : rho;
        if (row % 2 == 0) R[lane].e[2 * h] = now;
        else R[lane].e[2 * h + 1] = now;
      }
    });
  }
  GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
    warp.each([&](int lane) {
      Fragment& v = state.V[j][lane];
      v.e[0] -= y[j][lane].x * yv[0][lane];
      v.e[1] -= y[j][lane].y * yv[0][lane];
      v.e[2] -= y[j][lane].x * yv[1][lane];
      v.e[3] -= y[j][lane].y * yv[1][lane];
    });
}

/// All steps of a transform on the columns of a warp. R and out point to the block's first row in the first of them; out may
/// be null.
template <int K, class Warp, class T>
GPUCHOLMOD_HOST_DEVICE_CALL void apply_householder(Warp warp, State<Warp, K>& state, const double* transform,
                                                   const T* R, T* out, index_t ld, double sigma, Diagonal diagonal) {
  for (int block = 0; block < NB; block += 8) {
    Tile<Warp> tile = load_tile<Access::stream>(warp, R + block, ld);
    GPUCHOLMOD_NO_UNROLL for (int row = 0; row < 8; ++row)
      householder_step<K>(warp, state, tile, row, transform, block + row, sigma, diagonal.at + block + row);
    if (out) store_tile<Access::stream>(warp, tile, out + block, ld);
  }
}

GPUCHOLMOD_HOST_DEVICE int exponent_of(double x) { return x > 1e-300 ? ilogb(x) : -1000; }

/// Finds step i, whose row is row `row` of the tile R, in the warp that holds column i of the block; writes it to the
/// transform. No square of an entry of R or V is formed that could over- or underflow. False when a downdate fails there.
template <int K, class Warp>
GPUCHOLMOD_HOST_DEVICE bool find_step(const Warp& warp, const State<Warp, K>& state, const Tile<Warp>& R, int row,
                                      double* transform, int i, double sigma) {
  using Parts = Transform<K>;
  const bool high = i % WARP_COLUMNS >= 8;
  const auto of_column = [high](const Fragment& q, int e) { return high ? q.e[2 + e] : q.e[e]; };
  typename Warp::template PerLane<double> r, top, sum;
  warp.each([&](int lane) {
    r[lane] = of_column(R[lane], row % 2);
    top[lane] = 0;
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
      GPUCHOLMOD_UNROLL for (int e = 0; e < 2; ++e) top[lane] = fmax(top[lane], fabs(of_column(state.V[j][lane], e)));
  });
  warp.quad_broadcast(r, row / 2);
  warp.quad_max(top);
  warp.each([&](int lane) {
    const double scale = scalbn(1.0, -exponent_of(top[lane]));
    sum[lane] = 0;
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
      GPUCHOLMOD_UNROLL for (int e = 0; e < 2; ++e) {
        const double scaled = of_column(state.V[j][lane], e) * scale;
        sum[lane] += scaled * scaled;
      }
  });
  warp.quad_sum(sum);
  const int owner = LANES / 8 * (i % 8);  // the first lane of the group that holds column i
  const double pivot = warp.from_lane(r, owner), largest = warp.from_lane(top, owner);
  const double norm = largest > 0 ? scalbn(sqrt(warp.from_lane(sum, owner)), exponent_of(largest)) : 0;
  if (sigma < 0 && !(pivot > norm)) return false;
  const double rho = norm == 0 ? pivot : sigma > 0 ? hypot(pivot, norm) : sqrt(pivot - norm) * sqrt(pivot + norm);
  warp.each([&](int lane) {
    if (lane == owner) {
      transform[Parts::inv_tau + i] = (pivot + rho) / rho;
      transform[Parts::inv_ctau + i] = (pivot + rho) / pivot;
      transform[Parts::rho + i] = rho;
    }
    if (group_id(lane) == i % 8)
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        GPUCHOLMOD_UNROLL for (int e = 0; e < 2; ++e)
          transform[Parts::Z + i * Parts::LDK + 8 * j + 2 * thread_in_group(lane) + e] =
              of_column(state.V[j][lane], e) / (pivot + rho);
  });
  return true;
}

/// Finds all steps of a diagonal block, whose columns warps first_warp .. first_warp + 3 hold; `states` are theirs, and are
/// left half done. R and ld as in apply_householder, for each warp. H is I. Returns the failing pivot in the block, or -1.
/// `failed` is one word of shared memory.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE_CALL int find_householder(Team team,
                                                 typename Team::template PerWarp<State<typename Team::Warp, K>>& states,
                                                 int first_warp, double* transform, const T* R, index_t ld, double sigma,
                                                 int* failed) {
  using Warp = typename Team::Warp;
  const auto has_columns = [&](const Warp& warp) { return warp.id / (WARPS / BLOCKS) == first_warp / (WARPS / BLOCKS); };
  const auto columns = [&](const Warp& warp) { return (warp.id - first_warp) * WARP_COLUMNS; };
  typename Team::template PerWarp<Tile<Warp>> tiles;
  team.threads_sync([&](int thread) {
    if (thread == 0) *failed = 0;
  });
  for (int block = 0; block < NB; block += 8) {
    team.warps_sync([&](Warp& warp) {
      if (has_columns(warp))
        tiles[warp] = load_tile<Access::stream>(warp, R + columns(warp) * ld + block, ld);
    });
    GPUCHOLMOD_NO_UNROLL for (int row = 0; row < 8; ++row) {
      const int i = block + row;
      team.warps_sync([&](Warp& warp) {
        if (warp.id - first_warp == i / WARP_COLUMNS &&
            !find_step<K>(warp, states[warp], tiles[warp], row, transform, i, sigma))
          *failed = 1;
      });
      if (*failed != 0) return i;
      team.warps_sync([&](Warp& warp) {
        if (has_columns(warp))
          householder_step<K>(warp, states[warp], tiles[warp], row, transform, i, sigma, i - columns(warp));
      });
    }
  }
  return -1;
}

}  // namespace gpucholmod::block_columns
