#pragma once

#include "base/held_factor.h"

namespace gpucholmod {

/// Returns an estimate of 1 / (||A||_1 ||A^-1||_1): 0 if A is singular or the condition is no number, 1 for order 0.
/// Throws what solve_for() and multiply() do.
double reciprocal_condition(const HeldFactor& R);

}  // namespace gpucholmod
