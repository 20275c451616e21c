#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/batch_orders.h"
#include "base/check_column.h"
#include "cpu/batch_columns.h"
#include "cuda/batch_prepared.h"
#include "cuda/context.h"
#include "cuda/kernels/batch_reshape.cuh"
#include "cuda/transfer.cuh"

/// Rows that are inserted into, or removed from, members of a batch: the launches, and the work of the host.
namespace gpucholmod::cuda {

/// Returns the number of threads of a thread block: one for each of n columns, in whole warps.
inline unsigned threads_of_rows(index_t n) { return unsigned(std::max<index_t>(1, (n + WARP - 1) / WARP) * WARP); }

/// Throws the error of the first member whose columns of X cannot be inserted. orders: of the members; n: of the
/// triangles.
template <class T>
void require_insertion(const BatchInsertion& what, const std::vector<index_t>& orders, index_t n) {
  const index_t ld = n + what.p;
  for_members(n, index_t(orders.size()), [&](index_t m) {
    const MatrixView<const double> X{what.X + (what.common_X ? 0 : m * ld * what.p), orders[m] + what.p, what.p, ld};
    cpu::for_member(m, [&] { require_inserted<T>(X, what.place(m, orders[m])); });
  });
}

/// Queues an insertion into members with the given orders, in triangles of order n, on the stream of a context, in a
/// Session.
template <class T>
class QueuedInsertion : NotCopied {
 public:
  QueuedInsertion(Context& context, const BatchInsertion& what, const std::vector<index_t>& orders, index_t n)
      : context_(context), what_(what), orders_(orders), n_(n), b_(index_t(orders.size())),
        words_((n + what.p) * what.p * (what.common_X ? 1 : b_)), dX_(context.pool(), words_),
        dC_(context.pool(), n * what.p * b_), dcorner_(context.pool(), what.p * what.p * b_),
        drows_(context.pool(), b_), dfound_(context.pool(), b_), dtold_(context.pool(), 2),
        dz_(context.pool(), n * m() * b_), db_(context.pool(), what.p * m() * b_),
        drest_(context.pool(), what.p * m() * b_), dmade_z_(context.pool(), (n + what.p) * m() * b_) {}

  /// Returns the columns that the caller multiplies by R'^-1, n x p of each member.
  double* columns() const { return dC_.data(); }

  /// Sends X and right-hand sides, and queues the kernel that parts X into columns() and the new rows of X.
  void send() {
    rows_.resize(b_);
    for (index_t m = 0; m < b_; ++m) rows_[m] = {int(orders_[m]), int(what_.place(m, orders_[m]))};
    check(cudaMemcpyAsync(drows_.data(), rows_.data(), drows_.bytes(), cudaMemcpyHostToDevice, stream()),
          "send places");
    check(cudaMemsetAsync(dtold_.data(), 0, dtold_.bytes(), stream()), "clear numbers");
    send_staged(what_.X, words_, dX_.data(), context_);
    send_sides(what_.sides.first.z, dz_);
    send_sides(what_.sides.first.Y, db_);
    part_columns_of_batch<<<unsigned(b_), threads_of_rows(std::min<index_t>(n_ + what_.p, 256)), 0, stream()>>>(of());
    check(cudaGetLastError(), "start to part columns");
  }

  /// Queues the kernels that put the members R with their new rows into `out`, of order made_n, and their bounds into
  /// `after`. To be called when columns() has been multiplied by R'^-1.
  void put(const T* R, const double* bounds, T* out, double* after, index_t made_n) {
    BatchRows<T> rows = of();
    rows.R = Numbers<T>::of(R);
    rows.out = Numbers<T>::of(out);
    rows.bounds = bounds;
    rows.after = after;
    rows.made_n = int(made_n);
    out_ = out;
    made_n_ = made_n;
    if (!factorised_) {
      const unsigned quarters = unsigned((b_ + warps_of_block - 1) / warps_of_block);
      factorise_corners<<<quarters, dim3(WARP, warps_of_block), 0, stream()>>>(rows, b_);
      check(cudaGetLastError(), "start to factorise corners");
    }
    factorised_ = true;
    const unsigned threads = made_n <= 2 * WARP ? 2 * WARP : 256;
    append_rows_of_batch<<<unsigned(b_), threads, 0, stream()>>>(rows);
    check(cudaGetLastError(), "start to append rows");
    if (all_at_the_end()) return;
    place_rows_of_batch<<<unsigned(b_), threads_of_rows(made_n), 0, stream()>>>(rows);
    check(cudaGetLastError(), "start to place rows");
  }

  /// Fetches right-hand sides into the caller's arrays.
  void fetch_sides() const {
    if (m() == 0) return;
    fetch(dmade_z_.data(), (n_ + what_.p) * m() * b_, what_.sides.first.out);
    fetch(drest_.data(), what_.p * m() * b_, what_.sides.first.rest);
  }

  /// Waits for the device, and sets the pivots of members that have failed. Throws not_finite, overflow and
  /// bad_diagonal.
  void read(std::vector<index_t>& pivots) const {
    int told[2];
    fetch(dtold_.data(), 2, told);
    if (told[1]) require_insertion<T>(what_, orders_, n_);
    if (!told[0]) return;
    std::vector<NewDiagonal> found(b_);
    fetch(dfound_.data(), b_, found.data());
    for (index_t m = 0; m < b_; ++m) {
      if (found[m] == NewDiagonal::vanished) throw_vanished(m);
      if (found[m] == NewDiagonal::not_positive) pivots[m] = pivot_of(m);
    }
  }

