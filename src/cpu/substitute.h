#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"
#include "cpu/blas.h"

namespace gpucholmod::cpu {

/// Returns R as doubles: R itself, or a copy in `buffer`.
template <class T>
MatrixView<const double> as_doubles(MatrixView<const T> R, std::vector<double>& buffer) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return R;
  } else {
    buffer.resize(R.rows * R.cols);
    for (index_t j = 0; j < R.cols; ++j) std::copy_n(R.col(j), R.rows, buffer.data() + j * R.rows);
    return {buffer.data(), R.rows, R.cols, R.rows};
  }
}

/// Computes B (n x m) <- R'^-1 B, or R^-1 B, R upper: by halves, so that most of the work is products, in which BLAS is
/// faster than in substitutions.
inline void substitute_by_halves(MatrixView<const double> R, blas::Op op, MatrixView<double> B) {
  /// The largest number of rows that is not halved. One thread of OpenBLAS 0.3.21, n = 300, m = 1,000: 2.7 ms, with 16
  /// rows 3.4, with 64 3.9, dtrsm alone 4.7 (2026-11-23).
  constexpr index_t least = 8;
  const index_t n = R.cols;
  if (n <= least) return blas::trsm_left(op, R, B);
  const index_t top = (n / 2 + least - 1) / least * least, bottom = n - top;
  const MatrixView<const double> R11 = R.block(0, 0, top, top), R12 = R.block(0, top, top, bottom),
                                 R22 = R.block(top, top, bottom, bottom);
  const MatrixView<double> B1 = B.block(0, 0, top, B.cols), B2 = B.block(top, 0, bottom, B.cols);
  if (op == blas::Op::transpose) {
    substitute_by_halves(R11, op, B1);
    blas::gemm(-1, op, R12, blas::Op::none, B1, 1, B2);
    substitute_by_halves(R22, op, B2);
  } else {
    substitute_by_halves(R22, op, B2);
    blas::gemm(-1, op, R12, blas::Op::none, B2, 1, B1);
    substitute_by_halves(R11, op, B1);
  }
}

/// Computes B (n x m) <- R'^-1 B if `forward`, otherwise R^-1 B, in double precision, by R's BLAS: at once, or by
/// blocks of columns if R has to be converted to doubles.
template <class T>
void substitute(MatrixView<const T> R, bool forward, MatrixView<double> B) {
  using blas::Op;
  const index_t n = R.cols, width = sizeof(T) == sizeof(double) ? n : 256, blocks = n > 0 ? (n + width - 1) / width : 0;
  if (B.cols == 0) return;
  const Op op = forward ? Op::transpose : Op::none;
  std::vector<double> buffer;
  for (index_t i = 0; i < blocks; ++i) {
    const index_t first = (forward ? i : blocks - 1 - i) * width, last = std::min(first + width, n),
                  wide = last - first;
    const MatrixView<const double> columns = as_doubles(R.block(0, first, last, wide), buffer),
                                   above = columns.block(0, 0, first, wide), own = columns.block(first, 0, wide, wide);
    const MatrixView<double> B1 = B.block(0, 0, first, B.cols), B2 = B.block(first, 0, wide, B.cols);
    if (forward) blas::gemm(-1, op, above, Op::none, B1, 1, B2);
    if (B.cols == 1) blas::trsv(op, own, B2.data);
    else if (B.cols >= 16) substitute_by_halves(own, op, B2);
    else blas::trsm_left(op, own, B2);
    if (!forward) blas::gemm(-1, op, above, Op::none, B2, 1, B1);
  }
}

}  // namespace gpucholmod::cpu
