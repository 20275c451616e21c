#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check_column.h"
#include "base/huge_pages.h"
#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "cuda/placed.cuh"
#include "cuda/transfer.cuh"

namespace gpucholmod::cuda {

/// A factor of scalars T: its memory, and what goes in and comes out. Work is done in the stream of its context, and
/// finished when a function returns.
template <class T>
class DeviceStorage : public DeviceFactor {
 public:
  /// What is there of a factor that is made: the continuation behind row and column n and what else Layout wants, or,
  /// of the strips that hold it, nothing, as a modification is going to write them.
  enum class Made { to_be_filled, to_be_written };

  /// Not a factor yet. In a Session.
  DeviceStorage(Context& context, index_t n, index_t capacity = 0, Made what = Made::to_be_filled)
      : context_(context), layout_(n, capacity), capacity_(std::max(n, capacity)), dR_(memory_for(layout_, context)) {
    if (what == Made::to_be_filled) here().continue_behind(stream());
    clear(what == Made::to_be_filled ? 0 : layout_.padded);
  }
  ~DeviceStorage() override {
    if (context_.forked()) dR_.abandon();
  }

  index_t order() const override { return layout_.n; }
  index_t capacity() const override { return capacity_; }
  Precision precision() const override { return precision_of<T>; }
  int device() const override { return context_.device(); }
  bool is_shared() const override { return context_.devices().size() > 1; }
  std::string device_name() const override { return context_.device_name(); }
  double bytes() const override { return double(dR_.bytes()); }
  std::vector<Share> shares() const override {
    if (!context_.spread() || bytes() == 0) return {{device(), bytes()}};
    std::vector<Share> shares;
    const OneThread one_thread;
    const std::vector<double>& on = context_.spread()->shares(dR_.data());
    for (std::size_t rank = 0; rank < on.size(); ++rank) shares.push_back({context_.devices()[rank], on[rank]});
    return shares;
  }

  /// From a checked triangle on the host, whose largest entry is `largest`.
  template <class S>
  void send(const S* A, Uplo uplo, double largest) {
    send_triangle<S, T>({A, order(), order(), order()}, uplo, Uplo::upper, R(), context_);
    clear();
    most_ = largest * std::sqrt(double(order()));
  }

  /// From a triangle in the memory of this GPU. Returns false if an entry is not finite, or one on the diagonal is no
  /// normal positive number; this is then no factor.
  bool take(MatrixView<const T> given, Uplo uplo) {
    const index_t n = order();
    if (n == 0) return true;
    const PoolBuffer<unsigned long long> dlargest(context_.pool(), 1);
    check(cudaMemsetAsync(dlargest.data(), 0, dlargest.bytes(), stream()), "prepare to take a factor");
    with_triangles(uplo, [&](auto transposed, dim3 grid, dim3 block) {
      take_triangle<decltype(transposed)::value, T><<<grid, block, 0, stream()>>>(given, R(), dlargest.data());
    });
    check(cudaGetLastError(), "take a factor");
    clear();
    double largest = 0;
    check(cudaMemcpyAsync(&largest, dlargest.data(), sizeof largest, cudaMemcpyDeviceToHost, stream()),
          "fetch the largest entry of a factor");
    check(cudaStreamSynchronize(stream()), "take a factor");
    most_ = largest * std::sqrt(double(n));
    return std::isfinite(largest);
  }

  void give(Uplo uplo, const DeviceMatrix& to, bool clear) const override {
    const MatrixView<T> out{static_cast<T*>(to.data), order(), order(), to.ld};
    if (order() == 0) return;
    const Session session(context_);
    if (clear)
      check(cudaMemset2DAsync(out.data, sizeof(T) * out.ld, 0, sizeof(T) * order(), order(), stream()),
            "clear a matrix");
    with_triangles(uplo, [&](auto transposed, dim3 grid, dim3 block) {
      give_triangle<decltype(transposed)::value, T><<<grid, block, 0, stream()>>>(R(), out);
    });
    check(cudaGetLastError(), "give a factor");
    session.finish();
  }

