#include "cpu/reshape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check_column.h"
#include "base/reflection.h"
#include "base/reshaped_sides.h"
#include "cpu/blocked.h"
#include "cpu/inserted.h"
#include "cpu/substitute.h"

namespace gpucholmod::cpu {
namespace {

/// Runs the modification of the trailing part of a factor: R (n x n) <- the factor of R'R + VV', or of R'R - VV', and
/// right-hand sides. The constructor allocates all memory, so that a factor can be changed in place afterwards.
template <class T>
class RestSweep {
 public:
  /// Allocates memory for V (n x k) and m right-hand sides.
  RestSweep(const std::vector<T>& V, index_t n, index_t k, Sign sign, index_t m, const Task& task) {
    if (n == 0 || k == 0) return;
    sweep_.emplace(MatrixView<const T>{V.data(), n, k, n}, sign == Sign::downdate ? k : 0, T(1), Uplo::upper,
                   task.instructions, useful_threads(n, k, Uplo::upper, task.threads));
    sweep_->reserve_to_carry(m);
  }
  /// Runs the sweep; if out.data is null, as a dry run. Returns the failing pivot, or -1.
  index_t run(MatrixView<const T> R, MatrixView<T> out, const RightHandSideView& right, const Poll& poll) {
    if (!sweep_) {
      right.pass_through();
      return -1;
    }
    return sweep_->run(R, out, false, &right, poll);
  }