 private:
  cudaStream_t stream() const { return context_.stream(); }
  index_t m() const { return what_.sides.m; }
  /// Waits until the page-locked memory is free, and sends numbers through that memory.
  void send_sides(const double* from, const PoolBuffer<double>& to) const {
    if (m() == 0) return;
    check(cudaStreamSynchronize(stream()), "wait for right-hand sides");
    send_staged(from, index_t(to.bytes() / sizeof(double)), to.data(), context_);
  }
  BatchRows<T> of() const {
    BatchRows<T> rows{};
    rows.n = int(n_);
    rows.p = int(what_.p);
    rows.rows = drows_.data();
    rows.X = dX_.data();
    rows.X_stride = what_.common_X ? 0 : (n_ + what_.p) * what_.p;
    rows.C = dC_.data();
    rows.corner = dcorner_.data();
    rows.found = dfound_.data();
    rows.any = dtold_.data();
    rows.needs_look = dtold_.data() + 1;
    rows.sides = int(m());
    rows.z = dz_.data();
    rows.b = db_.data();
    rows.rest = drest_.data();
    rows.made_z = dmade_z_.data();
    return rows;
  }
  template <class S>
  void fetch(const S* from, index_t count, S* to) const {
    check(cudaMemcpyAsync(to, from, sizeof(S) * count, cudaMemcpyDeviceToHost, stream()), "fetch numbers");
    check(cudaStreamSynchronize(stream()), "fetch numbers");
  }
  bool all_at_the_end() const {
    for (index_t m = 0; m < b_; ++m)
      if (what_.place(m, orders_[m]) != orders_[m]) return false;
    return true;
  }

  void throw_vanished(index_t m) const {
    std::vector<double> corner(what_.p * what_.p);
    fetch(dcorner_.data() + m * what_.p * what_.p, what_.p * what_.p, corner.data());
    cpu::for_member(m, [&] {
      for (index_t q = 0; q < what_.p; ++q) require_normal(T(corner[q + q * what_.p]), what_.place(m, orders_[m]) + q);
      std::vector<T> words(words_of(made_n_));
      fetch(out_ + m * words_of(made_n_), words_of(made_n_), words.data());
      for (index_t j = 0; j < orders_[m] + what_.p; ++j) require_normal(words[row_of(made_n_, j) + j], j);
    });
  }
  index_t pivot_of(index_t m) const {
    const index_t n = orders_[m], p = what_.p, ld = n_ + p, at = what_.place(m, n);
    std::vector<double> all(n_ * p), C;
    fetch(dC_.data() + m * n_ * p, n_ * p, all.data());
    for (index_t q = 0; q < p; ++q) C.insert(C.end(), all.begin() + q * n_, all.begin() + q * n_ + n);
    const double* const X = what_.X + (what_.common_X ? 0 : m * ld * p);
    const index_t found = pivot_of_insertion(C.data(), n, at, X + at, ld, p);
    return found >= 0 ? found : n + p - 1;
  }

  Context& context_;
  const BatchInsertion& what_;
  const std::vector<index_t>& orders_;
  index_t n_, b_, words_;
  PoolBuffer<double> dX_, dC_, dcorner_;
  std::vector<MemberRows> rows_;
  PoolBuffer<MemberRows> drows_;
  PoolBuffer<NewDiagonal> dfound_;
  PoolBuffer<int> dtold_;  ///< BatchRows::any and needs_look
  PoolBuffer<double> dz_, db_, drest_, dmade_z_;  ///< fields z, b, rest and made_z of BatchRows
  bool factorised_ = false;
  const T* out_ = nullptr;  ///< `out` of the last call of put()
  index_t made_n_ = 0;
};

/// Removes rows from the members R, which have the given orders, in triangles of order n, and puts the rest into `out`.
/// V (n - p x p of each) <- the columns that are to be added to `out` then. Waits for the device.
template <class T>
void remove_from_members(Context& context, const BatchRemoval& what, const std::vector<index_t>& orders, index_t n,
                         const T* R, T* out, double* V) {
  const std::vector<int> of_members(orders.begin(), orders.end()), gone(what.gone.begin(), what.gone.end());
  const PoolBuffer<int> dorders(context.pool(), index_t(orders.size())), dgone(context.pool(), index_t(gone.size()));
  const auto send = [&](const std::vector<int>& from, const PoolBuffer<int>& to) {
    check(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyHostToDevice, context.stream()),
          "send places");
  };
  send(of_members, dorders);
  send(gone, dgone);
  BatchRowsGone<T> rows{int(n), int(what.p), Numbers<T>::of(R), Numbers<T>::of(out), dorders.data(), dgone.data(),
                        index_t(gone.size()) == what.p ? 0 : what.p, V};
  remove_rows_of_batch<<<unsigned(orders.size()), n <= 2 * WARP ? 2 * WARP : 256, 0, context.stream()>>>(rows);
  check(cudaGetLastError(), "start to remove rows");
  check(cudaStreamSynchronize(context.stream()), "remove rows");
}

}  // namespace gpucholmod::cuda
