#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"
#include "cpu/blas.h"

namespace gpucholmod::cpu {

/// The first rows of columns [first, last) of R as doubles: R itself, or a copy in `buffer`. Sets ld.
template <class T>
const double* as_doubles(MatrixView<const T> R, index_t first, index_t last, index_t rows, std::vector<double>& buffer,
                         int& ld) {
  if constexpr (sizeof(T) == sizeof(double)) {
    ld = int(R.ld);
    return R.col(first);
  } else {
    ld = int(rows);
    buffer.resize(index_t(ld) * (last - first));
    for (index_t j = first; j < last; ++j) std::copy_n(R.col(j), ld, buffer.data() + (j - first) * ld);
    return buffer.data();
  }
}

/// B (n x m) <- R'^-1 B, or R^-1 B, R upper: by halves, so that most of it is products, in which BLAS is quicker than
/// in substitutions.
inline void substitute_by_halves(const double* R, int ld, bool forward, int n, double* B, int m, int ldb) {
  /// Rows; one thread of OpenBLAS 0.3.21, n = 300, m = 1,000: 2.7 ms, with 16 3.4, with 64 3.9, dtrsm alone 4.7
  /// (2026-11-23).
  constexpr int least = 8;
  const double one = 1, minus = -1;
  if (n <= least) {
    dtrsm_("L", "U", forward ? "T" : "N", "N", &n, &m, &one, R, &ld, B, &ldb, 1, 1, 1, 1);
    return;
  }
  const int top = (n / 2 + least - 1) / least * least, bottom = n - top;
  const double* const right = R + index_t(top) * ld;
  if (forward) {
    substitute_by_halves(R, ld, forward, top, B, m, ldb);
    dgemm_("T", "N", &bottom, &m, &top, &minus, right, &ld, B, &ldb, &one, B + top, &ldb, 1, 1);
    substitute_by_halves(right + top, ld, forward, bottom, B + top, m, ldb);
  } else {
    substitute_by_halves(right + top, ld, forward, bottom, B + top, m, ldb);
    dgemm_("N", "N", &top, &m, &bottom, &minus, right, &ld, B + top, &ldb, &one, B, &ldb, 1, 1);
    substitute_by_halves(R, ld, forward, top, B, m, ldb);
  }
}

/// B (n x m) <- R'^-1 B, or R^-1 B, in double precision, by R's BLAS: at once, or, where R has to be made doubles, by
/// blocks of columns.
template <class T>
void substitute(MatrixView<const T> R, bool forward, double* B, index_t m, index_t ldb_given) {
  const index_t n = R.cols, width = sizeof(T) == sizeof(double) ? n : 256, blocks = n > 0 ? (n + width - 1) / width : 0;
  if (m == 0) return;
  const int ldb = int(ldb_given), sides = int(m);
  const double one = 1, minus = -1;
  const int stride = 1;
  const char* const transposed = forward ? "T" : "N";
  std::vector<double> buffer;
  for (index_t i = 0; i < blocks; ++i) {
    const index_t first = (forward ? i : blocks - 1 - i) * width, last = std::min(first + width, n);
    const int above = int(first), wide = int(last - first);
    int ld;
    const double* const columns = as_doubles(R, first, last, last, buffer, ld);
    if (forward && above > 0)
      dgemm_("T", "N", &wide, &sides, &above, &minus, columns, &ld, B, &ldb, &one, B + first, &ldb, 1, 1);
    if (m == 1) dtrsv_("U", transposed, "N", &wide, columns + first, &ld, B + first, &stride, 1, 1, 1);
    else if (m >= 16) substitute_by_halves(columns + first, ld, forward, wide, B + first, sides, ldb);
    else dtrsm_("L", "U", transposed, "N", &wide, &sides, &one, columns + first, &ld, B + first, &ldb, 1, 1, 1, 1);
    if (!forward && above > 0)
      dgemm_("N", "N", &above, &sides, &wide, &minus, columns, &ld, B + first, &ldb, &one, B, &ldb, 1, 1);
  }
}

}  // namespace gpucholmod::cpu
