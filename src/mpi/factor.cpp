#include "mpi/factor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/modify_stored.h"
#include "mpi/inverse.h"
#include "mpi/led_factor.h"
#include "mpi/panel_sweep.h"
#include "mpi/reshape.h"
#include "mpi/shared_storage.h"

namespace gpucholmod::mpi {
namespace {

/// Carries out the operations on a factor of scalars T over several processes.
template <class T>
class Shared : public SharedStorage<T> {
  using Base = SharedStorage<T>;

 public:
  using Base::Base;
  using Base::on_gpu;

  std::unique_ptr<HeldFactor> copy() const override {
    std::unique_ptr<Shared> made;
    together(Operation::copy, [&] {
      made = scaled(1);
      return -1;
    });
    made->set_number();
    return made;
  }

  void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const override {
    if (X != B) std::copy_n(B, layout_.n * m, X);
    together(Operation::solve, [&] {
      if (which != TriangularSolve::back) SharedSubstitution<T>(team_, layout_, columns_, X, m).forward();
      if (which != TriangularSolve::forward) SharedSubstitution<T>(team_, layout_, columns_, X, m).back();
      return -1;
    });
  }

  Work modify(const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
              std::atomic<bool>& begun) override {
    return modify_stored<T>(*this, V, task, made, poll, begun);
  }

  void inverse(double* out) const override {
    const index_t n = layout_.n;
    together(Operation::invert, [&] {
      const Columns<T> R = on_gpu() ? here(layout_) : columns_;
      if (on_gpu()) copy_columns(columns_, R, 1, Result::no);
      collect(team_, layout_, inverted(team_, layout_, R, allocate_), [&](const double* column, index_t j) {
        for (index_t i = 0; i <= j; ++i) out[i + j * n] = out[j + i * n] = column[i];
      });
      return -1;
    });
  }

