#include "cpu/host_factor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check_column.h"
#include "base/huge_pages.h"
#include "base/modify_stored.h"
#include "base/range.h"
#include "base/reshaped_sides.h"
#include "base/sizes.h"
#include "base/threads.h"
#include "base/turned.h"
#include "cpu/blocked.h"
#include "cpu/memory_beside.h"
#include "cpu/multiply.h"
#include "cpu/reshape.h"
#include "cpu/substitute.h"

namespace gpucholmod::cpu {
namespace {

/// Holds an upper factor, column-major; the entries below the diagonal are never read.
template <class T>
class HostFactor : public HeldFactor {
 public:
  HostFactor(index_t n, index_t room, Allocate allocate, int copying_threads)
      : n_(n), room_(room), copying_threads_(copying_threads), allocate_(std::move(allocate)),
        memory_(room > 0 ? allocate_(bytes_of(room, room, sizeof(T))) : nullptr) {
    prefer_huge_pages(data(), sizeof(T) * room * room);
  }

  /// Wraps the caller's factor R, which is only read.
  HostFactor(std::shared_ptr<const Turned<T>> R, index_t n, Allocate allocate, int copying_threads)
      : n_(n), room_(n), own_(false), copying_threads_(copying_threads), allocate_(std::move(allocate)),
        memory_(R, const_cast<T*>(R->data())) {
    check(R->data(), Uplo::upper);
  }

  /// Wraps the caller's factor R, which is modified in place. Throws not_finite and bad_diagonal.
  HostFactor(T* R, index_t n, index_t ld, Allocate allocate, int copying_threads)
      : n_(n), room_(ld), own_(false), copying_threads_(copying_threads), allocate_(std::move(allocate)),
        memory_(R, [](void*) {}) {
    look();
    for (index_t j = 0; j < n; ++j) {
      require_positive(view()(j, j), j);
      require_not_vanished(view()(j, j), view()(j, j), j);
    }
  }

  template <class S>
  void load(const S* R, Uplo uplo) {
    check(R, uplo);
    load_factor<S, T>({R, n_, n_, n_}, uplo, 0, own(), copying_threads());
  }

  index_t order() const override { return n_; }
  index_t capacity() const override { return room_; }
  bool on_gpu() const override { return false; }
  Precision precision() const override { return precision_of<T>; }
  double bytes() const override { return double(sizeof(T)) * double(room_) * double(room_); }

  std::unique_ptr<HeldFactor> copy() const override { return scaled(1); }
  void download(Uplo uplo, double* out) const override {
    prefer_huge_pages(out, sizeof(double) * n_ * n_);
    store_factor(view(), uplo, 1, MatrixView<double>{out, n_, n_, n_}, copying_threads());
  }
  void diagonal(double* out) const override {
    for (index_t j = 0; j < n_; ++j) out[j] = double(view()(j, j));
  }
  void set_diagonal(const std::vector<index_t>& rows, double value) override {
    for (const index_t j : rows) own()(j, j) = T(value);
    range_.least = std::min(range_.least, rows.empty() ? range_.least : value);
  }
  double trace() const override {
    double sum = 0;
    for (index_t j = 0; j < n_; ++j) sum += squares_of_column(view().col(j), j + 1);
    return sum;
  }

  void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const override {
    if (X != B) std::copy_n(B, n_ * m, X);
    if (which != TriangularSolve::back) substitute(view(), true, {X, n_, m, n_});
    if (which != TriangularSolve::forward) substitute(view(), false, {X, n_, m, n_});
  }
  void multiply(TriangularProduct which, double* X, index_t m) const override {
    if (which != TriangularProduct::transposed) cpu::multiply(view(), false, {X, n_, m, n_});
    if (which != TriangularProduct::plain) cpu::multiply(view(), true, {X, n_, m, n_});
  }
  void inverse(double* out) const override {
    if (n_ == 0) return;
    download(Uplo::upper, out);
    const MatrixView<double> inverse{out, n_, n_, n_};
    blas::potri(inverse);
    for (index_t j = 0; j < n_; ++j)
      for (index_t i = 0; i < j; ++i) inverse(j, i) = inverse(i, j);
  }

  Work modify(const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
              std::atomic<bool>& begun) override {
    return modify_stored<T>(*this, V, task, made, poll, begun);
  }

  double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                std::atomic<bool>& begun) override {
    double taken = 0;
    for (const index_t j : gone) taken += squares_of_column(view().col(j), j + 1);
    reshape({n_ - index_t(gone.size())}, made, begun,
            [&](MatrixView<const T> from, MatrixView<T> to, int, std::atomic<bool>& changes) {
              cpu::remove(from, gone, to, task, poll, changes);
              return index_t(-1);
            });
    return taken;
  }

  index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                 const Poll& poll, std::atomic<bool>& begun) override {
    const double largest = require_inserted<T>({X, n_ + p, p, n_ + p}, at);
    const Change change{n_ + p, largest, at < n_ ? share_left<T>(p) : 1, at, at + p};
    return reshape(change, made, begun,
                   [&](MatrixView<const T> from, MatrixView<T> to, int e, std::atomic<bool>& changes) {
                     return cpu::insert(from, at, {X, n_ + p, p, n_ + p}, e, to, task, poll, changes);
                   });
  }

