#include "cpu/batch_columns.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/factor_io.h"

namespace gpucholmod::cpu {

void for_member(index_t member, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    Error::Fields fields = error.fields();
    fields.emplace_back("member", double(member + 1));
    throw Error(error.code(), error.what(), std::move(fields));
  }
}

void ColumnOrder::find(const BatchTask& task, index_t member) {
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

double largest_weighted(const double* V, index_t n, const ColumnOrder& order, double most) {
  double largest = 0;
  for (index_t p = 0; p < index_t(order.column.size()); ++p) {
    const index_t q = order.column[p];
    const double top = largest_of("V", V + q * n, n, 0, q) * order.by[p];
    largest = std::max(largest, top);
    if (top <= most) continue;
    index_t i = 0;
    while (std::abs(V[i + q * n]) * order.by[p] <= most) ++i;
    throw Error(ErrorCode::overflow, "'V' has a value that is too large for its weight, 'scale' and precision at [" + std::to_string(i + 1) +
                                         ", " + std::to_string(q + 1) + "]",
                {{"argument", "V"}, {"row", double(i + 1)}, {"col", double(q + 1)}});
  }
  return largest;
}

}  // namespace gpucholmod::cpu
