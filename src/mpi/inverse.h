#pragma once

#include "cpu/substitute.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Returns the upper triangle of A^-1 = W W', W = R^-1, in double precision and in the same blocks of columns as R;
/// within an operation of the team.
///
///   for each block t, from left to right:
///     its owner     W_t <- [ -C_t; I ] R_tt^-1       C_b = sum of W_s R_sb over the blocks s < b
///     sends W_t to all processes, which compute, for each block b of their own columns,
///       b > t       C_b <- C_b + W_t R_tb
///       b <= t      X_b <- X_b + W_t W_bt'           rows down to the diagonal of b;
///                                                    W_bt: the rows of W_t that belong to block b
///
/// X_b overwrites W_b, which overwrites C_b. The owner of block t + 1 brings that block up to date first, and sends
/// W_(t + 1) before it continues with its other blocks. Every sum over blocks has the same order whoever owns the
/// blocks: the bits are the same with any number of processes. Reference: Du Croz & Higham 1992.
template <class T>
Columns<double> inverted(Team& team, const Layout& layout, const Columns<T>& R, const cpu::Allocate& allocate) {
  using blas::Op;
  const Columns<double> X(layout, team.rank(), allocate);
  X.each([](index_t, MatrixView<double> C) {
    for (index_t j = 0; j < C.cols; ++j) std::fill_n(C.col(j), C.rows, 0.0);
  });
  std::vector<double> buffer, W;
  const auto multiply_by_inverse = [&](index_t t) {
    const MatrixView<double> C = X.block(t);
    const MatrixView<const T> own = R.block(t).block(layout.first(t), 0, C.cols, C.cols);
    for (index_t j = 0; j < C.cols; ++j) C(layout.first(t) + j, j) = -1;
    blas::trsm_right(-1, cpu::as_doubles(own, buffer), C);
    W.clear();
    for (index_t j = 0; j < C.cols; ++j) W.insert(W.end(), C.col(j), C.col(j) + C.rows);
    for (index_t j = 0; j < C.cols; ++j) std::fill_n(C.col(j), C.rows, 0.0);
  };
  const auto add = [&](index_t b, index_t t) {
    const MatrixView<double> C = X.block(b);
    const index_t below = layout.last(t), inner = layout.columns(t);
    const MatrixView<const double> W_t{W.data(), below, inner, below};
    if (b > t) {
      const MatrixView<const T> above = R.block(b).block(layout.first(t), 0, inner, C.cols);
      blas::gemm(1, Op::none, W_t, Op::none, cpu::as_doubles(above, buffer), 1, C.block(0, 0, below, C.cols));
    } else {
      blas::gemm(1, Op::none, W_t.block(0, 0, C.rows, inner), Op::transpose,
                 W_t.block(layout.first(b), 0, C.cols, inner), 1, C);
    }
    team.look();
  };
  bool found = false;  // true if this process has computed and sent W_t already, in the round of t - 1
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
