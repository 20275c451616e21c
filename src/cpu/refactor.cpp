#include "cpu/refactor.h"

#include <algorithm>
#include <vector>

#include "cpu/blas.h"

namespace gpucholmod::cpu {

bool refactor(MatrixView<const double> R, MatrixView<const double> V, index_t removed, MatrixView<double> out,
              const Poll& poll) {
  constexpr index_t columns = 256;
  const int n = int(R.cols), down = int(removed), up = int(V.cols) - down, ldr = int(R.ld), ldv = int(V.ld),
            ldo = int(out.ld);
  const double zero = 0, one = 1, minus = -1;
  std::vector<double> triangle(columns * columns);
  for (index_t first = 0; first < n; first += columns) {  // A(:, J) = R'R(:, J), down to the diagonal
    poll(0.4 * share_of_columns(first, n));
    const index_t last = std::min<index_t>(first + columns, n);
    const int above = int(first), wide = int(last - first);
    for (index_t j = first; j < last; ++j) std::copy_n(R.col(j), first, out.col(j));
    if (above > 0)
      dtrmm_("L", "U", "T", "N", &above, &wide, &one, R.data, &ldr, out.col(first), &ldo, 1, 1, 1, 1);
    // On the diagonal, R's rows above it and its triangle there; what dsyrk would read below that is made zero.
    for (index_t j = first; j < last; ++j) {
      double* const column = triangle.data() + (j - first) * wide;
      std::copy(&R(first, j), &R(j, j) + 1, column);
      std::fill(column + (j - first) + 1, column + wide, 0.0);
    }
    double* const block = &out(first, first);
    dsyrk_("U", "T", &wide, &wide, &one, triangle.data(), &wide, &zero, block, &ldo, 1, 1);
    if (above > 0) dsyrk_("U", "T", &wide, &above, &one, R.col(first), &ldr, &one, block, &ldo, 1, 1);
  }
  poll(0.4);
  if (up > 0) dsyrk_("U", "N", &n, &up, &one, V.data, &ldv, &one, out.data, &ldo, 1, 1);
  if (down > 0) dsyrk_("U", "N", &n, &down, &minus, V.col(up), &ldv, &one, out.data, &ldo, 1, 1);
  poll(0.5);
  int info = 0;
  dpotrf_("U", &n, out.data, &ldo, &info, 1);
  return info == 0;
}

}  // namespace gpucholmod::cpu
