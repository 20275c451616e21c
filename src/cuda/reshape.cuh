#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/reshaped_sides.h"
#include "cpu/reshape.h"
#include "cuda/by_cublas.cuh"
#include "cuda/modification.cuh"
#include "cuda/moves.cuh"

namespace gpucholmod::cuda {

/// Makes one change of the rows and columns of A (see HeldFactor), from a factor to another or to itself. The layout of
/// `to` has the order after the change. If a downdate takes several passes, `to` must be another factor. In a Session.
template <class T>
class Reshaping {
 public:
  /// Takes the factor and the place of the result. `extra_bytes`: bytes of device memory that the call has taken
  /// already. `begun` becomes true before anything is written.
  Reshaping(Context& context, const Placed<T>& from, const Placed<T>& to, const Task& task, double extra_bytes,
            const Poll& poll, std::atomic<bool>& begun)
      : context_(context), from_(from), to_(to), task_(task), poll_(poll), begun_(begun), used_(extra_bytes) {}

  /// Returns the same change for another task.
  Reshaping with(const Task& task) const { return {context_, from_, to_, task, used_, poll_, begun_}; }

  /// Deletes rows and columns `gone`. Returns the sum of the squares of the columns of R that are deleted.
  double remove(const std::vector<index_t>& gone) {
    if (gone.empty()) {
      leave();
      return 0;
    }
    const index_t n = from_.layout.n, m = to_.layout.n, k = index_t(gone.size()),
                  first = std::min(k > 0 ? gone[0] : n, m);
    const std::vector<index_t> keep = others_than(gone, n);
    const std::vector<double> Y = remove_rows(task_.right, gone, keep);
    const PoolBuffer<int> dgone = on_device(gone);
    const EntriesToMove<T> plan = to_move(keep, true, first, false);
    const PoolBuffer<double> dsums(pool(), k);
    column_squares<<<unsigned(k), sum_threads, 0, stream()>>>(from_.read(), dgone.data(), dsums.data());
    check(cudaGetLastError(), "start sums of squares");
    const index_t start = strip_of(first), rows = m - start;
    allow(sizeof(double) * double(rows * k));
    const PoolBuffer<double> dV(pool(), first < m ? rows * k : 0);
    const MatrixView<double> V{dV.data(), rows, k, rows};
    if (first < m) {
      gather_rows<<<dim3(unsigned(k), blocks(rows)), gather_threads, 0, stream()>>>(from_.read(), dgone.data(),
                                                                                    plan.columns(), start, V);
      check(cudaGetLastError(), "start to gather rows");
    }
    const RightHandSideView trailing = task_.right.trailing(first < m ? start : m, Y);
    const Placed<T> rest = first < m ? to_.behind(start) : to_;
    const Task update = task_for(rest.layout.n, k, 0, trailing);
    std::vector<double> sums(k);
    std::optional<Modification<T>> modification;
    if (first < m) modification.emplace(context_, rest.layout, V, 0, 1, update, used_, poll_).reserve();
    poll_(0);
    begun_ = true;
    plan.move();
    to_.continue_behind(stream());
    if (modification) modification->run(rest.data, rest.data, rest.layout.n);
    else trailing.pass_through();
    check(cudaMemcpyAsync(sums.data(), dsums.data(), dsums.bytes(), cudaMemcpyDeviceToHost, stream()),
          "fetch sums of squares");
    check(cudaStreamSynchronize(stream()), "delete rows and columns");
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  /// Inserts p rows and columns, with columns X of A, at `at`. Returns the failing pivot, or -1. In place, an insertion
  /// before the end may fail although a dry run found it possible, for example if A is singular but for rounding: R is
  /// then lost, and `begun` is true.
  index_t insert(index_t at, const double* X, index_t p) {
    const index_t n = from_.layout.n, rows = n + p;
    if (p == 0) {
      leave();
      return -1;
    }
    const index_t copied = std::is_same_v<T, double> ? 0 : rows * p;
    allow(double(sizeof(double)) * double(rows * p) + double(sizeof(T)) * double(copied));
    const PoolBuffer<double> dX(pool(), rows * p);
    const MatrixView<double> columns{dX.data(), rows, p, rows};
    copy_matrix<double>({X, rows, p, rows}, columns, cudaMemcpyHostToDevice, stream());
    std::vector<double> S22(p * p), Y;
    if (const index_t pivot = factorise_inserted(at, columns, S22); pivot >= 0) return at + pivot;
    require_inserted_diagonal<T>({S22.data(), p, p, p}, at, 0);
    if (task_.right.m() > 0) Y = insert_rows(task_.right, at, inserted(at, columns), {S22.data(), p, p, p});
    const PoolBuffer<T> dW(pool(), copied);
    const MatrixView<T> W = in_scalar(columns, dW);
    return at < n ? insert_before(at, W, Y) : append(W, Y);
  }

  void shift(index_t from, index_t to) {
    const index_t n = from_.layout.n, first = std::min(from, to), last = std::max(from, to), ld = from_.layout.ld;
    if (from == to) return leave();
    task_.right.pass_through();
    const PoolBuffer<T> dbelow(pool(), n);
    const PoolBuffer<Reflection<T>> dturns(pool(), last - first);
    std::vector<Reflection<T>> turns(last - first);
    std::vector<T> column(n), diagonal(from > to ? n : 0);
    move_column(from_.data + from * ld, column.data(), from + 1, cudaMemcpyDeviceToHost, context_);
    copy_on_device<T>({from_.data, 1, n, ld + 1}, {dbelow.data(), 1, n, 1}, context_);
    if (from > to)
      check(cudaMemcpyAsync(diagonal.data(), dbelow.data(), dbelow.bytes(), cudaMemcpyDeviceToHost, stream()),
            "fetch the diagonal");
    check(cudaStreamSynchronize(stream()), "fetch a column");
    if (from > to) {
      turns = fold_up(column.data(), from, to);
      for (index_t j = from; j > to; --j) require_normal(turns[from - j].s * diagonal[j - 1], j);
    }

    std::vector<index_t> columns(n);
    for (index_t j = 0; j < n; ++j) columns[j] = j == to ? -1 : j < first || j > last ? j : from < to ? j + 1 : j - 1;
    const EntriesToMove<T> plan = to_move(columns, false, first, from > to);
    poll_(0);
    begun_ = true;
    plan.move();
    using Reflecting = block_columns::Reflecting<T, DeviceTeam>;
    const auto teams = [n](index_t column) {
      return unsigned((n - column + Reflecting::COLUMNS - 1) / Reflecting::COLUMNS);
    };
    block_columns::Shifted<T> shifted{
        to_.data, to_.layout.ld, n, first, last, dturns.data(), dbelow.data() + first + 1};
    if (from < to) {
      move_column<T>(column.data(), to_.data + to * to_.layout.ld, to + 1, cudaMemcpyHostToDevice, context_);
      for (index_t begin = first; begin < last; begin += block_columns::NB) {
        const index_t behind = std::min(begin + block_columns::NB, last);
        find_reflections<<<1, DeviceTeam::THREADS, 0, stream()>>>(shifted, begin);
        follow_reflections<<<teams(behind), DeviceTeam::THREADS, 0, stream()>>>(shifted, begin, behind);
      }
      check(cudaGetLastError(), "start reflections");
      check(cudaMemcpyAsync(turns.data(), dturns.data(), dturns.bytes(), cudaMemcpyDeviceToHost, stream()),
            "fetch reflections");
    } else {
      send(std::vector<Reflection<T>>(turns.rbegin(), turns.rend()), last - first, dturns.data(), stream());
      move_column<T>(column.data(), to_.data + to * to_.layout.ld, to + 1, cudaMemcpyHostToDevice, context_);
      follow_back<<<teams(first + 1), DeviceTeam::THREADS, 0, stream()>>>(shifted);
      check(cudaGetLastError(), "start reflections");
    }
    check(cudaStreamSynchronize(stream()), "move a row and column");
    reflect_rows(turns, from, from > to, task_.right.out);
  }

 private:
  /// Appends the new rows and columns. W: S12 and S22.
  index_t append(MatrixView<T> W, const std::vector<double>& Y) {
    const index_t n = from_.layout.n, p = W.cols;
    std::optional<EntriesToMove<T>> plan;
    if (!in_place()) plan.emplace(context_, from_, to_, source_of(n, p), true, 0, false);
    poll_(0);
    begun_ = true;
    if (plan) plan->move();
    put_in(n, W);
    task_.right.trailing(n + p, Y).pass_through();
    return -1;
  }

  /// Inserts the new rows and columns before row `at`. W: S12, S22 and the remaining rows of X.
  index_t insert_before(index_t at, MatrixView<T> W, const std::vector<double>& Y) {
    constexpr index_t STRIP = block_columns::STRIP;
    const index_t n = from_.layout.n, p = W.cols, behind = n - at;
    const MatrixView<T> S32 = W.block(at + p, 0, behind, p);
    allow(sizeof(double) * double((STRIP + behind) * p));
    const PoolBuffer<double> dV(pool(), (STRIP + behind) * p);
    const MatrixView<double> V{dV.data(), STRIP + behind, p, STRIP + behind};  // S23', behind STRIP rows of zeros
    const MatrixView<const T> R13{from_.data + at * from_.layout.ld, at, behind, from_.layout.ld};
    if (at > 0) context_.cublas().subtract_product<T>(R13, W.block(0, 0, at, p), S32);
    context_.cublas().solve_right(behind, p, W.data + at, W.ld, S32.data, S32.ld);
    check(cudaMemsetAsync(dV.data(), 0, dV.bytes(), stream()), "clear V");
    convert_matrix<T, double>(false, S32, V.block(STRIP, 0, behind, p), stream());
    if (in_place())
      if (const index_t pivot = verdict(at, V); pivot >= 0) return at + p + pivot;

    const EntriesToMove<T> plan = to_move(source_of(at, p), true, at, true);
    const index_t start = strip_of(at + p), above = STRIP - (at + p - start);
    const Placed<T> rest = to_.behind(start);
    const Task downdate = task_for(rest.layout.n, p, p, task_.right.trailing(start, Y));
    Modification<T> modification(context_, rest.layout, V.block(above, 0, V.rows - above, p), 0, 1, downdate,
                                 used_, poll_);
    modification.reserve();
    poll_(0);
    begun_ = true;
    const auto fill = [&] {
      plan.move();
      convert_matrix<T, T>(true, S32, to_.R().block(at, at + p, p, behind), stream());
      put_in(at, W);
      return rest.data;
    };
    const index_t pivot = modification.run(fill(), rest.data, rest.layout.n);
    if (pivot < 0) return -1;
    return start + (in_place() ? pivot : modification.first_pivot(fill, rest.data, pivot));
  }

  /// Copies the new columns, down to their diagonal, to the result, and writes an identity behind the factor.
  void put_in(index_t at, MatrixView<T> W) {
    const index_t p = W.cols;
    copy_on_device<T>(W.block(0, 0, at + p, p), to_.R().block(0, at, at + p, p), context_);
    to_.continue_behind(stream());
  }

  /// Copies the factor and the right-hand sides unchanged; in place, the right-hand sides alone.
  void leave() {
    const index_t n = from_.layout.n;
    task_.right.pass_through();
    if (in_place()) return;
    std::vector<index_t> columns(n);
    std::iota(columns.begin(), columns.end(), 0);
    to_move(columns, false, 0, false).move();
  }

  bool in_place() const { return from_.data == to_.data; }
  cudaStream_t stream() const { return context_.stream(); }
  Pool& pool() const { return context_.pool(); }
  static unsigned blocks(index_t count) { return unsigned((count + gather_threads - 1) / gather_threads); }

  /// Counts `bytes` more of device memory. Throws out_of_memory if the task does not allow them.
  void allow(double bytes) {
    used_ += bytes;
    require_allowed(used_, task_.device_memory);
  }

  PoolBuffer<int> on_device(const std::vector<index_t>& numbers) const {
    const std::vector<int> ints(numbers.begin(), numbers.end());
    PoolBuffer<int> made(pool(), index_t(ints.size()));
    send(ints, index_t(ints.size()), made.data(), stream());
    return made;
  }
  /// Returns the task of modifying the trailing part of the factor, of n rows.
  Task task_for(index_t n, index_t k, index_t removed, const RightHandSideView& sides) const {
    Task task;
    task.n = n;
    task.k = k;
    task.removed = removed;
    task.precision = task_.precision;
    task.algorithm = Algorithm::unscaled;
    task.device_memory = task_.device_memory;
    task.right = sides;
    return task;
  }

  EntriesToMove<T> to_move(const std::vector<index_t>& columns, bool rows, index_t first, bool back) const {
    return {context_, from_, to_, columns, rows, first, back};
  }
  /// Returns the old number of each row and column of the result, -1 for the p new ones at `at`.
  std::vector<index_t> source_of(index_t at, index_t p) const {
    std::vector<index_t> source(to_.layout.n);
    for (index_t i = 0; i < to_.layout.n; ++i) source[i] = i < at ? i : i < at + p ? -1 : i - p;
    return source;
  }

  /// Replaces the first `at` rows of X by S12, and the p rows behind them by S22, of which `S22` becomes a copy on the
  /// host. Returns the failing pivot, or -1.
  index_t factorise_inserted(index_t at, MatrixView<double> X, std::vector<double>& S22) {
    const index_t p = X.cols;
    const MatrixView<double> middle = X.block(at, 0, p, p);
    if (at > 0) {
      const Layout leading = from_.layout.leading(at);
      const index_t solved =
          p <= tuning::chain_solves(at)
              ? Substitution<T>::solve_there(context_, leading, from_.data, TriangularSolve::forward,
                                             X.block(0, 0, at, p))
              : 0;
      if (solved < p) solve_on_device(at, X.block(0, solved, at, p - solved));
      const MatrixView<const double> above = X.block(0, 0, at, p);
      context_.cublas().subtract_product<double>(above, above, middle);
    }
    copy_matrix<double>(middle, {S22.data(), p, p, p}, cudaMemcpyDeviceToHost, stream());
    check(cudaStreamSynchronize(stream()), "fetch what is to be factorised");
    if (const index_t pivot = cpu::factorise_inserted({nullptr, 0, p, 1}, {S22.data(), p, p, p}); pivot >= 0)
      return pivot;
    for (index_t q = 0; q < p; ++q) std::fill(S22.begin() + q * p + q + 1, S22.begin() + (q + 1) * p, 0.0);
    copy_matrix<double>({S22.data(), p, p, p}, middle, cudaMemcpyHostToDevice, stream());
    return -1;
  }

  /// Returns X in the scalar of R: X itself, or a copy.
  MatrixView<T> in_scalar(MatrixView<double> X, const PoolBuffer<T>& copy) const {
    if constexpr (std::is_same_v<T, double>) {
      return X;
    } else {
      const MatrixView<T> W{copy.data(), X.rows, X.cols, X.rows};
      convert_matrix<double, T>(false, X, W, stream());
      return W;
    }
  }

  /// Computes B (at x m) <- R11'^-1 B by cuBLAS.
  void solve_on_device(index_t at, MatrixView<double> B) {
    const PoolBuffer<T> dB(pool(), at * B.cols);
    const MatrixView<T> copy{dB.data(), at, B.cols, at};
    convert_matrix<double, T>(false, B, copy, stream());
    context_.cublas().solve(true, at, B.cols, static_cast<const T*>(from_.data), from_.layout.ld, copy.data, at);
    convert_matrix<T, double>(false, copy, B, stream());
  }

  /// Returns S12, on the host.
  MatrixView<const double> inserted(index_t at, MatrixView<double> X) {
    S12_.resize(at * X.cols);
    copy_matrix<double>(X.block(0, 0, at, X.cols), {S12_.data(), at, X.cols, at}, cudaMemcpyDeviceToHost,
                        stream());
    check(cudaStreamSynchronize(stream()), "fetch what is inserted");
    return {S12_.data(), at, X.cols, at};
  }

  /// Tests by a dry run whether R33'R33 - VV' has a factor; R33 is read where it is before the insertion, and V has
  /// STRIP rows of zeros ahead. Returns the failing pivot, counted from row `at`, or -1.
  index_t verdict(index_t at, MatrixView<double> V) {
    const index_t start = strip_of(at), lead = at - start, above = block_columns::STRIP - lead;
    const Placed<T> rest = from_.behind(start);
    const Task downdate = task_for(rest.layout.n, V.cols, V.cols, {});
    const index_t pivot = Modification<T>(context_, rest.layout, V.block(above, 0, V.rows - above, V.cols), 0, 1,
                                          downdate, used_, poll_)
                              .run(rest.data, nullptr, rest.layout.n);
    return pivot < 0 ? -1 : pivot - lead;
  }

  Context& context_;
  Placed<T> from_, to_;
  const Task& task_;
  const Poll& poll_;
  std::atomic<bool>& begun_;
  double used_;  ///< bytes of device memory that the call takes
  std::vector<double> S12_;
};

}  // namespace gpucholmod::cuda
