#include "base/batch_orders.h"

#include <cmath>

namespace gpucholmod {
namespace {

/// Overwrites S (p x p, upper) with its Cholesky factor. Returns the first pivot that is not positive, or -1.
index_t factorise_corner(std::vector<double>& S, index_t p) {
  for (index_t q = 0; q < p; ++q)
    for (index_t s = 0; s <= q; ++s) {
      double sum = S[s + q * p];
      for (index_t t = 0; t < s; ++t) sum -= S[t + s * p] * S[t + q * p];
      if (s == q && !(sum > 0)) return q;
      S[s + q * p] = s == q ? std::sqrt(sum) : sum / S[s + s * p];
    }
  return -1;
}

}  // namespace

index_t pivot_of_insertion(const double* C, index_t n, index_t at, const double* corner, index_t ld, index_t p) {
  std::vector<double> left(p * p), S;
  for (index_t q = 0; q < p; ++q)
    for (index_t s = 0; s <= q; ++s) left[s + q * p] = corner[s + q * ld];
  for (index_t rows = 0; rows <= n; ++rows) {
    if (rows >= at) {
      S = left;
      const index_t failing = factorise_corner(S, p);
      if (failing >= 0) return rows == at ? at + failing : rows - 1 + p;
    }
    for (index_t q = 0; q < p && rows < n; ++q)
      for (index_t s = 0; s <= q; ++s) left[s + q * p] -= C[rows + s * n] * C[rows + q * n];
  }
  return -1;
}

}  // namespace gpucholmod