  /// From an upper triangle that is read once, panel by panel, and checked as it comes. Throws not_finite, overflow,
  /// bad_diagonal, what R and `poll` throw.
  void send(const Source<double>& R, const Poll& poll) {
    const index_t n = order();
    if (n == 0) return;
    std::vector<double> diagonal(n);
    double largest = 0;
    send_source(R, this->R(), context_, poll, [&](index_t j, const double* column) {
      largest = std::max(largest, require_column<T>("R", column, 0, j + 1, j));
      diagonal[j] = column[j];
    });
    for (index_t j = 0; j < n; ++j) {
      require_positive(diagonal[j], j);
      require_not_vanished(T(diagonal[j]), diagonal[j], j);
    }
    clear();
    most_ = largest * std::sqrt(double(n));
  }

  /// Becomes the factor of a symmetric matrix, of which a checked triangle is on the host. Returns the failing pivot,
  /// or -1. For a factor on several devices, cuSOLVER, which reads most of a matrix many times, works in memory of the
  /// first alone, where that has room.
  template <class S>
  index_t factorise(const S* A, Uplo uplo) {
    const index_t n = order(), ld = layout_.ld;
    for (index_t j = 0; j < n; ++j) most_ = std::max(most_, std::sqrt(std::max(double(A[j + j * n]), 0.0)));
    if (n == 0) return -1;
    if (context_.spread()) {
      try {
        const PoolBuffer<T> of_first(context_.workspace(), ld * n);
        return factorise(A, uplo, {of_first.data(), n, n, ld});
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory) throw;
      }
    }
    return factorise(A, uplo, R());
  }

  void download(Uplo uplo, double* out) const override {
    const index_t n = order();
    const Session session(context_);
    prefer_huge_pages(out, sizeof(double) * n * n);
    fetch_triangle<double, T>(R(), uplo, {out, n, n, n}, context_);
    session.finish();
  }

  void diagonal(double* out) const override {
    const index_t n = order();
    if (n == 0) return;
    const Session session(context_);
    const PoolBuffer<double> ddiagonal(context_.pool(), n);
    const MatrixView<const T> along{dR_.data(), 1, n, layout_.ld + 1};
    convert_matrix<T, double>(false, along, {ddiagonal.data(), 1, n, 1}, stream());
    fetch(ddiagonal, n, out);
    session.finish();
  }

  void set_diagonal(const std::vector<index_t>& rows, double value) override {
    if (rows.empty()) return;
    const Session session(context_);
    const T entry = T(value);
    for (const index_t j : rows)
      move_column(&entry, dR_.data() + j * (layout_.ld + 1), 1, cudaMemcpyHostToDevice, context_);
    session.finish();
  }

  double trace() const override {
    double sum = 0;
    for (const double s : squares_of_columns()) sum += s;
    return sum;
  }

 protected:
  /// The squared norms of all columns.
  std::vector<double> squares_of_columns() const {
    const index_t n = order();
    std::vector<double> sums(n);
    if (n == 0) return sums;
    const Session session(context_);
    const PoolBuffer<double> dsums(context_.pool(), n);
    column_squares<<<unsigned(n), sum_threads, 0, stream()>>>(R(), nullptr, dsums.data());
    check(cudaGetLastError(), "start sums of squares");
    fetch(dsums, n, sums.data());
    session.finish();
    return sums;
  }

  /// Finds out how large the norms of columns are, where their squares can be computed with.
  void look() {
    const std::vector<double> squares = squares_of_columns();
    const double most = squares.empty() ? 0 : *std::max_element(squares.begin(), squares.end());
    if (in_range(most)) most_ = std::sqrt(most) * (1 + 1e-6);
  }
  double least_of_diagonal() const {
    std::vector<double> entries(order());
    diagonal(entries.data());
    return entries.empty() ? std::numeric_limits<double>::infinity()
                           : *std::min_element(entries.begin(), entries.end());
  }
  /// Throws bad_diagonal where an entry of the diagonal of a result is no normal number.
  void require_normal_diagonal() const {
    std::vector<double> entries(order());
    diagonal(entries.data());
    for (index_t j = 0; j < order(); ++j) require_normal(T(entries[j]), j);
  }

  /// Where there are several devices, they have the strips in turn.
  static PoolBuffer<T> memory_for(const Layout& layout, Context& context) {
    return {context.factors(), layout.words(), sizeof(T) * std::size_t(layout.ld * block_columns::STRIP)};
  }

