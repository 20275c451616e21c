#include <vector>

#include "base/check_column.h"
#include "base/huge_pages.h"
#include "base/modify_stored.h"
#include "base/turned.h"
#include "cuda/by_cublas.cuh"
#include "cuda/measure.cuh"
#include "cuda/modification.cuh"
#include "cuda/reshaped_storage.cuh"

namespace gpucholmod::cuda {
namespace {

/// Implements the operations of HeldFactor and DeviceFactor that the base classes leave open.
template <class T>
class Factor : public ReshapedStorage<T> {
  using Base = ReshapedStorage<T>;

 public:
  using Base::Base;
  using Base::bytes;
  using Base::device_name;
  using Base::order;

  std::unique_ptr<HeldFactor> copy() const override { return duplicate(); }

  /// Solves by the chain of a modification if there are at most tuning::chain_solves() right-hand sides. Otherwise, and
  /// for those that the chain leaves unsolved, by cuBLAS. If the call throws, some columns of X may be solved already.
  void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const override {
    const index_t n = order();
    if (n == 0 || m == 0) return;
    const Session session(context_);
    const MatrixView<const double> given{B, n, m, n};
    const MatrixView<double> solved{X, n, m, n};
    const index_t first = m <= tuning::chain_solves(n)
                              ? Substitution<T>::solve(context_, layout_, dR_.data(), which, given, solved)
                              : 0;
    if (first == m) return;
    if (X != B) std::copy(given.col(first), given.col(m), solved.col(first));
    solve_by_cublas(R(), most_, which, solved.block(0, first, n, m - first), context_);
    session.finish();
  }

  void inverse(double* out) const override {
    const index_t n = order();
    if (n == 0) return;
    const Session session(context_);
    prefer_huge_pages(out, sizeof(double) * n * n);
    invert_by_cublas(R(), most_, {out, n, n, n}, context_);
  }

  Work modify(const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
              std::atomic<bool>& begun) override {
    const Session session(context_);
    return modify_stored<T>(*this, V, task, made, poll, begun);
  }

  void multiply(TriangularProduct which, double* X, index_t m) const override {
    const index_t n = order(), most = std::min(m, transfer_columns);
    if (n == 0 || m == 0) return;
    const Session session(context_);
    const PoolBuffer<double> dX(context_.pool(), n * most), dY(context_.pool(), n * most);
    for (index_t first = 0; first < m; first += most) {
      const index_t cols = std::min(most, m - first);
      const MatrixView<double> there{dX.data(), n, cols, n}, here{X + first * n, n, cols, n};
      copy_matrix<double>({here.data, n, cols, n}, there, cudaMemcpyHostToDevice, stream());
      const double* const dProduct = cuda::multiply(R(), which, dX.data(), dY.data(), cols, stream());
      copy_matrix<double>({dProduct, n, cols, n}, here, cudaMemcpyDeviceToHost, stream());
    }
    session.finish();
  }

  double solve_seconds(const double* B, index_t m, bool by_cublas, int repeats) const override {
    const index_t n = order();
    if (n == 0 || m == 0) return 0;
    const Session session(context_);
    return by_cublas ? time_solving_by_cublas(R(), B, m, repeats, context_)
                     : time_solving_by_chain(dR_.data(), layout_, B, m, repeats, context_);
  }

  double sweep_seconds(int repeats) const override {
    if (order() == 0) return 0;
    const Session session(context_);
    return time_sweep(R(), repeats, context_);
  }

  double refactor_seconds(int repeats) const override {
    if (order() == 0) return 0;
    const Session session(context_);
    return time_refactoring(R(), repeats, context_);
  }

  // The members that modify_stored() needs of a Storage; in a Session.

  using Computed = double;
  static constexpr bool looks = true;
  static constexpr double largest_plain = block_columns::largest_plain<T>;
  /// Returns the bound of R's column norms. The lower bound never asks for care: kernels report a diagonal too small.
  Range range() const { return {most_, std::numeric_limits<double>::max()}; }
  void set_range(const Range& range) { most_ = range.most; }
  using Base::look;
  template <class F>
  index_t together(F&& f) const {
    return f();
  }
  bool may_fail(const Task& task) const {
    return task.removed == 0 && task.scale < 1 && may_vanish<T>(task.scale * least_of_diagonal());
  }

