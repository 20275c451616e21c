#pragma once

#include <gtest/gtest.h>

#include "call.h"

/// Diagonal entries that would cease to be normal numbers.
namespace gpucholmod::test {

/// A factor whose last diagonal entry vanishes because of `scale` or of a column that is taken away.
struct Vanishing {
  const char* name;
  Sign sign;
  double last;   ///< last diagonal entry of R, in units of the smallest normal number
  double taken;  ///< last entry of V, as a multiple of that of R
  double scale;  ///< scale of R
  double left;   ///< upper bound of the new entry, in units of the smallest normal number
};
inline const Vanishing all_that_vanish[] = {
    {"a scale below 1", Sign::update, 1.5, 0, 0.5, 0.75 * 1.01},
    {"a downdate", Sign::downdate, 16, 1 - 1e-6, 1, 0.03},
    {"a downdate and a scale", Sign::downdate, 1.5, 0, 0.5, 0.75 * 1.01},
};

template <class S>
Problem<S> problem_of(const Vanishing& how, index_t n, index_t k) {
  Problem<S> p{how.sign, Stored<S>::Identity(n, n), Stored<S>::Zero(n, k)};
  if (n > 2) p.R(0, 1) = S(0.5);
  p.V.row(0).setConstant(S(0.01));
  const S last = S(how.last) * std::numeric_limits<S>::min();
  p.R(n - 1, n - 1) = last;
  if (how.taken != 0) {
    p.V.setZero();
    p.V(n - 1, k - 1) = last * S(how.taken);
  }
  return p;
}

template <class S>
void expect_vanished(const std::optional<Error>& error, index_t n, const Vanishing& how, const std::string& where) {
  ASSERT_TRUE(error) << where << ", " << how.name;
  EXPECT_EQ(error->code(), ErrorCode::bad_diagonal) << where << ", " << how.name << ": " << error->what();
  EXPECT_EQ(number(*error, "index"), n) << where << ", " << how.name;
  EXPECT_GT(number(*error, "value"), 0) << where;
  EXPECT_LE(number(*error, "value"), how.left * double(std::numeric_limits<S>::min())) << where << ", " << how.name;
}

}  // namespace gpucholmod::test
