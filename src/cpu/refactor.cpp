#include "cpu/refactor.h"

#include <algorithm>
#include <vector>

#include "cpu/blas.h"

namespace gpucholmod::cpu {

using blas::Op;

bool refactor(MatrixView<const double> R, MatrixView<const double> V, index_t removed, MatrixView<double> out,
              const Poll& poll) {
  constexpr index_t columns = 256;
  const index_t n = R.cols, up = V.cols - removed;
  std::vector<double> triangle(columns * columns);
  for (index_t first = 0; first < n; first += columns) {  // A(:, J) = R'R(:, J), down to the diagonal
    poll(0.4 * share_of_columns(first, n));
    const index_t last = std::min(first + columns, n), wide = last - first;
    for (index_t j = first; j < last; ++j) std::copy_n(R.col(j), first, out.col(j));
    blas::trmm_left(Op::transpose, R.block(0, 0, first, first), out.block(0, first, first, wide));
    // The block on the diagonal is made of R's rows above the block and of R's triangle in the block. syrk() reads the
    // whole square, so the entries below the triangle are set to zero.
    for (index_t j = first; j < last; ++j) {
      double* const column = triangle.data() + (j - first) * wide;
      std::copy(&R(first, j), &R(j, j) + 1, column);
      std::fill(column + (j - first) + 1, column + wide, 0.0);
    }
    const MatrixView<double> block = out.block(first, first, wide, wide);
    blas::syrk(1, Op::transpose, {triangle.data(), wide, wide, wide}, 0, block);
    blas::syrk(1, Op::transpose, R.block(0, first, first, wide), 1, block);
  }
  poll(0.4);
  blas::syrk(1, Op::none, V.block(0, 0, n, up), 1, out);
  blas::syrk(-1, Op::none, V.block(0, up, n, removed), 1, out);
  poll(0.5);
  return blas::potrf(out) < 0;
}

}  // namespace gpucholmod::cpu