  /// Runs a modification for modify_stored(). If more than a quarter of the rows lie above the first number of V, the
  /// whole strips of these rows stay as they are. A second factor is used if there is room, as a pass that writes to
  /// another factor is the quickest; in place, replace() then swaps the factors or copies back the part that changed.
  class Sweep : NotCopied {
   public:
    Sweep(const Factor& R, const ColumnsOfV& V, const Task& task, int e, double scale, const Poll& poll, bool look)
        : R_(R), is_update_(task.removed == 0), e_(e), right_(task.right),
          first_(e == 0 && scale == 1 ? rows_that_stay(V, task) : 0), layout_(R.layout_.behind(first_)),
          task_(of_rest(task)),
          modification_(R.context_, layout_, {V.given() + first_, task_.n, task.k, task.n}, e, scale, task_, 0, poll) {
      modification_.multiply(V.scaled());
      if (look) modification_.look();
    }
    bool tests() const { return modification_.passes() == 1; }
    template <class F>
    auto second(F&& f) { return modification_.with_room(R_.bytes(), f); }
    template <class F>
    auto second_if_room(F&& f) {
      in_place_ = true;
      return modification_.if_room(R_.bytes(), f);
    }
    index_t run(const Factor& from, Factor* to, std::atomic<bool>* begun, Work&) {
      T* const out = to ? to->here().behind(first_).data : nullptr;
      if (to && to != &from) {
        if (in_place_) to->missing_ = first_;
        else from.copy_rows(first_, *to);
      }
      const index_t pivot = modification_.run(from.here().behind(first_).data, out, task_.n, begun);
      // A pivot of an update fails only if it is too large.
      if (pivot >= 0 && is_update_) throw overflow(first_ + pivot, first_ + pivot);
      if (pivot < 0) {
        for (index_t s = 0; s < right_.m() && to; ++s) std::copy_n(right_.z.col(s), first_, right_.out.col(s));
        return -1;
      }
      if (!to || to == &R_) return first_ + pivot;
      const auto anew = [&]() -> const T* {
        if (e_ == 0) return R_.here().behind(first_).data;
        R_.divide(e_, *to);
        return out;
      };
      return first_ + modification_.first_pivot(anew, out, pivot);
    }
    /// Returns the largest magnitude in V, which run() has looked at.
    double largest() const { return modification_.largest(); }
    void finish(Work& work) {
      check(cudaStreamSynchronize(R_.stream()), "finish the work on a factor");
      work = modification_.finish(work.pivot);
    }

   private:
    static index_t rows_that_stay(const ColumnsOfV& V, const Task& task) {
      const index_t rows = V.rows_of_zeros<block_columns::STRIP>(task.n, task.k);
      return rows > task.n / 4 ? rows : 0;
    }
    Task of_rest(const Task& task) const {
      Task rest = task;
      rest.n = task.n - first_;
      if (task.right.m() == 0) return rest;
      rest.right.z = task.right.z.block(first_, 0, rest.n, task.right.m());
      rest.right.out = task.right.out.block(first_, 0, rest.n, task.right.m());
      return rest;
    }

    const Factor& R_;
    bool is_update_;
    bool in_place_ = false;  ///< True if the result in the second factor is to replace R
    int e_;
    RightHandSideView right_;
    index_t first_;  ///< the first row that may change, which begins a strip
    Layout layout_;  ///< layout of the rows from first_ on
    Task task_;      ///< task for the rows from first_ on
    Modification<T> modification_;
  };
  Sweep sweep(const ColumnsOfV& V, const Task& task, int e, double scale, const Poll& poll, bool look = false) const {
    return {*this, V, task, e, scale, poll, look};
  }

  std::unique_ptr<Factor> another() const {
    return std::make_unique<Factor>(context_, order(), capacity_, Base::Made::to_be_written);
  }
  std::unique_ptr<Factor> divided(int e) const {
    auto made = to_be_filled();
    divide(e, *made);
    return made;
  }
  std::unique_ptr<Factor> scaled(double by) const {
    if (by == 1 || order() == 0) return duplicate();
    auto made = to_be_filled();
    scale_factor<T>(R(), by, made->R(), Scaled::result, context_);
    made->most_ = by * most_;
    return made;
  }
  void scale_by(double by) { scale_factor<T>(R(), by, R(), Scaled::result, context_); }
  void settle_range() {}
  void replace(std::unique_ptr<Factor> other, std::unique_ptr<HeldFactor>* made, std::atomic<bool>& begun) {
    if (made) {
      *made = std::move(other);
      return;
    }
    begun = begun || other->missing_ > 0;
    most_ = other->most_;
    if (other->missing_ == 0) return dR_.swap(other->dR_);
    const Placed<T> from = other->here().behind(other->missing_), to = here().behind(other->missing_);
    copy_triangle(from, to, to.layout.padded);
    check(cudaStreamSynchronize(stream()), "copy a part of a factor");
  }

 private:
  using Base::R;
  using Base::capacity_;
  using Base::context_;
  using Base::dR_;
  using Base::divide;
  using Base::here;
  using Base::layout_;
  using Base::least_of_diagonal;
  using Base::most_;
  using Base::stream;

