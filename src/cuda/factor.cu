#include <vector>

#include "base/check_column.h"
#include "base/huge_pages.h"
#include "base/modify_stored.h"
#include "base/turned.h"
#include "cuda/by_cublas.cuh"
#include "cuda/measure.cuh"
#include "cuda/modification.cuh"
#include "cuda/device_storage.cuh"
#include "cuda/reshape.cuh"

namespace gpucholmod::cuda {
namespace {

/// What is done with a factor, and to it.
template <class T>
class Factor : public DeviceStorage<T> {
  using Base = DeviceStorage<T>;

 public:
  using Base::Base;
  using Base::bytes;
  using Base::device_name;
  using Base::order;

  std::unique_ptr<HeldFactor> copy() const override { return duplicate(); }

  /// Few right-hand sides by the chain of a modification, more, or where that refuses, by cuBLAS. Where it throws,
  /// columns of X may be solved already.
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

  double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                std::atomic<bool>& begun) override {
    double taken = 0;
    const int e = exponent<double>(0);
    reshape({order() - index_t(gone.size()), 0, e}, task, made, poll, begun, [&](auto& change) {
      taken = std::scalbn(change.remove(gone), 2 * e);
      return index_t(-1);
    });
    return taken;
  }

  index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                 const Poll& poll, std::atomic<bool>& begun) override {
    const index_t n = order();
    const Session session(context_);  // a forked process is not to ask the device, as way_of() does
    const double most = require_inserted<T>(X, n, at, p);
    const int e = exponent<T>(most);  // X is computed with in T
    // Whether it can be done is found out beforehand by one pass alone, and not to the last bit.
    const bool several = p > way_of<T>(std::max<index_t>(p, 1), p, Layout(n + p, capacity_).strips(), true, task,
                                       context_.device_group())
                                 .columns;
    const By by = at == n || p == 0 ? By::itself : several ? By::second : By::second_if_room;
    return reshape({n + p, most, e, by}, task, made, poll, begun, [&](auto& change) {
      if (e == 0) return change.insert(at, X, p);
      const ScaledRows scaled(X, n + p, at, p, task.right, e);
      return change.with(scaled.of(task)).insert(at, scaled.X(), p);
    });
  }

