#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/check_column.h"
#include "cuda/device_storage.cuh"
#include "cuda/reshape.cuh"

namespace gpucholmod::cuda {

/// A factor whose rows and columns can be inserted, deleted and moved, in place or by way of a second factor.
template <class T>
class ReshapedStorage : public DeviceStorage<T> {
  using Base = DeviceStorage<T>;

 public:
  using Base::Base;
  using Base::order;

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
    const Session session(context_);  // before way_of(), as a forked process must not ask the device
    const double most = require_inserted<T>({X, n + p, p, n + p}, at);
    const int e = exponent<T>(most);  // computations with X are in T
    // A dry run can test an insertion beforehand in one pass only, and not to the last bit.
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

 protected:
  using Base::R;
  using Base::capacity_;
  using Base::context_;
  using Base::dR_;
  using Base::here;
  using Base::layout_;
  using Base::look;
  using Base::most_;

  /// Returns memory for a second factor, of order n.
  virtual std::unique_ptr<ReshapedStorage> room_for(index_t n, index_t capacity) const = 0;

  /// Computes to <- R / 2^e, an intermediate that is computed with.
  void divide(int e, ReshapedStorage& to) const {
    scale_factor<T>(R(), std::scalbn(1.0, -e), to.R(), Scaled::to_compute, context_);
  }

 private:
  /// Returns e such that R / 2^e, and columns of norm at most `most` divided by 2^e, can be computed with in scalars C.
  template <class C>
  int exponent(double most) {
    if (exponent_below<C>(std::max(most_, most)) == 0) return 0;
    look();
    return exponent_below<C>(std::max(most_, most));
  }

  /// Returns whether the diagonal entry of the row and column that move from `from` to `to`, behind `from`, may become
  /// too small. This entry is the inverse of the norm of rows `from` to `to` of R'^-1 e_from.
  bool may_vanish_behind(index_t from, index_t to) const {
    std::vector<double> y(order());
    y[from] = 1;
    HeldFactor::solve(TriangularSolve::forward, y.data(), 1);
    return !(1 / std::sqrt(sum_of_squares(y.data() + from, to - from + 1)) >
             0x1p40 * double(std::numeric_limits<T>::min()));
  }

  /// The place where a change in place is made: the factor itself; a second factor, which then replaces it, if there is
  /// memory; or a second factor in any case.
  enum class By { itself, second_if_room, second };

  /// Returns memory for a second factor, of order m, for a change; null if there is no memory and the second factor is
  /// not `needed`. If a factor that `grows` exceeds its capacity, the second factor has room for half as much again if
  /// memory allows.
  std::unique_ptr<ReshapedStorage> second_factor(index_t m, bool grows, bool needed, const Task& task) const {
    std::vector<index_t> rooms;
    if (grows && m > capacity_) rooms.push_back(std::max(m, capacity_ + capacity_ / 2));
    rooms.push_back(std::max(m, m <= capacity_ ? capacity_ : 0));
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      const bool last = needed && i + 1 == rooms.size();
      const double bytes = double(sizeof(T)) * double(Layout(m, rooms[i]).words());
      try {
        require_allowed(bytes, task.device_memory);
        return room_for(m, rooms[i]);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory || last) throw;
      }
    }
    return nullptr;
  }

  /// Describes a change of rows and columns.
  struct Change {
    index_t order;          ///< order after the change
    double most;            ///< the largest norm of an inserted column
    int e;                  ///< exponent: numbers are divided by 2^e
    By by = By::itself;
    bool vanishes = false;  ///< True if an entry of the diagonal may become too small
  };
  /// Calls f(change) with a Reshaping in place, which sets `begun`, or into another factor. Another factor is used for
  /// a new factor, if the capacity is too small, if numbers are divided, and as `by` says. Returns what f returns: if
  /// that is a failing pivot, nothing has changed, unless `begun` is true.
  template <class F>
  index_t reshape(const Change& what, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                  std::atomic<bool>& begun, F&& f) {
    const auto [m, most, e, by, vanishes] = what;
    const Session session(context_);
    const bool itself = !made && e == 0 && by != By::second && m <= capacity_;
    std::unique_ptr<ReshapedStorage> other, scaled;
    if (!itself || by == By::second_if_room) other = second_factor(m, !made, !itself, task);
    if (e != 0 && order() > 0) {
      scaled = room_for(order(), capacity_);
      divide(e, *scaled);
    }
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
};

}  // namespace gpucholmod::cuda
