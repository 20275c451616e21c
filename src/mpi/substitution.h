#pragma once

#include "cpu/substitute.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// Computes B (n x m, in every process) <- R'^-1 B or R^-1 B, for few right-hand sides, in double precision; within an
/// operation of the team.
template <class T>
class SharedSubstitution {
  using Op = blas::Op;

 public:
  SharedSubstitution(Team& team, const Layout& layout, const Columns<T>& R, double* B, index_t m)
      : team_(team), layout_(layout), R_(R), B_{B, layout.n, m, layout.n} {}

  /// Solves R'X = B block by block. The owner of a block's columns has all of R above their diagonal, and needs the
  /// solution above the block. The bits do not depend on which process owns which block.
  void forward() { forward(layout_.n); }
  /// Solves for the first `end` rows alone, with the leading part of R, and subtracts the share of these rows from the
  /// rows behind.
  void forward(index_t end) {
    end_ = end;
    for (index_t b = 0; b < layout_.blocks(); ++b) {
      if (layout_.owner(b) != team_.rank()) continue;
      for (index_t t = 0; t < b && layout_.first(t) < end; ++t) {
        receive(t, next_part + t);
        subtract_above(b, t, 0);
      }
      if (rows_to_solve(b) > 0) solve_diagonal(b, true);
      distribute(b, next_part + b);
    }
    for (index_t b = 0; b < layout_.blocks(); ++b) receive(b, next_part + b);
  }

  /// Solves RX = B from below. Each process sums up what its columns subtract from the rows above, and sends the sum
  /// for a block to the block's owner when the block is next. Sums of several processes are rounded differently from
  /// the sum of one process.
  void back() {
    const index_t n = layout_.n, m = B_.cols, blocks = layout_.blocks();
    std::vector<double> memory(n * m);
    const MatrixView<double> taken{memory.data(), n, m, n};
    index_t waiting = -1;  // a solved block whose share has been added for the block above alone
    for (index_t b = blocks - 1; b >= 0; --b) {
      const std::vector<int> behind = layout_.behind(b, layout_.owner(b));
      if (layout_.owner(b) != team_.rank()) {
        if (layout_.has_behind(team_.rank(), b)) send_rows(taken, b);
        if (waiting > 0) take_from(waiting, 0, layout_.first(waiting - 1), taken);
        waiting = -1;
        continue;
      }
      if (waiting > 0) take_from(waiting, 0, layout_.first(waiting - 1), taken);
      for (const int p : behind) add_rows(team_.take(p, b), taken, b);
      for (index_t s = 0; s < m; ++s)
        for (index_t i = layout_.first(b); i < layout_.last(b); ++i) B_(i, s) -= taken(i, s);
      solve_diagonal(b, false);
      if (b > 0) take_from(b, layout_.first(b - 1), layout_.first(b), taken);
      waiting = b;
      distribute(b, 2 * next_part + b);
    }
    for (index_t b = 0; b < blocks; ++b) receive(b, 2 * next_part + b);
  }

 private:
  /// Receives block b of the solution, unless this process has computed or received that block already.
  void receive(index_t b, index_t index) {
    if (layout_.owner(b) == team_.rank() || (b < index_t(there_.size()) && there_[b])) return;
    const Bytes got = team_.take(layout_.owner(b), index);
    copy_rows(reinterpret_cast<const double*>(got.data()), b);
    there_.resize(layout_.blocks());
    there_[b] = true;
  }
  void copy_rows(const double* from, index_t b) {
    for (index_t s = 0; s < B_.cols; ++s, from += layout_.columns(b))
      std::copy_n(from, layout_.columns(b), B_.col(s) + layout_.first(b));
  }
  std::vector<double> rows(MatrixView<const double> X, index_t b) const {
    std::vector<double> all;
    for (index_t s = 0; s < X.cols; ++s) all.insert(all.end(), X.col(s) + layout_.first(b), X.col(s) + layout_.last(b));
    return all;
  }
  void distribute(index_t b, index_t index) {
    const std::vector<double> solved = rows(B_, b);
    team_.send(team_.others(), index, solved.data(), sizeof(double) * solved.size());
  }
  void send_rows(const MatrixView<double>& taken, index_t b) {
    const std::vector<double> sum = rows(taken, b);
    team_.send(layout_.owner(b), b, sum.data(), sizeof(double) * sum.size());
  }
  void add_rows(const Bytes& message, const MatrixView<double>& taken, index_t b) const {
    const double* from = reinterpret_cast<const double*>(message.data());
    for (index_t s = 0; s < taken.cols; ++s)
      for (index_t i = layout_.first(b); i < layout_.last(b); ++i) taken(i, s) += *from++;
  }

  /// Returns `rows` rows of B_b from `from` on.
  MatrixView<double> rows_of_B(index_t b, index_t from, index_t rows) const {
    return B_.block(layout_.first(b) + from, 0, rows, B_.cols);
  }
  /// Returns rows [first, last) of block b's columns of R, as doubles.
  MatrixView<const double> part(index_t b, index_t first, index_t last) {
    const MatrixView<const T> all = R_.block(b);
    return cpu::as_doubles(all.block(first, 0, last - first, all.cols), buffer_);
  }
  index_t rows_to_solve(index_t b) const { return std::clamp<index_t>(end_ - layout_.first(b), 0, layout_.columns(b)); }
  /// Computes B_b <- B_b - R_tb' B_t, in rows of B_b from `from` on.
  void subtract_above(index_t b, index_t t, index_t from) {
    const index_t wide = layout_.columns(b) - from, high = rows_to_solve(t);
    const MatrixView<const double> R = part(b, layout_.first(t), layout_.first(t) + high);
    blas::gemm(-1, Op::transpose, R.block(0, from, high, wide), Op::none, rows_of_B(t, 0, high), 1,
               rows_of_B(b, from, wide));
  }
  /// Computes taken <- taken + R_b x_b in rows [first, last).
  void take_from(index_t b, index_t first, index_t last, const MatrixView<double>& taken) {
    if (first == last) return;
    blas::gemm(1, Op::none, part(b, first, last), Op::none, rows_of_B(b, 0, layout_.columns(b)), 1,
               taken.block(first, 0, last - first, taken.cols));
    team_.look();
  }
  void solve_diagonal(index_t b, bool forward) {
    const index_t wide = forward ? rows_to_solve(b) : layout_.columns(b);
    const MatrixView<const double> R = part(b, layout_.first(b), layout_.last(b));
    blas::trsm_left(forward ? Op::transpose : Op::none, R.block(0, 0, wide, wide), rows_of_B(b, 0, wide));
    if (forward && wide < layout_.columns(b)) subtract_above(b, b, wide);
  }

  Team& team_;
  const Layout& layout_;
  const Columns<T>& R_;
  MatrixView<double> B_;
  index_t end_ = 0;  ///< rows that forward() solves for
  std::vector<char> there_;
  std::vector<double> buffer_;
};

}  // namespace gpucholmod::mpi
