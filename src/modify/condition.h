#pragma once

#include <functional>
#include <vector>

#include "base/held_factor.h"

namespace gpucholmod {

/// A function that replaces X (n x m) by the product of a symmetric matrix and X.
using Multiply = std::function<void(std::vector<double>& X, index_t m)>;

/// Returns an estimate of the 1-norm of a symmetric n x n matrix, infinity if a product is not finite. The method is
/// that of Higham (1988), but each step looks at the 8 columns that look largest, not at one. Throws what multiply()
/// throws.
double estimated_norm(index_t n, const Multiply& multiply);

/// Returns an estimate of 1 / (||A||_1 ||A^-1||_1): 0 if A is singular or the condition is not finite, 1 for order 0.
/// Throws what solve_for() and multiply() throw.
double reciprocal_condition(const HeldFactor& R);

}  // namespace gpucholmod
