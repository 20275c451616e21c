#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/check_column.h"
#include "base/threads.h"
#include "base/turned.h"
#include "cuda/batch_prepared.h"
#include "cuda/context.h"
#include "cuda/device_batch.h"
#include "cuda/kernels/batch.cuh"
#include "cuda/transfer.cuh"

namespace gpucholmod::cuda {

/// Holds the memory of a batch of factors of scalars T, and copies the factors into and out of it. Triangles are packed
/// (row_of()), one member after the other.
template <class T>
class BatchStorage : public DeviceBatch {
 public:
  /// Allocates memory for b members of order n, without their numbers. In a Session.
  BatchStorage(Context& context, index_t n, index_t b)
      : context_(context), n_(n), b_(b), orders_(b, n), dR_(context.pool(), words_of(n) * b),
        dbounds_(context.pool(), b) {}
  ~BatchStorage() override {
    if (!context_.forked()) return;
    dR_.abandon();
    dbounds_.abandon();
  }

  index_t order() const override { return n_; }
  std::vector<index_t> orders() const override { return orders_; }
  index_t capacity() const override { return n_; }
  index_t count() const override { return b_; }
  Precision precision() const override { return precision_of<T>; }
  int device() const override { return context_.device(); }
  std::string device_name() const override { return context_.device_name(); }
  double bytes() const override { return double(dR_.bytes()); }

  /// Copies the members R (n x n x b) from host memory, in a Session. orders: of the members, which are the identity
  /// beyond; empty: n. Throws not_finite, overflow and bad_diagonal, of a member.
  void send(const double* R, Uplo uplo, const std::vector<index_t>& orders) {
    if (!orders.empty()) orders_ = orders;
    std::vector<double> bounds(b_);
    for_members(n_, b_, [&](index_t m) {
      const double* const A = R + m * n_ * n_;
      cpu::for_member(m, [&] {
        bounds[m] = require_triangle<T>("R", A, n_, uplo) * std::sqrt(double(n_));
        require_diagonal<T>(Turned<double>(A, n_, uplo).data(), n_);
      });
    });
    put_bounds(bounds);
    in_pieces([&](index_t first, index_t last, T* buffer) {
      for_columns(last - first, threads_for(0), [&](index_t from, index_t to) {
        for (index_t m = from; m < to; ++m)
          pack(Turned<double>(R + (first + m) * n_ * n_, n_, uplo).data(), uplo, buffer + m * words_of(n_));
      }, [] {}, 16);
      check(cudaMemcpyAsync(at(first), buffer, sizeof(T) * words_of(n_) * (last - first), cudaMemcpyHostToDevice,
                            stream()),
            "send factors");
      check(cudaStreamSynchronize(stream()), "send factors");
    });
  }

  void download(Uplo uplo, double* out) const override {
    const Session session(context_);
    in_pieces([&](index_t first, index_t last, T* buffer) {
      fetch(at(first), words_of(n_) * (last - first), buffer);
      for_columns(last - first, threads_for(0), [&](index_t from, index_t to) {
        for (index_t m = from; m < to; ++m) unpack(buffer + m * words_of(n_), uplo, out + (first + m) * n_ * n_, n_);
      }, [] {}, 16);
    });
  }
  void download(index_t member, Uplo uplo, double* out) const override {
    const Session session(context_);
    std::vector<T> words(words_of(n_));
    fetch(at(member), words_of(n_), words.data());
    unpack(words.data(), uplo, out, orders_[member]);
  }

  void diagonals(double* out) const override {
    if (n_ * b_ == 0) return;
    const Session session(context_);
    const PoolBuffer<double> ddiagonals(context_.pool(), n_ * b_);
    diagonals_of_batch<T><<<unsigned((n_ * b_ + 255) / 256), 256, 0, stream()>>>(dR_.data(), n_, n_ * b_,
                                                                                 ddiagonals.data());
    check(cudaGetLastError(), "start to look for diagonals");
    fetch(ddiagonals.data(), n_ * b_, out);
  }

  /// Throws bad_diagonal of the first member that has too small an entry on its diagonal.
  void require_normal_diagonals() const {
    std::vector<double> all(n_ * b_);
    diagonals(all.data());
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = 0; j < orders_[m]; ++j)
        cpu::for_member(m, [&] { require_normal(T(all[j + m * n_]), j); });
  }

 protected:
  cudaStream_t stream() const { return context_.stream(); }
  T* at(index_t member) const { return dR_.data() + member * words_of(n_); }

  /// Copies `count` numbers from the device to `to`, and waits for them.
  template <class S>
  void fetch(const S* from, index_t count, S* to) const {
    check(cudaMemcpyAsync(to, from, sizeof(S) * count, cudaMemcpyDeviceToHost, stream()), "fetch numbers");
    check(cudaStreamSynchronize(stream()), "fetch numbers");
  }

  /// Copies this batch to another of the same order and number of members.
  void copy_to(BatchStorage& other) const {
    const auto copy = [&](const auto& from, auto& to) {
      if (from.bytes() == 0) return;
      check(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream()), "copy a batch");
    };
    copy(dR_, other.dR_);
    copy(dbounds_, other.dbounds_);
    other.orders_ = orders_;
  }
  void swap(BatchStorage& other) {
    dR_.swap(other.dR_);
    dbounds_.swap(other.dbounds_);
    orders_.swap(other.orders_);
    std::swap(n_, other.n_);
  }

  void put_bounds(const std::vector<double>& bounds) {
    check(cudaMemcpyAsync(dbounds_.data(), bounds.data(), dbounds_.bytes(), cudaMemcpyHostToDevice, stream()),
          "send numbers");
    check(cudaStreamSynchronize(stream()), "send numbers");
  }

  /// Calls f(first, last, buffer) for members [first, last), as many at a time as fit into the buffer in page-locked
  /// memory.
  template <class F>
  void in_pieces(F&& f) const {
    if (n_ * b_ == 0) return;
    const index_t each = std::max<index_t>(1, index_t(double(staged_bytes) / (sizeof(T) * double(words_of(n_)))));
    T* const buffer = static_cast<T*>(context_.staging(sizeof(T) * words_of(n_) * std::min(each, b_)));
    for (index_t first = 0; first < b_; first += each) f(first, std::min(first + each, b_), buffer);
  }

  void pack(const double* A, Uplo uplo, T* words) const {
    for (index_t i = 0; i < n_; ++i)
      for (index_t j = i; j < n_; ++j)
        words[row_of(n_, i) + j] = T(uplo == Uplo::upper ? A[i + j * n_] : A[j + i * n_]);
  }
  /// Unpacks the leading `order` rows and columns of a member into A, whose other triangle becomes zero.
  void unpack(const T* words, Uplo uplo, double* A, index_t order) const {
    std::fill_n(A, order * order, 0.0);
    for (index_t i = 0; i < order; ++i)
      for (index_t j = i; j < order; ++j)
        (uplo == Uplo::upper ? A[i + j * order] : A[j + i * order]) = double(words[row_of(n_, i) + j]);
  }

  Context& context_;
  index_t n_, b_;
  std::vector<index_t> orders_;
  PoolBuffer<T> dR_;
  PoolBuffer<double> dbounds_;  ///< bounds of the norms of each member's columns
};

}  // namespace gpucholmod::cuda