  void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
             std::atomic<bool>& begun) override {
    const Change change{n_, 0, 1, std::min(from, to), std::max(from, to) + 1};
    reshape(change, made, begun, [&](MatrixView<const T> R, MatrixView<T> out, int, std::atomic<bool>& changes) {
      cpu::shift(R, from, to, out, task, poll, changes);
      return index_t(-1);
    });
  }

  // The members that modify_stored() requires.
  using Computed = T;
  static constexpr bool looks = false;
  std::string device_name() const { return ""; }
  const Range& range() const { return range_; }
  void set_range(const Range& range) { range_ = range; }
  bool may_fail(const Task&) const { return false; }
  void look() {
    double most = 0;
    for (index_t j = 0; j < n_; ++j) most = std::max(most, double(largest_of("R", view().col(j), j + 1, 0, j)));
    range_ = {most * std::sqrt(double(n_)), least_of(0, n_)};
  }
  template <class F>
  index_t together(F&& f) const {
    return f();
  }

  class Sweep : NotCopied {
   public:
    Sweep(HostFactor& R, const double* V, const Task& task, int e, double scale, const Poll& poll)
        : R_(R), task_(task), scale_(scale), poll_(poll) {
      const index_t n = task.n, k = task.k;
      if constexpr (std::is_same_v<T, double>) V_ = {V, n, k, n};
      if (std::is_same_v<T, double> && e == 0) return;
      divided_.resize(n * k);
      const double down = std::scalbn(1.0, -e);
      for (index_t i = 0; i < n * k; ++i) divided_[i] = T(V[i] * down);
      V_ = {divided_.data(), n, k, n};
    }
    bool tests() const { return true; }
    template <class F>
    auto second(F&& f) const { return f(); }
    template <class F>
    std::unique_ptr<HostFactor> second_if_room(F&&) const {
      return task_.removed > 0 && task_.keep_intact ? R_.beside() : nullptr;
    }
    void finish(Work&) const {}
    index_t run(const HostFactor& R, HostFactor* to, std::atomic<bool>* begun, Work&) const {
      BlockedSweep<T> sweep(V_, task_.removed, T(scale_), Uplo::upper, task_.instructions, task_.threads);
      if (to) sweep.reserve_to_carry(task_.right.m());
      if (begun) *begun = true;
      const index_t n = V_.rows;
      return sweep.run(R.view(), to ? to->own() : MatrixView<T>{nullptr, n, n, n}, false, &task_.right, poll_);
    }

   private:
    HostFactor& R_;
    const Task& task_;
    double scale_;
    const Poll& poll_;
    std::vector<T> divided_;
    MatrixView<const T> V_;
  };
  Sweep sweep(const double* V, const Task& task, int e, double scale, const Poll& poll) {
    return {*this, V, task, e, scale, poll};
  }

  std::unique_ptr<HostFactor> another() const { return another(n_, room_); }
  std::unique_ptr<HostFactor> divided(int e) const {
    auto made = another();
    load_factor(view(), Uplo::upper, e, made->own(), copying_threads());
    return made;
  }
  std::unique_ptr<HostFactor> scaled(double by) const {
    auto made = another();
    store_factor(view(), Uplo::upper, by, made->own(), copying_threads());
    made->range_ = {by * range_.most, by * range_.least};
    return made;
  }
  void scale_by(double by) { store_factor(view(), Uplo::upper, by, own()); }
  /// Throws bad_diagonal.
  void settle_range() {
    for (index_t j = 0; j < n_; ++j) require_normal(view()(j, j), j);
    look();
  }
  void replace(std::unique_ptr<HostFactor> other, std::unique_ptr<HeldFactor>* made, std::atomic<bool>&) {
    if (made) *made = std::move(other);
    else take(*other);
  }

 private:
  /// Returns a second factor for a downdate in place, or null.
  std::unique_ptr<HostFactor> beside() {
    const auto memory = own_ ? beside_.find(data(), bytes_of(room_, room_, sizeof(T)), allocate_) : nullptr;
    if (!memory) return nullptr;
    auto other = another(n_, 0);
    other->memory_ = memory;
    other->room_ = room_;
    return other;
  }
  template <class S>
  void check(const S* R, Uplo uplo) {
    range_ = {require_triangle<T>("R", R, n_, uplo) * std::sqrt(double(n_)), require_diagonal<T>(R, n_)};
  }
  double least_of(index_t first, index_t last) const {
    double least = std::numeric_limits<double>::infinity();
    for (index_t j = first; j < last; ++j) least = std::min(least, double(view()(j, j)));
    return least;
  }
  /// Describes a change of rows and columns.
  struct Change {
    index_t order;                ///< order after the change
    double most = 0;              ///< largest norm of an inserted column
    double share = 1;             ///< least share of an old entry of the diagonal that remains
    index_t first = 0, last = 0;  ///< rows [first, last) after the change, whose entries of the diagonal are new
  };
  /// Calls f(R, out, e, changes) with numbers divided by 2^e, in place (`changes` is then `begun`) or into another
  /// factor. Returns what f returns. If f returns a failing pivot, this factor has not changed.
  template <class F>
  index_t reshape(const Change& change, std::unique_ptr<HeldFactor>* made, std::atomic<bool>& begun, F&& f) {
    const index_t m = change.order;
    Range range;
    int e = 0;
    const auto near_an_end = [&] {
      range = {std::max(range_.most, change.most), range_.least * change.share};
      e = exponent_below<T>(range.most);
      return e != 0 || (change.share < 1 && may_vanish<T>(range.least));
    };
    bool careful = near_an_end();
    if (careful) {
      look();
      careful = near_an_end();
    }
    const auto settle = [&](HostFactor& changed) {
      changed.range_ = range;
      for (index_t j = change.first; j < change.last; ++j) require_normal(changed.view()(j, j), j);
      changed.range_.least = std::min(range.least, changed.least_of(change.first, change.last));
    };
    if (!made && !careful && m <= room_) {
      const index_t pivot = f(view(), MatrixView<T>{data(), m, m, room_}, 0, begun);
      if (pivot >= 0) return pivot;
      n_ = m;
      settle(*this);
      return -1;
    }
    const index_t room = own_ && m <= room_ ? room_ : made || !own_ ? m : std::max(m, room_ + room_ / 2);
    auto other = another(m, std::max(room, e != 0 ? n_ : 0));
    MatrixView<const T> from = view();
    if (e != 0) {
      const MatrixView<T> scaled{other->data(), n_, n_, other->room_};
      load_factor(view(), Uplo::upper, e, scaled);
      from = {scaled.data, n_, n_, other->room_};
    }
    std::atomic<bool> elsewhere{false};
    if (const index_t pivot = f(from, other->own(), e, elsewhere); pivot >= 0) return pivot;
    if (e != 0) store_factor(other->view(), Uplo::upper, std::scalbn(1.0, e), other->own());
    settle(*other);
    if (careful) other->settle_range();
    replace(std::move(other), made, elsewhere);
    return -1;
  }

  /// Returns the number of threads that copy the factor: 1 if n < 1000, as to start others takes as long as the copy.
  int copying_threads() const { return n_ < 1000 ? 1 : threads_for(copying_threads_); }

  T* data() const { return static_cast<T*>(memory_.get()); }
  MatrixView<const T> view() const { return {data(), n_, n_, room_}; }
  MatrixView<T> own() { return {data(), n_, n_, room_}; }

  std::unique_ptr<HostFactor> another(index_t n, index_t room) const {
    return std::make_unique<HostFactor>(n, room, allocate_, copying_threads_);
  }

  void take(HostFactor& other) {
    memory_.swap(other.memory_);
    beside_.moved(other.memory_, memory_);
    n_ = other.n_;
    room_ = other.room_;
    range_ = other.range_;
  }

  index_t n_, room_;
  bool own_ = true;  ///< true if this factor owns its memory
  int copying_threads_ = 0;  ///< 0: as many as there are cores
  Allocate allocate_;
  std::shared_ptr<void> memory_;
  MemoryBeside beside_;
  Range range_;
};

