#include <Rcpp.h>

#include <vector>

#include "modify/condition.h"
#include "rcpp_guard.h"

using namespace gpucholmod;

// Estimates ||B||_1 of a symmetric n x n matrix B. multiply(X) returns the product of B and a matrix X of n rows.
// [[Rcpp::export(rng = false)]]
double rcpp_estimated_norm(int n, Rcpp::Function multiply) {
  return guarded([&] {
    return estimated_norm(n, [&](std::vector<double>& X, index_t m) {
      const Rcpp::NumericVector product = multiply(Rcpp::NumericMatrix(n, int(m), X.begin()));
      X.assign(product.begin(), product.end());
    });
  });
}