 private:
  std::optional<BlockedSweep<T>> sweep_;
};

template <class T>
bool is_in_place(MatrixView<const T> R, MatrixView<T> out) { return R.data == out.data; }

}  // namespace

template <class T>
void remove(MatrixView<const T> R, const std::vector<index_t>& gone, MatrixView<T> out, const Task& task,
            const Poll& poll, std::atomic<bool>& begun) {
  const index_t n = R.cols, k = index_t(gone.size()), m = n - k, first = std::min(k > 0 ? gone[0] : n, m);
  const std::vector<index_t> keep = others_than(gone, n);
  std::vector<T> V((m - first) * k);
  for (index_t q = 0; q < k; ++q)
    for (index_t j = first; j < m; ++j) V[j - first + q * (m - first)] = gone[q] < keep[j] ? R(gone[q], keep[j]) : T(0);
  const std::vector<double> Y = remove_rows(task.right, gone, keep);
  RestSweep<T> sweep(V, m - first, k, Sign::update, task.right.m(), task);
  poll(0);
  begun = true;
  for (index_t j = is_in_place(R, out) ? first : 0; j < m; ++j) {
    const T* const from = R.col(keep[j]);
    T* const to = out.col(j);
    std::copy_n(from, std::min(first, j + 1), to);
    for (index_t i = first; i <= j; ++i) to[i] = from[keep[i]];
  }
  const MatrixView<T> rest = out.block(first, first, m - first, m - first);
  sweep.run(rest, rest, task.right.trailing(first, Y), poll);
}

index_t factorise_inserted(MatrixView<const double> S12, MatrixView<double> S22) {
  const index_t p = S22.cols;
  blas::syrk(-1, blas::Op::transpose, S12, 1, S22);
  // Versions of LAPACK differ in the pivot that they return for NaN and infinity.
  index_t finite = 0;
  while (finite < p && std::isfinite(S22(finite, finite))) ++finite;
  if (const index_t pivot = blas::potrf(S22.block(0, 0, finite, finite)); pivot >= 0) return pivot;
  for (index_t q = 0; q < finite; ++q)
    if (!std::isfinite(S22(q, q))) return q;
  return finite < p ? finite : -1;
}

template <class T>
index_t insert(MatrixView<const T> R, index_t at, MatrixView<const double> X, int e, MatrixView<T> out,
               const Task& task, const Poll& poll, std::atomic<bool>& begun) {
  const index_t n = R.cols, p = X.cols, behind = n - at;
  poll(0);
  const Inserted<T> inserted(n, at, X.data, p, e, task.right, [&](MatrixView<double> B) {
    const MatrixView<double> B1 = B.block(0, 0, at, p);
    substitute(R.block(0, 0, at, at), true, B1);
    std::vector<double> buffer;
    constexpr index_t width = 256;
    for (index_t j = at; j < n && at > 0; j += width) {
      const index_t count = std::min(width, n - j);
      blas::gemm(-1, blas::Op::transpose, as_doubles(R.block(0, j, at, count), buffer), blas::Op::none, B1, 1,
                 B.block(j, 0, count, p));
    }
  });
  if (inserted.pivot() >= 0) return at + inserted.pivot();
  std::vector<T> V(behind * p);  // S23'
  for (index_t q = 0; q < p; ++q)
    for (index_t j = 0; j < behind; ++j) V[j + q * behind] = inserted.behind(q, j);
  const MatrixView<const T> old = R.block(at, at, behind, behind);
  if (is_in_place(R, out) && p > 0)
    if (const index_t pivot =
            RestSweep<T>(V, behind, p, Sign::downdate, 0, task).run(old, {nullptr, behind, behind, out.ld}, {}, poll);
        pivot >= 0)
      return at + p + pivot;
  RestSweep<T> sweep(V, behind, p, Sign::downdate, task.right.m(), task);
  begun = true;
  for (index_t j = n - 1; j >= at; --j) {
    const T* const from = R.col(j);
    T* const to = out.col(j + p);
    std::copy_backward(from + at, from + j + 1, to + p + j + 1);
    std::copy_n(from, at, to);
    for (index_t q = 0; q < p; ++q) to[at + q] = V[j - at + q * behind];
  }
  if (!is_in_place(R, out))
    for (index_t j = 0; j < at; ++j) std::copy_n(R.col(j), j + 1, out.col(j));
  for (index_t q = 0; q < p; ++q) inserted.put(q, out.col(at + q));
  const MatrixView<T> rest = out.block(at + p, at + p, behind, behind);
  const index_t pivot = sweep.run(rest, rest, task.right.trailing(at + p, inserted.Y()), poll);
  return pivot >= 0 ? at + p + pivot : -1;
}

namespace {

/// Returns whether the norms of the columns that move one to the left show that no entry of the diagonal vanishes. Each
/// such column's new diagonal entry is no larger than the norm of the column from row `from` on, and the product of
/// diagonal entries `from` .. `to` does not change.
template <class T>
bool stays_in_range(MatrixView<const T> R, index_t from, index_t to) {
  double last = std::min(double(R(from, from)) / double(std::numeric_limits<T>::min()), 0x1p1000);
  for (index_t j = from + 1; j <= to && last > 0x1p40; ++j)
    last *= double(R(j, j)) / std::sqrt(double(sum_of_squares(&R(from, j), j - from + 1)));
  return last > 0x1p40;
}

/// Throws bad_diagonal if the diagonal entry of a row and column that move from `from` to a later `to` would not be a
/// normal number.
template <class T>
void require_shiftable(MatrixView<const T> R, index_t from, index_t to) {
  if (stays_in_range(R, from, to)) return;
  // The entry becomes the inverse of the norm of the first column of R22'^-1. If the inverse is near the lower end
  // of the range, the reflections themselves decide, in a copy.
  const index_t m = to - from + 1;
  std::vector<double> y(m);
  y[0] = 1;
  substitute(R.block(from, from, m, m), true, {y.data(), m, 1, m});
  if (1 / std::sqrt(sum_of_squares(y.data(), m)) > 0x1p40 * double(std::numeric_limits<T>::min())) return;
  std::vector<T> shifted(m * m);
  std::atomic<bool> begun{false};
  shift(R.block(from, from, m, m), 0, m - 1, MatrixView<T>{shifted.data(), m, m, m}, Task(), unwatched, begun);
  require_normal(shifted.back(), to);
}

/// Moves columns from + 1 .. to of `out` one to the left, and column `from`, which is `moved`, behind them. Each column
/// that moves left has an entry below the diagonal, which a reflection takes into the diagonal. `column` has room for
/// one column, `turns` for the reflections that are found.
template <class T>
void move_right(MatrixView<T> out, index_t from, index_t to, const std::vector<T>& moved, std::vector<T>& column,
                std::vector<Reflection<T>>& turns) {
  for (index_t j = from; j < out.cols; ++j) {
    std::fill_n(column.begin(), j + 2, T(0));
    if (j == to) std::copy(moved.begin(), moved.end(), column.begin());
    else std::copy_n(j < to ? out.col(j + 1) : out.col(j), j < to ? j + 2 : j + 1, column.begin());
    for (std::size_t t = 0; t < turns.size(); ++t) turns[t].apply(column[from + t], column[from + t + 1]);
    if (j < to) turns.push_back(Reflection<T>::of(column[j], column[j + 1]));
    std::copy_n(column.begin(), j + 1, out.col(j));
  }
}

/// Moves column `from`, as `moved`, to place `to`, and applies `turns` to the columns behind. `turns` are the
/// reflections that have taken the entries of `moved` below row `to` into the entry above, from the last entry on. In
/// each other column that moves, the reflections fill the place below its last entry.
template <class T>
void move_left(MatrixView<T> out, index_t from, index_t to, const std::vector<T>& moved, std::vector<T>& column,
               const std::vector<Reflection<T>>& turns) {
  for (index_t j = out.cols - 1; j > to; --j) {
    std::fill_n(column.begin(), j + 1, T(0));
    if (j > from) std::copy_n(out.col(j), j + 1, column.begin());
    else std::copy_n(out.col(j - 1), j, column.begin());
    for (std::size_t t = 0; t < turns.size(); ++t)
      if (const index_t i = from - index_t(t); i <= j) turns[t].apply(column[i - 1], column[i]);
    std::copy_n(column.begin(), j + 1, out.col(j));
  }
  std::copy_n(moved.begin(), to + 1, out.col(to));
}

}  // namespace

template <class T>
void shift(MatrixView<const T> R, index_t from, index_t to, MatrixView<T> out, const Task& task, const Poll& poll,
           std::atomic<bool>& begun) {
  const index_t n = R.cols;
  // All memory is allocated before `out` changes.
  std::vector<T> moved(R.col(from), R.col(from) + from + 1), column(n + 1);
  std::vector<Reflection<T>> turns;
  if (from > to) {
    turns = fold_up(moved.data(), from, to);
    for (index_t j = from; j > to; --j) require_normal(turns[from - j].s * R(j - 1, j - 1), j);
  } else if (from < to && is_in_place(R, out)) {
    require_shiftable(R, from, to);
  }
  turns.reserve(std::abs(to - from));
  task.right.pass_through();
  poll(0);
  begun = true;
  if (!is_in_place(R, out))
    for (index_t j = 0; j < n; ++j) std::copy_n(R.col(j), j + 1, out.col(j));
  if (from == to) return;
  if (from < to) move_right(out, from, to, moved, column, turns);
  else move_left(out, from, to, moved, column, turns);
  reflect_rows(turns, from, from > to, task.right.out);
}

#define GPUCHOLMOD_FOR(T)                                                                                              \
  template void remove(MatrixView<const T>, const std::vector<index_t>&, MatrixView<T>, const Task&, const Poll&,      \
                       std::atomic<bool>&);                                                                            \
  template index_t insert(MatrixView<const T>, index_t, MatrixView<const double>, int, MatrixView<T>, const Task&,     \
                          const Poll&, std::atomic<bool>&);                                                            \
  template void shift(MatrixView<const T>, index_t, index_t, MatrixView<T>, const Task&, const Poll&,                  \
                      std::atomic<bool>&);
GPUCHOLMOD_FOR(float)
GPUCHOLMOD_FOR(double)
#undef GPUCHOLMOD_FOR

}  // namespace gpucholmod::cpu
