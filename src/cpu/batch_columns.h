#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "base/held_batch.h"

namespace gpucholmod::cpu {

/// The same error, of one member's numbers.
inline Error of_member(const Error& error, index_t member) {
  Error::Fields fields = error.fields();
  fields.insert(fields.begin(), {"member", double(member + 1)});
  return Error(error.code(), error.what(), std::move(fields));
}

/// f(), whose errors are those of a member.
template <class F>
auto for_member(index_t member, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw of_member(error, member);
  }
}

/// Columns of a member's V in the order in which they are taken, added ones first, and what each is multiplied by.
struct ColumnOrder {
  index_t added = 0;
  std::vector<index_t> column;
  std::vector<double> by;

  void find(const BatchTask& task, index_t member) {
    const double root = std::sqrt(task.scale_of(member));
    column.resize(task.k);
    by.resize(task.k);
    index_t at = 0;
    for (const bool removes : {false, true}) {
      for (index_t q = 0; q < task.k; ++q) {
        const double w = task.weight(q, member);
        if ((w < 0) != removes) continue;
        column[at] = q;
        by[at++] = std::abs(w) == 1 && root == 1 ? 1 : std::sqrt(std::abs(w)) / root;
      }
      if (!removes) added = at;
    }
  }
};

/// The largest magnitude in V (n x k) with weights, divided by the root of the scale. T: what is computed in. Throws not_finite and overflow.
template <class T>
double largest_weighted(const double* V, index_t n, const ColumnOrder& order) {
  double largest = 0;
  for (index_t p = 0; p < index_t(order.column.size()); ++p) {
    const index_t q = order.column[p];
    const double top = largest_of("V", V + q * n, n, 0, q) * order.by[p];
    largest = std::max(largest, top);
    if (top <= double(std::numeric_limits<T>::max())) continue;
    index_t i = 0;
    while (std::abs(V[i + q * n]) * order.by[p] <= double(std::numeric_limits<T>::max())) ++i;
    throw Error(ErrorCode::overflow, "'V' has a value that is too large for its weight, 'scale' and precision at [" + std::to_string(i + 1) +
                                         ", " + std::to_string(q + 1) + "]",
                {{"argument", "V"}, {"row", double(i + 1)}, {"col", double(q + 1)}});
  }
  return largest;
}

}  // namespace gpucholmod::cpu