  cudaStream_t stream() const { return context_.stream(); }
  Placed<T> here() const { return {dR_.data(), layout_}; }
  MatrixView<const T> R() const { return here().read(); }
  MatrixView<T> R() { return here().R(); }

  Context& context_;
  Layout layout_;
  index_t capacity_;
  PoolBuffer<T> dR_;
  double most_ = 0;  ///< no column of R has a larger norm

 private:
  /// Calls f(whether the triangle that uplo names is transposed, grid, block) for kernels that take or give it.
  template <class F>
  void with_triangles(Uplo uplo, F&& f) const {
    const unsigned tiles = unsigned((order() + convert_tile - 1) / convert_tile);
    const dim3 grid(tiles, tiles), block(convert_tile, convert_rows);
    if (uplo == Uplo::lower) f(std::true_type{}, grid, block);
    else f(std::false_type{}, grid, block);
  }

  /// Factorises A in dA, which may be R: the factor of A = LL', which cuSOLVER finds sooner, is transposed into R.
  /// Where a pivot fails, the upper triangle is factorised to find it: for the lower one cuSOLVER may report the pivot
  /// behind it (seen with CUDA 13.0 on an H200, where the pivot ends a block). Behind the last one there is none, so
  /// that is looked at.
  template <class S>
  index_t factorise(const S* A, Uplo uplo, MatrixView<T> dA) {
    const index_t n = dA.cols;
    send_triangle<S, T>({A, n, n, n}, uplo, Uplo::lower, dA, context_);
    const index_t pivot = factorise(Uplo::lower, dA);
    if (pivot >= 0) {
      send_triangle<S, T>({A, n, n, n}, uplo, Uplo::upper, dA, context_);
      const index_t upper = factorise(Uplo::upper, dA);
      return upper >= 0 ? upper : pivot;
    }
    const unsigned tiles = unsigned((n + convert_tile - 1) / convert_tile);
    lower_to_upper<T><<<dim3(tiles, tiles), dim3(convert_tile, convert_rows), 0, stream()>>>(
        {dA.data, n, n, dA.ld}, R());
    check(cudaGetLastError(), "start the transposition of a factor");
    clear();
    check(cudaStreamSynchronize(stream()), "transpose a factor");
    return -1;
  }

  /// Replaces a triangle of a symmetric matrix by its factor. Returns the failing pivot, or -1.
  index_t factorise(Uplo uplo, MatrixView<T> dA) {
    const index_t n = dA.cols;
    const Cusolver& cusolver = context_.cusolver();
    const index_t words = cusolver.workspace(uplo, n, dA.data, dA.ld);
    const PoolBuffer<T> dwork(context_.pool(), words);
    const PoolBuffer<int> dinfo(context_.pool(), 1);
    cusolver.factorise(uplo, n, dA.data, dA.ld, dwork.data(), words, dinfo.data());
    int info = 0;
    T last = 0;
    check(cudaMemcpyAsync(&info, dinfo.data(), sizeof info, cudaMemcpyDeviceToHost, stream()),
          "fetch the failing pivot");
    check(cudaMemcpyAsync(&last, dA.data + (n - 1) * (dA.ld + 1), sizeof last, cudaMemcpyDeviceToHost, stream()),
          "fetch the last pivot");
    check(cudaStreamSynchronize(stream()), "factorise");
    return info > 0 ? info - 1 : last > 0 ? -1 : n - 1;
  }

  /// Zeroes what Layout wants to be zero below the diagonal, from column `first` on, which begins a strip.
  void clear(index_t first = 0) {
    const index_t order = layout_.room - first;
    if (order == 0) return;
    clear_below<<<unsigned(order), 32, 0, stream()>>>(
        MatrixView<T>{dR_.data() + first * (layout_.ld + 1), order, order, layout_.ld}, block_columns::NB);
    check(cudaGetLastError(), "clear below the diagonal");
  }

  void fetch(const PoolBuffer<double>& from, index_t count, double* out) const {
    check(cudaMemcpyAsync(out, from.data(), sizeof(double) * count, cudaMemcpyDeviceToHost, stream()), "fetch numbers");
  }
};

}  // namespace gpucholmod::cuda