template <class T, class S>
std::unique_ptr<HeldFactor> hold_as(const S* R, index_t n, Uplo uplo, index_t capacity, Allocate allocate,
                                    int copying_threads) {
  auto made = std::make_unique<HostFactor<T>>(n, std::max(n, capacity), std::move(allocate), copying_threads);
  made->load(Turned<S>(R, n, uplo).data(), uplo);
  return made;
}

}  // namespace

template <class S>
std::unique_ptr<HeldFactor> hold(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity,
                                 Allocate allocate, int copying_threads) {
  return precision == Precision::single ? hold_as<float>(R, n, uplo, capacity, std::move(allocate), copying_threads)
                                        : hold_as<double>(R, n, uplo, capacity, std::move(allocate), copying_threads);
}
std::unique_ptr<HeldFactor> borrow(const double* R, index_t n, Allocate allocate, int copying_threads) {
  return std::make_unique<HostFactor<double>>(std::make_shared<Turned<double>>(R, n, Uplo::upper), n,
                                              std::move(allocate), copying_threads);
}

template <class T>
std::unique_ptr<HeldFactor> hold_in_place(T* R, index_t n, index_t ld, Allocate allocate, int copying_threads) {
  return std::make_unique<HostFactor<T>>(R, n, ld, std::move(allocate), copying_threads);
}

template std::unique_ptr<HeldFactor> hold_in_place(double*, index_t, index_t, Allocate, int);
template std::unique_ptr<HeldFactor> hold_in_place(float*, index_t, index_t, Allocate, int);
template std::unique_ptr<HeldFactor> hold(const double*, index_t, Uplo, Precision, index_t, Allocate, int);
template std::unique_ptr<HeldFactor> hold(const float*, index_t, Uplo, Precision, index_t, Allocate, int);

}  // namespace gpucholmod::cpu
