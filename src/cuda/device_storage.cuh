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

/// Holds the memory of a factor of scalars T, and copies factors into and out of it. Work is queued in the stream of
/// the context; every operation of DeviceFactor waits until its work is finished.
template <class T>
class DeviceStorage : public DeviceFactor {
 public:
  /// The contents of a new factor. to_be_filled: the identity behind row and column n, and the zeros that Layout wants.
  /// to_be_written: nothing in the strips that hold the factor, as a modification is going to write them.
  enum class Made { to_be_filled, to_be_written };

  /// Allocates memory for a factor of order n, whose numbers are still missing. In a Session.
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

  /// Copies the factor from a checked triangle in host memory, whose largest entry is `largest`.
  template <class S>
  void send(const S* A, Uplo uplo, double largest) {
    send_triangle<S, T>({A, order(), order(), order()}, uplo, Uplo::upper, R(), context_);
    clear();
    most_ = largest * std::sqrt(double(order()));
  }

  /// Copies the factor from a triangle in the memory of this GPU. Returns false if an entry is not finite, or an entry
  /// of the diagonal is not a normal positive number; this object then holds no factor.
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

  /// Copies the factor from an upper triangle that is read once, panel by panel, and checks every column. Throws
  /// not_finite, overflow, bad_diagonal, and what R and `poll` throw.
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

  /// Computes the factor of a symmetric matrix, of which a checked triangle is in host memory. Returns the failing
  /// pivot, or -1. If the factor is on several devices, cuSOLVER, which reads most of a matrix many times, works in
  /// memory of the first device alone, if that has room.
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
  /// Returns the squared norms of all columns.
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

  /// Sets most_ from the largest norm of a column, if the squares of the norms are in range.
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
  /// Throws bad_diagonal if an entry of the diagonal of a result is not a normal number.
  void require_normal_diagonal() const {
    std::vector<double> entries(order());
    diagonal(entries.data());
    for (index_t j = 0; j < order(); ++j) require_normal(T(entries[j]), j);
  }

  /// Allocates the memory of a factor. If there are several devices, they hold its strips in turn.
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
  double most_ = 0;  ///< upper bound of the norms of R's columns

 private:
  /// Calls f(transposed, grid, block) for kernels that take or give the triangle that uplo names. `transposed` is
  /// std::true_type for the lower triangle.
  template <class F>
  void with_triangles(Uplo uplo, F&& f) const {
    const unsigned tiles = unsigned((order() + convert_tile - 1) / convert_tile);
    const dim3 grid(tiles, tiles), block(convert_tile, convert_rows);
    if (uplo == Uplo::lower) f(std::true_type{}, grid, block);
    else f(std::false_type{}, grid, block);
  }

  /// Factorises A = LL' in dA, which may be R, and transposes L into R, as cuSOLVER finds L sooner. If a pivot fails,
  /// factorises the upper triangle to find the pivot: for the lower triangle cuSOLVER may report the next pivot (seen
  /// with CUDA 13.0 on an H200, if the failing pivot ends a block).
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

  /// Replaces a triangle of a symmetric matrix by its factor. Returns the failing pivot, or -1. Tests the last pivot
  /// itself, as no pivot follows that cuSOLVER could report in its place.
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

  /// Zeroes the entries below the diagonal that Layout wants to be zero, from column `first` on, which begins a strip.
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
