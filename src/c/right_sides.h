#pragma once

#include <memory>

#include "base/right_hand_sides.h"
#include "c/callers_memory.h"
#include "modify/request.h"

namespace gpucholmod::c {

/// Views of the right-hand sides of a call.
struct SideViews {
  MatrixView<const double> z, Y;
};

/// Returns views of right-hand sides, and reads none of their numbers. n: rows of z before the call; k: rows of Y, 0 if
/// Y is not read; `most`: rows that z has room for. Throws bad_argument.
inline SideViews views_of(const gpucholmod_right_sides& given, index_t n, index_t k, index_t most) {
  const MatrixView<const double> z = view<double>("sides->z", given.z);
  require(z.rows == most, "sides->z",
          most > n ? "must have rows for those that are inserted" : "has another number of rows than the factor");
  MatrixView<const double> Y{nullptr, 0, z.cols, 0};
  if (k > 0) Y = view<double>("sides->Y", given.Y);
  require_shape("sides->Y", Y, k, z.cols);
  return {z, Y};
}

/// Returns a copy of the right-hand sides of a call, or null if no numbers change along with the factor. n, k, `most`:
/// as for views_of(). Throws bad_argument, and not_finite for z and Y.
inline std::shared_ptr<OwnedRightHandSides> copied(const gpucholmod_right_sides* given, index_t n, index_t k,
                                                   index_t most) {
  if (!given || given->z.cols == 0) return nullptr;
  const auto [z, Y] = views_of(*given, n, k, most);
  const index_t m = z.cols;
  if (n == 0 && k == 0 && !given->rss) return nullptr;  // z, Y and rss have no numbers, whatever m is
  for (index_t j = 0; j < m && given->rss; ++j) require(!(given->rss[j] < 0), "sides->rss", "must not be negative");
  return std::make_shared<OwnedRightHandSides>("sides->z", z.block(0, 0, n, m), "sides->Y", Y, given->rss);
}

/// Returns a request with the sizes, precision and threads of a call.
inline Request request_of(index_t n, index_t k, Precision precision, const Options& options) {
  Request request;
  request.n = n;
  request.k = k;
  request.precision = precision;
  request.threads = options.threads;
  return request;
}

/// Describes the modification that a call asks for.
struct Modification {
  const double* weights;
  double scale;
  const gpucholmod_right_sides* sides;

  /// Throws bad_argument unless `scale` and the weights of the k columns of V can be used.
  void require_sound(index_t k) const {
    require(std::isfinite(scale) && scale > 0, "scale", "must be positive");
    require_weights("weights", weights, k);
  }
  Request request(index_t n, index_t k, Precision precision, const Options& options,
                  std::shared_ptr<OwnedRightHandSides> along) const {
    Request request = request_of(n, k, precision, options);
    request.scale = std::sqrt(scale);
    if (weights) request.weights.assign(weights, weights + k);
    request.sides = std::move(along);
    return request;
  }
};

/// Copies the right-hand sides, if there are any, to the caller's memory. Is called when the call has succeeded.
inline void put_back_sides(const OwnedRightHandSides* sides, const gpucholmod_right_sides* given) {
  if (!sides) return;
  const index_t rows = index_t(sides->z.size()) / sides->m;
  const MatrixView<double> z = view<double>("sides->z", given->z);
  for (index_t j = 0; j < sides->m; ++j) std::copy_n(sides->z.data() + j * rows, rows, z.col(j));
  std::copy(sides->rss.begin(), sides->rss.end(), given->rss);
}

}  // namespace gpucholmod::c
