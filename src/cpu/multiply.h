#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"
#include "cpu/blas.h"
#include "cpu/substitute.h"

namespace gpucholmod::cpu {

/// Computes X (n x m) <- R'X if `transposed`, otherwise RX, R upper, in double precision, by R's BLAS: at once, or by
/// blocks of columns if R has to be converted to doubles. Each block reads rows of X that no earlier block has changed.
template <class T>
void multiply(MatrixView<const T> R, bool transposed, MatrixView<double> X) {
  using blas::Op;
  const index_t n = R.cols, width = sizeof(T) == sizeof(double) ? n : 256, blocks = n > 0 ? (n + width - 1) / width : 0;
  if (X.cols == 0) return;
  std::vector<double> buffer;
  for (index_t i = 0; i < blocks; ++i) {
    const index_t first = (transposed ? blocks - 1 - i : i) * width, last = std::min(first + width, n),
                  wide = last - first;
    const MatrixView<const double> columns = as_doubles(R.block(0, first, last, wide), buffer),
                                   above = columns.block(0, 0, first, wide), own = columns.block(first, 0, wide, wide);
    const MatrixView<double> X1 = X.block(0, 0, first, X.cols), X2 = X.block(first, 0, wide, X.cols);
    if (!transposed) blas::gemm(1, Op::none, above, Op::none, X2, 1, X1);
    blas::trmm_left(transposed ? Op::transpose : Op::none, own, X2);
    if (transposed) blas::gemm(1, Op::transpose, above, Op::none, X1, 1, X2);
  }
}

}  // namespace gpucholmod::cpu