  double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                std::atomic<bool>&) override {
    std::vector<double> squares(layout_.n);
    reshape(Operation::remove, {layout_.n - index_t(gone.size()), 0, true}, task, made, poll,
            [&](Reshaping<T>&& change, int) {
              of_columns(squares.data(), [&](const T* column, index_t j) {
                return std::binary_search(gone.begin(), gone.end(), j) ? squares_of_column(column, j + 1) : 0.0;
              });
              return change.remove(gone);
            });
    double taken = 0;
    for (const index_t j : gone) taken += squares[j];
    return taken;
  }
  index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                 const Poll& poll, std::atomic<bool>&) override {
    const index_t n = layout_.n;
    return reshape(Operation::insert, {n + p, require_inserted<T>({X, n + p, p, n + p}, at), false}, task, made, poll,
                   [&](Reshaping<T>&& change, int e) { return change.insert(at, X, p, e); });
  }
  void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
             std::atomic<bool>&) override {
    reshape(Operation::shift, {layout_.n, 0, false}, task, made, poll, [&](Reshaping<T>&& change, int) {
      change.shift(from, to);
      return index_t(-1);
    });
  }

  void any_of(std::vector<char>& flags) const override {
    together(Operation::flags, [&] {
      team_.any_of(flags);
      return -1;
    });
  }

  // The members that modify_stored() needs.

  using Computed = T;
  static constexpr bool looks = false;
  const Range& range() const { return range_; }
  void set_range(const Range& range) { range_ = range; }
  bool may_fail(const Task&) const { return false; }
  void look() {
    together(Operation::columns, [&] {
      look_here();
      return -1;
    });
  }
  template <class F>
  index_t together(F&& f) const {
    return together(Operation::modify, f);
  }

  class Sweep : NotCopied {
   public:
    Sweep(const Shared& R, const double* V, const Task& task, int e, double scale, const Poll& poll)
        : R_(R), task_(task), scale_(scale), down_(std::scalbn(1.0, -e)), poll_(poll) {
      const index_t n = task.n, k = task.k;
      if (!R.on_gpu()) {
        columns_ = times<T>(V, n * k, down_);
        return;
      }
      if (e != 0) doubles_ = times<double>(V, n * k, down_);
      panels_.emplace(R.team_, R.layout_, MatrixView<const double>{e != 0 ? doubles_.data() : V, n, k, n}, task, scale);
      R.together([&] {
        in_passes_ = panels_->in_passes(R.columns_);
        return index_t(-1);
      });
    }
    bool tests() const { return !in_passes_; }
    template <class F>
    auto second(F&& f) const { return f(); }
    template <class F>
    std::unique_ptr<Shared> second_if_room(F&&) const { return nullptr; }
    void finish(Work&) const {}
    index_t run(const Shared& from, const Shared* to, std::atomic<bool>* begun, Work& work) {
      if (begun) *begun = true;
      if (panels_) {
        const index_t pivot =
            panels_->run(from.columns_, to ? &to->columns_ : nullptr, R_.columns_, down_, poll_, work);
        // A pivot of an update fails only if it is too large.
        if (pivot >= 0 && task_.removed == 0) throw overflow(pivot, pivot);
        return pivot;
      }
      const MatrixView<const T> V{columns_.data(), task_.n, task_.k, task_.n};
      const bool carries = to && task_.right.m() > 0;
      SharedSweep<T> sweep(R_.team_, R_.layout_, V, task_.removed, T(scale_), std::min(task_.instructions, R_.least_),
                           task_.threads, carries);
      const index_t pivot = sweep.run(from.columns_, to ? &to->columns_ : nullptr, poll_);
      if (pivot < 0 && carries) sweep.carry(task_.right);
      return pivot;
    }

   private:
    const Shared& R_;
    const Task& task_;
    double scale_, down_;
    const Poll& poll_;
    std::vector<T> columns_;
    std::vector<double> doubles_;
    std::optional<PanelSweep<T>> panels_;
    bool in_passes_ = false;
  };
  Sweep sweep(const double* V, const Task& task, int e, double scale, const Poll& poll) const {
    return {*this, V, task, e, scale, poll};
  }

  // Within an operation:

  std::unique_ptr<Shared> another() const { return another(layout_.n); }
  std::unique_ptr<Shared> divided(int e) const { return multiplied(std::scalbn(1.0, -e), Result::no); }
  std::unique_ptr<Shared> scaled(double by) const { return multiplied(by, Result::yes); }
  void scale_by(double by) { copy_columns(columns_, columns_, by, Result::yes); }
  /// Finds the bounds of a result anew. Throws bad_diagonal if a diagonal entry is no normal number.
  void settle_range() {
    require_normal_diagonal(columns_);
    look_here();
  }

  void replace(std::unique_ptr<Shared> other, std::unique_ptr<HeldFactor>* made, std::atomic<bool>&) {
    other->range_.most = std::min(other->range_.most, double(std::numeric_limits<T>::max()));
    other->least_ = least_;
    other->set_number();
    if (made) {
      *made = std::move(other);
      return;
    }
    layout_ = other->layout_;
    columns_ = other->columns_;
    range_ = other->range_;
  }

 private:
  using typename Base::Result;
  using Base::allocate_;
  using Base::columns_;
  using Base::copy_columns;
  using Base::here;
  using Base::layout_;
  using Base::least_;
  using Base::look_here;
  using Base::make_;
  using Base::of_columns;
  using Base::range_;
  using Base::require_normal_diagonal;
  using Base::team_;
  using Base::together;

  template <class S>
  static std::vector<S> times(const double* from, index_t count, double by) {
    std::vector<S> all(count);
    for (index_t i = 0; i < count; ++i) all[i] = S(from[i] * by);
    return all;
  }

  /// Describes a change of rows and columns.
  struct Change {
    index_t order;  ///< order of the factor after the change
    double most;    ///< largest norm of an inserted column
    bool grows;     ///< True if no entry of the diagonal becomes smaller
  };
  /// Calls f(reshaping, e), which writes to another factor. The other factor becomes *made or, if `made` is null,
  /// replaces this one. Numbers near the ends of the range are divided by 2^e on the way. On GPUs, f reads and writes
  /// copies in ordinary memory. Returns the failing pivot that f has found in any process, or -1. With a failing pivot,
  /// this factor has not changed.
  template <class F>
  index_t reshape(Operation what, const Change& change, const Task& task, std::unique_ptr<HeldFactor>* made,
                  const Poll& poll, F&& f) {
    if (exponent_below<T>(std::max(range_.most, change.most)) != 0) look();
    const Range range{std::max(range_.most, change.most), change.grows ? range_.least : 0};
    const int e = exponent_below<T>(range.most);
    std::unique_ptr<Shared> other;
    poll(0);
    const index_t pivot = together(what, [&]() -> index_t {
      const Columns<T> R = e != 0 || on_gpu() ? here(layout_) : columns_;
      if (e != 0 || on_gpu()) copy_columns(columns_, R, std::scalbn(1.0, -e), Result::no);
      other = another(change.order);
      other->range_ = range;
      const Columns<T> out = on_gpu() ? here(other->layout_) : other->columns_;
      const index_t pivot =
          f(Reshaping<T>(team_, layout_, R, other->layout_, out, task, std::min(task.instructions, least_), poll), e);
      if (pivot >= 0) return pivot;
      if (e == 0) require_normal_diagonal(out);
      if (e != 0 || on_gpu()) other->copy_columns(out, other->columns_, std::scalbn(1.0, e), Result::yes);
      return -1;
    });
    std::atomic<bool> elsewhere{false};  // stays false, as this replace() cannot throw
    if (pivot < 0) replace(std::move(other), made, elsewhere);
    return pivot;
  }

  std::unique_ptr<Shared> another(index_t n) const { return std::make_unique<Shared>(team_, n, allocate_, make_); }
  std::unique_ptr<Shared> multiplied(double by, Result result) const {
    auto made = another(layout_.n);
    copy_columns(columns_, made->columns_, by, result);
    made->range_ = {by * range_.most, by * range_.least};
    made->least_ = least_;
    return made;
  }
};

template <class T, class F>
std::unique_ptr<SharedFactor> made_as(Team& team, index_t n, const cpu::Allocate& allocate, const MakePanels& make,
                                      F&& fill) {
  std::unique_ptr<Shared<T>> made;
  team.together(Operation::hold, 0, [&] {
    made = std::make_unique<Shared<T>>(team, n, allocate, make);
    fill(*made);
    return -1;
  });
  made->set_number();
  return made;
}

}  // namespace

std::unique_ptr<SharedFactor> deal_out(Team& team, const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make) {
  if (make.leader)
    if (auto led = hold_led(team, *make.leader, {R, "", n, uplo, precision})) return led;
  const auto fill = [&](auto& factor) { factor.deal(R, uplo); };
  return precision == Precision::single ? made_as<float>(team, n, allocate, make, fill)
                                        : made_as<double>(team, n, allocate, make, fill);
}

std::unique_ptr<SharedFactor> read_out(Team& team, const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make) {
  if (make.leader)
    if (auto led = hold_led(team, *make.leader, {nullptr, path, n, Uplo::upper, precision})) return led;
  const auto fill = [&](auto& factor) { factor.read(path); };
  return precision == Precision::single ? made_as<float>(team, n, allocate, make, fill)
                                        : made_as<double>(team, n, allocate, make, fill);
}

}  // namespace gpucholmod::mpi