  /// Copies the rows above row `first`, which begins a strip, to `to`, with all zeros and ones that Layout wants there.
  void copy_rows(index_t first, Factor& to) const {
    copy_triangle(here(), to.here(), first);
    if (first == 0) return;
    const index_t beside = layout_.padded - first;
    copy_on_device<T>(here().all().block(0, first, first, beside), to.here().all().block(0, first, first, beside),
                      context_);
  }
  /// Copies the first columns, whole strips, to `to`, with all zeros that Layout wants there.
  void copy_triangle(const Placed<T>& from, const Placed<T>& to, index_t columns) const {
    for (index_t first = 0; first < columns; first += transfer_columns) {
      const index_t cols = std::min(transfer_columns, columns - first), rows = first + cols;
      copy_on_device<T>(from.all().block(0, first, rows, cols), to.all().block(0, first, rows, cols), context_);
    }
  }

  std::unique_ptr<Factor> to_be_filled() const { return std::make_unique<Factor>(context_, order(), capacity_); }
  std::unique_ptr<ReshapedStorage<T>> room_for(index_t n, index_t capacity) const override {
    return std::make_unique<Factor>(context_, n, capacity);
  }

  std::unique_ptr<Factor> duplicate() const {
    const Session session(context_);
    auto made = to_be_filled();
    for (index_t first = 0; first < order(); first += transfer_columns) {
      const TrianglePanel panel(first, transfer_columns, order(), Uplo::upper);
      copy_on_device(panel.in(R(), Uplo::upper), panel.in(made->R(), Uplo::upper), context_);
    }
    made->most_ = most_;
    session.finish();
    return made;
  }

  /// The number of rows at the top that were not written, as this factor only holds a result for replace() to copy.
  index_t missing_ = 0;
};

template <class T, class S>
std::unique_ptr<DeviceFactor> upload_as(const S* given, index_t n, Uplo uplo, index_t capacity,
                                        const Devices& devices) {
  Context& context = Context::of(devices.ids);
  const Turned<S> turned(given, n, uplo);
  const S* const R = turned.data();
  const double largest = require_triangle<T>("R", R, n, uplo, threads_to_move(n * n));
  require_diagonal<T>(R, n);
  const Session session(context);
  auto made = std::make_unique<Factor<T>>(context, n, capacity);
  made->send(R, uplo, largest);
  session.finish();
  return made;
}

template <class T, class S>
std::unique_ptr<DeviceFactor> factorise_as(const S* A, index_t n, Uplo uplo, const Devices& devices, index_t& pivot) {
  Context& context = Context::of(devices.ids);
  require_triangle<T>("A", A, n, uplo, threads_to_move(n * n));
  const Session session(context);
  auto made = std::make_unique<Factor<T>>(context, n);
  pivot = made->factorise(A, uplo);
  if (pivot >= 0) made.reset();
  return made;
}

template <class T>
std::unique_ptr<DeviceFactor> read_as(const Source<double>& R, index_t n, index_t capacity, const Devices& devices,
                                      const Poll& poll) {
  Context& context = Context::of(devices.ids);
  const Session session(context);
  auto made = std::make_unique<Factor<T>>(context, n, capacity);
  made->send(R, poll);
  session.finish();
  context.release(std::size_t(tuning::staging_kept));
  return made;
}

}  // namespace

std::unique_ptr<DeviceFactor> upload(const Source<double>& R, index_t n, Precision precision, index_t capacity,
                                     const Devices& devices, const Poll& poll) {
  return precision == Precision::single ? read_as<float>(R, n, capacity, devices, poll)
                                        : read_as<double>(R, n, capacity, devices, poll);
}

template <class S>
std::unique_ptr<DeviceFactor> upload(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity,
                                     const Devices& devices) {
  return precision == Precision::single ? upload_as<float>(R, n, uplo, capacity, devices)
                                        : upload_as<double>(R, n, uplo, capacity, devices);
}

template <class S>
std::unique_ptr<DeviceFactor> factorise(const S* A, index_t n, Uplo uplo, Precision precision, const Devices& devices,
                                        index_t& pivot) {
  return precision == Precision::single ? factorise_as<float>(A, n, uplo, devices, pivot)
                                        : factorise_as<double>(A, n, uplo, devices, pivot);
}

template <class S>
std::unique_ptr<DeviceFactor> take(MatrixView<const S> R, Uplo uplo, index_t capacity, int device) {
  Context& context = Context::of(device);
  const Session session(context);
  auto made = std::make_unique<Factor<S>>(context, R.cols, capacity);
  if (!made->take(R, uplo)) made.reset();
  return made;
}

using Pointer = std::unique_ptr<DeviceFactor>;
template Pointer take(MatrixView<const double>, Uplo, index_t, int);
template Pointer take(MatrixView<const float>, Uplo, index_t, int);
template Pointer upload(const double*, index_t, Uplo, Precision, index_t, const Devices&);
template Pointer upload(const float*, index_t, Uplo, Precision, index_t, const Devices&);
template Pointer factorise(const double*, index_t, Uplo, Precision, const Devices&, index_t&);
template Pointer factorise(const float*, index_t, Uplo, Precision, const Devices&, index_t&);

}  // namespace gpucholmod::cuda
