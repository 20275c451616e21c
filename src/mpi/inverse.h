#pragma once

#include "cpu/substitute.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// The upper triangle of A^-1 = W W', W = R^-1, in blocks of columns as those of R, in double precision; within an
/// operation of the team.
///
///   for each block t, from left to right:
///     its owner     W_t <- [ -C_t; I ] R_tt^-1       C_b = sum of W_s R_sb over the blocks s < b
///     sends W_t to all, who for their blocks of columns do
///       b > t       C_b <- C_b + W_t R_tb
///       b <= t      X_b <- X_b + W_t W_bt'           rows down to the diagonal of b;
///                                                    W_bt: the rows of W_t that belong to block b
///
/// X_b takes the place of W_b, which takes that of C_b. The owner of the next block is first to have what it needs for
/// it. Blocks add up in the same order whoever has them: the same bits with any number of processes. Reference: Du Croz
/// & Higham 1992.
template <class T>
Columns<double> inverted(Team& team, const Layout& layout, const Columns<T>& R, const cpu::Allocate& allocate) {
  const Columns<double> X(layout, team.rank(), allocate);
  X.each([](index_t, MatrixView<double> C) {
    for (index_t j = 0; j < C.cols; ++j) std::fill_n(C.col(j), C.rows, 0.0);
  });
  const double one = 1, minus = -1;
  std::vector<double> buffer, W;
  const auto multiply_by_inverse = [&](index_t t) {
    const MatrixView<double> C = X.block(t);
    const MatrixView<T> all = R.block(t);
    int ld;
    const MatrixView<const T> own{all.data + layout.first(t), C.cols, C.cols, all.ld};
    const double* const diagonal = cpu::as_doubles(own, 0, C.cols, C.cols, buffer, ld);
    const int high = int(C.rows), wide = int(C.cols), ldc = int(C.ld);
    for (index_t j = 0; j < C.cols; ++j) C(layout.first(t) + j, j) = -1;
    dtrsm_("R", "U", "N", "N", &high, &wide, &minus, diagonal, &ld, C.data, &ldc, 1, 1, 1, 1);
    W.clear();
    for (index_t j = 0; j < C.cols; ++j) W.insert(W.end(), C.col(j), C.col(j) + C.rows);
    for (index_t j = 0; j < C.cols; ++j) std::fill_n(C.col(j), C.rows, 0.0);
  };
  const auto add = [&](index_t b, index_t t) {
    const MatrixView<double> C = X.block(b);
    const int below = int(layout.last(t)), inner = int(layout.columns(t)), wide = int(C.cols), ldc = int(C.ld);
    if (b > t) {
      const MatrixView<T> all = R.block(b);
      int ld;
      const MatrixView<const T> above{all.data + layout.first(t), inner, C.cols, all.ld};
      const double* const part = cpu::as_doubles(above, 0, C.cols, inner, buffer, ld);
      dgemm_("N", "N", &below, &wide, &inner, &one, W.data(), &below, part, &ld, &one, C.data, &ldc, 1, 1);
    } else {
      const int high = int(C.rows);
      dgemm_("N", "T", &high, &wide, &inner, &one, W.data(), &below, W.data() + layout.first(b), &below, &one, C.data,
             &ldc, 1, 1);
    }
    team.look();
  };
  bool found = false;  // W_t, by this process, when it had just added W_(t - 1) there
  for (index_t t = 0; t < layout.blocks(); ++t) {
    const auto send = [&](index_t b) {
      multiply_by_inverse(b);
      team.send(team.others(), next_part + b, W.data(), sizeof(double) * W.size());
    };
    if (layout.owner(t) == team.rank()) {
      if (!found) send(t);
    } else {
      const Bytes got = team.take(layout.owner(t), next_part + t);
      W.resize(got.size() / sizeof(double));
      std::copy_n(reinterpret_cast<const double*>(got.data()), W.size(), W.begin());
    }
    found = t + 1 < layout.blocks() && layout.owner(t + 1) == team.rank();
    if (!found) {
      X.each([&](index_t b, MatrixView<double>) { add(b, t); });
      continue;
    }
    add(t + 1, t);
    std::vector<double> before = W;
    send(t + 1);
    W.swap(before);
    X.each([&](index_t b, MatrixView<double>) {
      if (b != t + 1) add(b, t);
    });
    W.swap(before);
  }
  return X;
}

}  // namespace gpucholmod::mpi
