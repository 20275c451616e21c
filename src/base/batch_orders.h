#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/held_batch.h"

/// Functions for a batch whose members have several orders.
namespace gpucholmod {

/// Returns the largest order, or 0 if there are no members.
inline index_t largest_order(const std::vector<index_t>& orders) {
  return orders.empty() ? 0 : *std::max_element(orders.begin(), orders.end());
}

/// Throws bad_argument if V (n x k for each member, or one V for all) has a number other than 0 in a row beyond a
/// member's order.
inline void require_zero_beyond(const std::vector<index_t>& orders, index_t n, const double* V, const BatchTask& task) {
  for (index_t m = 0; m < index_t(orders.size()); ++m)
    for (index_t q = 0; q < task.k && orders[m] < n; ++q) {
      const double* const column = task.V_of(V, n, m) + q * n;
      const double* const found = std::find_if(column + orders[m], column + n, [](double v) { return v != 0; });
      if (found != column + n)
        throw Error(ErrorCode::bad_argument,
                    "V must be zero in rows that a member has not: it has " + std::to_string(orders[m]) + " rows",
                    {{"argument", std::string("V")}, {"member", double(m + 1)}, {"row", double(found - column + 1)}});
    }
}

/// Finds the first leading minor of a member's new matrix that is not positive definite, when p rows and columns are to
/// be inserted from row `at` on.
///
///   C      n x p: R'^-1 times the new columns without their new rows; R is the factor, of order n
///   corner p x p, leading dimension ld: the new rows of the new columns, of which only the upper triangle is read
///
/// Returns the number of the minor's last row and column, counted from 0 in the new matrix, or -1 if there is no such
/// minor.
index_t pivot_of_insertion(const double* C, index_t n, index_t at, const double* corner, index_t ld, index_t p);

}  // namespace gpucholmod