  void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
             std::atomic<bool>& begun) override {
    const bool vanishes = from < to && may_vanish_behind(from, to);
    reshape({order(), 0, 0, vanishes ? By::second : By::itself, vanishes}, task, made, poll, begun, [&](auto& change) {
      change.shift(from, to);
      return index_t(-1);
    });
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

  // What modify_stored() needs, in a Session.

  using Computed = double;
  static constexpr bool looks = true;
  static constexpr double largest_plain = block_columns::largest_plain<T>;
  /// An entry that is too small is seen where it is written.
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

  /// A second factor is wanted wherever there is room, as nothing is quicker than to write to another one.
  class Sweep : NotCopied {
   public:
    Sweep(const Factor& R, const ColumnsOfV& V, const Task& task, int e, double scale, const Poll& poll, bool look)
        : R_(R), is_update_(task.removed == 0), e_(e),
          modification_(R.context_, R.layout_, {V.given(), task.n, task.k, task.n}, e, scale, task, 0, look, poll) {
      modification_.multiply(V.scaled());
    }
    bool tests() const { return modification_.passes() == 1; }
    template <class F>
    auto second(F&& f) { return modification_.with_room(R_.bytes(), f); }
    template <class F>
    auto second_if_room(F&& f) { return modification_.if_room(R_.bytes(), f); }
    index_t run(const Factor& from, Factor* to, std::atomic<bool>* begun, Work&) {
      T* const out = to ? to->dR_.data() : nullptr;
      const index_t pivot = modification_.run(from.dR_.data(), out, R_.order(), begun);
      // No pivot of an update can fail but one that is too large.
      if (pivot >= 0 && is_update_) throw overflow(pivot, pivot);
      if (pivot < 0 || !to || to == &R_) return pivot;
      const auto anew = [&]() -> const T* {
        if (e_ == 0) return R_.dR_.data();
        R_.divide(e_, *to);
        return out;
      };
      return modification_.first_pivot(anew, out, pivot);
    }
    /// Returns the largest magnitude in V, which run() has looked at.
    double largest() const { return modification_.largest(); }
    void finish(Work& work) {
      check(cudaStreamSynchronize(R_.stream()), "finish the work on a factor");
      work = modification_.finish(work.pivot);
    }

   private:
    const Factor& R_;
    bool is_update_;
    int e_;
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
  void multiply(double by) { scale_factor<T>(R(), by, R(), Scaled::result, context_); }
  void settle_range() {}
  void replace(std::unique_ptr<Factor> other, std::unique_ptr<HeldFactor>* made) {
    if (made) {
      *made = std::move(other);
      return;
    }
    dR_.swap(other->dR_);
    most_ = other->most_;
  }

 private:
  std::unique_ptr<Factor> to_be_filled() const { return std::make_unique<Factor>(context_, order(), capacity_); }

  using Base::R;
  using Base::capacity_;
  using Base::context_;
  using Base::dR_;
  using Base::here;
  using Base::layout_;
  using Base::least_of_diagonal;
  using Base::most_;
  using Base::require_normal_diagonal;
  using Base::stream;

  /// With numbers divided by 2 to this power, those of R and of columns of no larger norm than `most` can be computed
  /// with in scalars C.
  template <class C>
  int exponent(double most) {
    const auto found = [&] {
      return scale_exponent<C>(C(std::min(std::max(most_, most), double(std::numeric_limits<C>::max()))));
    };
    const int e = found();
    if (e == 0) return e;
    look();
    return found();
  }

  /// Is true if the entry of the diagonal of a row and column that move from `from` to `to`, behind it, may become too
  /// small: it is the inverse of the norm of these rows of R'^-1 e_from.
  bool may_vanish_behind(index_t from, index_t to) const {
    std::vector<double> y(order());
    y[from] = 1;
    HeldFactor::solve(TriangularSolve::forward, y.data(), 1);
    return !(1 / std::sqrt(sum_of_squares(y.data() + from, to - from + 1)) >
             0x1p40 * double(std::numeric_limits<T>::min()));
  }

  /// to <- R / 2^e, to be computed with.
  void divide(int e, Factor& to) const {
    scale_factor<T>(R(), std::scalbn(1.0, -e), to.R(), Scaled::to_compute, context_);
  }

  /// Where a change in place is done: in the factor itself; in a second one, which takes its place, where there is
  /// memory for it, or in any case.
  enum class By { itself, second_if_room, second };

  /// A second factor of order m, for a change; null where there is no memory for one, and it is not `needed`. Beyond
  /// the capacity there is half as much room again, where that can be had.
  std::unique_ptr<Factor> second_factor(index_t m, bool grows, bool needed, const Task& task) const {
    std::vector<index_t> rooms;
    if (grows && m > capacity_) rooms.push_back(std::max(m, capacity_ + capacity_ / 2));
    rooms.push_back(std::max(m, m <= capacity_ ? capacity_ : 0));
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      const bool last = needed && i + 1 == rooms.size();
      const double bytes = double(sizeof(T)) * double(Layout(m, rooms[i]).words());
      try {
        if (bytes > task.device_memory)
          throw out_of_memory("'device_memory' allows less device memory than this takes", bytes, task.device_memory);
        return std::make_unique<Factor>(context_, m, rooms[i]);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory || last) throw;
      }
    }
    return nullptr;
  }

  /// A change of rows and columns.
  struct Change {
    index_t order;          ///< afterwards
    double most;            ///< the largest norm of a column that is inserted
    int e;                  ///< numbers are divided by 2^e
    By by = By::itself;
    bool vanishes = false;  ///< an entry of the diagonal may become too small
  };
  /// Calls f(change) with a Reshaping: in place, where `begun` is told, or, for a new factor, if there is no room, and
  /// as `by` says, into another factor. Returns what f does: if that is a failing pivot, nothing has changed, unless
  /// `begun` is true.
  template <class F>
  index_t reshape(const Change& what, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                  std::atomic<bool>& begun, F&& f) {
    const auto [m, most, e, by, vanishes] = what;
    const Session session(context_);
    const bool itself = !made && e == 0 && by != By::second && m <= capacity_;
    std::unique_ptr<Factor> other, scaled;
    if (!itself || by == By::second_if_room) other = second_factor(m, !made, !itself, task);
    if (e != 0 && order() > 0) scaled = divided(e);
    Placed<T> out = other ? other->here() : here();
    if (!other) out.layout = Layout(m, capacity_);
    std::atomic<bool> in_other{false};
    const double extra_bytes = (other ? other->bytes() : 0) + (scaled ? scaled->bytes() : 0);
    Reshaping<T> change(context_, scaled ? scaled->here() : here(), out, task, extra_bytes, poll,
                        other ? in_other : begun);
    const index_t pivot = f(change);
    session.finish();
    if (pivot >= 0) return pivot;
    if (e != 0 && m > 0) scale_factor<T>(other->R(), std::scalbn(1.0, e), other->R(), Scaled::result, context_);
    (other ? *other : *this).most_ = std::max(most_, most);
    session.finish();
    if (other && vanishes) other->require_normal_diagonal();
    if (made) {
      *made = std::move(other);
      return -1;
    }
    if (other) {
      dR_.swap(other->dR_);
      capacity_ = other->capacity_;
      most_ = other->most_;
    }
    layout_ = out.layout;
    return -1;
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

using Pointer = std::unique_ptr<DeviceFactor>;
template Pointer upload(const double*, index_t, Uplo, Precision, index_t, const Devices&);
template Pointer upload(const float*, index_t, Uplo, Precision, index_t, const Devices&);
template Pointer factorise(const double*, index_t, Uplo, Precision, const Devices&, index_t&);
template Pointer factorise(const float*, index_t, Uplo, Precision, const Devices&, index_t&);

}  // namespace gpucholmod::cuda
