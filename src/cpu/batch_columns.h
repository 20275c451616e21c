#pragma once

#include <functional>
#include <vector>

#include "base/held_batch.h"

namespace gpucholmod::cpu {

/// f(), whose errors are those of a member.
void for_member(index_t member, const std::function<void()>& f);

/// Columns of a member's V in the order in which they are taken, added ones first, and what each is multiplied by.
struct ColumnOrder {
  index_t added = 0;
  std::vector<index_t> column;
  std::vector<double> by;

  void find(const BatchTask& task, index_t member);
};

/// The largest magnitude in V (n x k) with weights, divided by the root of the scale; it may be `most`. Throws not_finite and overflow.
double largest_weighted(const double* V, index_t n, const ColumnOrder& order, double most);

}  // namespace gpucholmod::cpu
