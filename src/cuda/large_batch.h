#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/batch_orders.h"
#include "cpu/batch_columns.h"
#include "cuda/callers_memory.h"
#include "cuda/device_batch.h"
#include "cuda/device_factor.h"

namespace gpucholmod::cuda {

/// A batch whose members each keep a GPU busy: they are factors of their own, modified one after the other.
class LargeBatch : public DeviceBatch {
 public:
  using Members = std::vector<std::unique_ptr<HeldFactor>>;

  /// Takes over the members: at least one, all of one precision and on one device.
  LargeBatch(Members members, int device, std::string device_name)
      : members_(std::move(members)), device_(device), device_name_(std::move(device_name)) {}

  index_t order() const override { return largest_order(orders()); }
  std::vector<index_t> orders() const override {
    std::vector<index_t> all;
    for (const auto& factor : members_) all.push_back(factor->order());
    return all;
  }
  index_t capacity() const override {
    index_t least = members_[0]->capacity();
    for (const auto& factor : members_) least = std::min(least, factor->capacity());
    return least;
  }
  index_t count() const override { return index_t(members_.size()); }
  Precision precision() const override { return members_[0]->precision(); }
  int device() const override { return device_; }
  std::string device_name() const override { return device_name_; }
  double bytes() const override {
    double sum = 0;
    for (const auto& factor : members_) sum += factor->bytes();
    return sum;
  }

  std::unique_ptr<HeldBatch> copy() const override {
    Members copies;
    for (const auto& factor : members_) copies.push_back(factor->copy());
    return of(std::move(copies));
  }

  void download(Uplo uplo, double* out) const override {
    const index_t n = order();
    for (index_t m = 0; m < count(); ++m) {
      const index_t own = members_[m]->order();
      std::vector<double> R(own * own);
      download(m, uplo, own == n ? out + m * n * n : R.data());
      if (own == n) continue;
      const MatrixView<double> to{out + m * n * n, n, n, n};
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i) to(i, j) = i < own && j < own ? R[i + j * own] : double(i == j);
    }
  }
  void download(index_t member, Uplo uplo, double* out) const override { members_[member]->download(uplo, out); }
  void diagonals(double* out) const override {
    const index_t n = order();
    std::fill_n(out, n * count(), 1.0);
    for (index_t m = 0; m < count(); ++m) members_[m]->diagonal(out + m * n);
  }
  void solve(TriangularSolve which, double* B, index_t m) const override {
    const index_t n = order();
    for (index_t i = 0; i < count(); ++i) {
      const index_t own = members_[i]->order();
      const MatrixView<double> b{B + i * n * m, own, m, n};
      std::vector<double> X = packed(b);
      members_[i]->solve(which, X.data(), m);
      for (index_t q = 0; q < m; ++q) std::copy_n(X.data() + q * own, own, b.col(q));
    }
  }

  /// Solves by solve(), with copies of dB to host memory and back.
  void solve_there(TriangularSolve which, double* dB, index_t m) const override {
    const index_t n = order(), columns = m * count();
    if (n * columns == 0) return;
    std::vector<double> B(n * columns);
    copy_to_host<double>(device_, {dB, n, columns, n}, B.data());
    solve(which, B.data(), m);
    copy_to_device<double>(device_, B.data(), {dB, n, columns, n});
  }

  /// Modifies the members in place if none can fail, or if the others may change when a member fails. Otherwise, or if
  /// `made` is not null, writes the results to a second batch.
  Work modify(const GivenColumns<double>& given, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
              std::vector<index_t>& pivots, const Poll& poll, std::atomic<bool>& begun) override {
    const double* const V = given.host();
    require_zero_beyond(orders(), order(), V, task);
    const bool removes = look_at(V, task), direct = !made && (!removes || !task.all_or_none);
    Work all;
    all.device = device_name_;
    change(made, direct, task.all_or_none, pivots, begun, [&](index_t m, std::unique_ptr<HeldFactor>* other) {
      const Work work = modify_member(m, V, task, other, poll, begun);
      all.seconds += work.seconds;
      all.device_bytes = std::max(all.device_bytes, work.device_bytes);
      return work.pivot;
    });
    return all;
  }

  /// Inserts by way of a second batch, so that no member is half modified.
  void insert(const BatchInsertion& what, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              std::atomic<bool>& begun) override {
    const index_t ld = order() + what.p;
    change(made, false, what.all_or_none, pivots, begun, [&](index_t m, std::unique_ptr<HeldFactor>* other) {
      const index_t own = members_[m]->order();
      const std::vector<double> X =
          packed({what.X + (what.common_X ? 0 : m * ld * what.p), own + what.p, what.p, ld});
      return reshape_member(m, what.sides, what.p, 0, [&](const Task& task) {
        return members_[m]->insert(what.place(m, own), X.data(), what.p, task, other, [](double) {}, begun);
      });
    });
  }
  void remove(const BatchRemoval& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) override {
    std::vector<index_t> pivots;
    change(made, false, true, pivots, begun, [&](index_t m, std::unique_ptr<HeldFactor>* other) {
      return reshape_member(m, what.sides, 0, what.p, [&](const Task& task) {
        members_[m]->remove({what.of(m), what.of(m) + what.p}, task, other, [](double) {}, begun);
        return index_t(-1);
      });
    });
  }

  void shift(const BatchShift& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) override {
    std::vector<index_t> pivots;
    change(made, false, true, pivots, begun, [&](index_t m, std::unique_ptr<HeldFactor>* other) {
      return reshape_member(m, what.sides, 0, 0, [&](const Task& task) {
        if (what.stays(m)) *other = members_[m]->copy();
        else members_[m]->shift(what.from_of(m), what.to_of(m), task, other, [](double) {}, begun);
        return index_t(-1);
      });
    });
  }

