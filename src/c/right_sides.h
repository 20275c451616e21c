#pragma once

#include <memory>

#include "base/right_hand_sides.h"
#include "c/interface.h"
#include "modify/request.h"

namespace gpucholmod::c {

/// Returns a copy of the right-hand sides of a call, or null if there is nothing to take along. n: rows of z; k: of Y,
/// 0 if Y is not read; `most`: of z after the call, if that is more than n. Throws bad_argument, and not_finite for z
/// and Y.
inline std::shared_ptr<OwnedRightHandSides> copied(const gpucholmod_sides* given, index_t n, index_t k, index_t most) {
  if (!given || given->m == 0) return nullptr;
  const index_t m = given->m;
  require(m >= 0, "sides->m", "must not be negative");
  require(given->ldz >= most, "sides->ldz",
          most > n ? "leaves no room for the rows that come" : "is below the rows of z");
  const MatrixView<const double> z = matrix<const double>("sides->z", given->z, most, m, given->ldz).block(0, 0, n, m);
  if (k > 0) static_cast<void>(matrix<const double>("sides->Y", given->Y, k, m, given->ldy));
  if (n == 0 && k == 0 && !given->rss) return nullptr;  // no numbers, of however many right-hand sides
  for (index_t j = 0; j < m && given->rss; ++j) require(!(given->rss[j] < 0), "sides->rss", "must not be negative");
  const MatrixView<const double> Y{given->Y, k, m, given->ldy};
  return std::make_shared<OwnedRightHandSides>("sides->z", z, "sides->Y", Y, given->rss);
}

/// Returns the request of a call, which one thread carries out.
inline Request request_of(index_t n, index_t k, Precision precision, const double* weights, double scale,
                          std::shared_ptr<OwnedRightHandSides> sides) {
  Request request;
  request.n = n;
  request.k = k;
  request.precision = precision;
  request.threads = 1;
  request.scale = std::sqrt(scale);
  if (weights) request.weights.assign(weights, weights + k);
  request.sides = std::move(sides);
  return request;
}

/// Copies the right-hand sides of a call that has succeeded, if there are any, to the caller's memory.
inline void put_back_sides(const OwnedRightHandSides* sides, const gpucholmod_sides* given) {
  if (!sides) return;
  const index_t rows = index_t(sides->z.size()) / sides->m;
  for (index_t j = 0; j < sides->m; ++j) std::copy_n(sides->z.data() + j * rows, rows, given->z + j * given->ldz);
  std::copy(sides->rss.begin(), sides->rss.end(), given->rss);
}

}  // namespace gpucholmod::c
