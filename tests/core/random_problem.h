#pragma once

#include <map>
#include <tuple>

#include "matrices.h"

namespace gpucholmod::test {

/// Returns a problem, which is made once for each sign and size: tests ask for the same problem again and again.
inline const Problem<double>& random_problem(Sign sign, index_t n, index_t k) {
  static std::map<std::tuple<Sign, index_t, index_t>, Problem<double>> made;
  const auto [at, is_new] = made.try_emplace({sign, n, k});
  if (is_new) {
    Random random(3);
    const Matrix R = well_conditioned(n, random), V = random.normal(n, k);
    at->second = sign == Sign::update ? problem(sign, R, V) : undo(R, V);
  }
  return at->second;
}

}  // namespace gpucholmod::test