 private:
  std::unique_ptr<LargeBatch> of(Members members) const {
    return std::make_unique<LargeBatch>(std::move(members), device_, device_name_);
  }

  /// Returns the numbers of a matrix, column after column without gaps.
  static std::vector<double> packed(MatrixView<const double> of) {
    std::vector<double> numbers;
    for (index_t q = 0; q < of.cols; ++q) numbers.insert(numbers.end(), of.col(q), of.col(q) + of.rows);
    return numbers;
  }

  /// Calls f(member, other), which returns the failing pivot or -1, for all members. If `direct`, f changes the member
  /// in place, and `other` is null. Otherwise f makes a new member in *other; the new members become *made, or, if
  /// `made` is null, replace those of this batch.
  template <class F>
  void change(std::unique_ptr<HeldBatch>* made, bool direct, bool all_or_none, std::vector<index_t>& pivots,
              std::atomic<bool>& begun, F&& f) {
    pivots.assign(count(), -1);
    if (made) made->reset();
    Members others(count());
    for (index_t m = 0; m < count(); ++m) {
      if (direct && m > 0) begun = true;  // earlier members have changed
      cpu::for_member(m, [&] { pivots[m] = f(m, direct ? nullptr : &others[m]); });
      if (!direct && pivots[m] >= 0 && !all_or_none) others[m] = members_[m]->copy();
    }
    const bool any = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
    if (direct || (any && all_or_none)) return;
    if (made) *made = of(std::move(others));
    else members_.swap(others);
  }

  /// Looks at V before anything changes. Returns whether a column of any member is taken away.
  bool look_at(const double* V, const BatchTask& task) const {
    const double top =
        precision() == Precision::single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    const index_t n = order();
    bool removes = false;
    for (index_t m = 0; m < count(); ++m) {
      cpu::ColumnOrder columns;
      columns.find(task, m);
      cpu::for_member(m, [&] { cpu::largest_weighted(task.V_of(V, n, m), n, columns, top); });
      removes = removes || columns.added < task.k;
    }
    return removes;
  }

  Work modify_member(index_t m, const double* V, const BatchTask& task, std::unique_ptr<HeldFactor>* made,
                     const Poll& poll, std::atomic<bool>& begun) {
    const index_t n = members_[m]->order();
    cpu::ColumnOrder columns;
    columns.find(task, m);
    const std::vector<double> own = packed({task.V_of(V, order(), m), n, task.k, order()});
    const std::vector<double> W = columns.taken(own.data(), n);
    Task one = cpu::task_alone(task, columns, n, m, precision());
    one.algorithm = Algorithm::unscaled;
    one.threads = task.threads;
    one.device_memory = task.device_memory;
    cpu::SidesAlone sides = sides_of(m, task, columns);
    sides.put_into(one);
    const Work work = members_[m]->modify(
        W.data(), one, made, [&](double done) { poll((double(m) + done) / double(count())); }, begun);
    if (work.pivot >= 0 || sides.m == 0) return work;
    sides.settle(one, work);
    put(sides, n, task.sides.of(order(), task.k, m));
    return work;
  }

  /// Returns the right-hand sides of a member, without the rows beyond its order.
  cpu::SidesAlone sides_of(index_t m, const BatchTask& task, const cpu::ColumnOrder& columns) const {
    if (task.sides.m == 0) return {};
    const index_t n = members_[m]->order();
    MemberSides given = task.sides.of(order(), task.k, m);
    const std::vector<double> z = packed({given.z, n, task.sides.m, order()});
    given.z = z.data();
    return cpu::sides_alone(given, columns, n, task.sides.m);
  }
  void put(const cpu::SidesAlone& made, index_t n, MemberSides to) const {
    std::vector<double> z(n * made.m);
    const MatrixView<double> out{to.out, n, made.m, order()};
    to.out = z.data();
    cpu::put_sides(made, to);
    for (index_t s = 0; s < made.m; ++s) std::copy_n(z.data() + s * n, n, out.col(s));
  }

  /// Returns the pivot that f(task) returns. f inserts, deletes or moves rows of a member, along with the right-hand
  /// sides in `task`.
  template <class F>
  index_t reshape_member(index_t m, const BatchSides& all, index_t coming, index_t going, F&& f) {
    const index_t n = members_[m]->order(), k = coming + going, made = n + coming - going, sides = all.m;
    const MemberSides given = all.of(order(), k, m, order() + coming - going);
    Task task;
    task.n = n;
    task.precision = precision();
    const std::vector<double> z = packed({given.z, n, sides, order()});
    std::vector<double> Y(sides * k), out(made * sides), rest(sides * k);
    for (index_t s = 0; s < sides && coming > 0; ++s)
      for (index_t q = 0; q < k; ++q) Y[s + q * sides] = given.Y[q + s * k];
    task.right = {{z.data(), n, sides, n}, {Y.data(), sides, k, sides}, {out.data(), made, sides, made},
                  {rest.data(), sides, k, sides}};
    if (k == 0) task.right.pass_through();
    const index_t pivot = f(task);
    for (index_t s = 0; s < sides && pivot < 0; ++s) {
      std::copy_n(out.data() + s * made, made, given.out + s * (order() + coming - going));
      for (index_t q = 0; q < k; ++q) given.rest[q + s * k] = rest[s + q * sides];
    }
    return pivot;
  }

  Members members_;
  int device_;
  std::string device_name_;
};

}  // namespace gpucholmod::cuda
