#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpu/batch_columns.h"
#include "cuda/device_batch.h"
#include "cuda/device_factor.h"

namespace gpucholmod::cuda {

/// Members that each keep a GPU busy: factors of their own, modified one after the other.
class LargeBatch : public DeviceBatch {
 public:
  using Members = std::vector<std::unique_ptr<HeldFactor>>;

  /// At least one member, of one order and precision, on one device.
  LargeBatch(Members members, int device, std::string device_name)
      : members_(std::move(members)), device_(device), device_name_(std::move(device_name)) {}

  index_t order() const override { return members_[0]->order(); }
  index_t count() const override { return index_t(members_.size()); }
  Precision precision() const override { return members_[0]->precision(); }
  int device() const override { return device_; }
  std::string device_name() const override { return device_name_; }
  double bytes() const override { return members_[0]->bytes() * double(count()); }

  std::unique_ptr<HeldBatch> copy() const override {
    Members copies;
    for (const auto& factor : members_) copies.push_back(factor->copy());
    return of(std::move(copies));
  }

  void download(Uplo uplo, double* out) const override {
    for (index_t m = 0; m < count(); ++m) download(m, uplo, out + m * order() * order());
  }
  void download(index_t member, Uplo uplo, double* out) const override { members_[member]->download(uplo, out); }
  void diagonals(double* out) const override {
    for (index_t m = 0; m < count(); ++m) members_[m]->diagonal(out + m * order());
  }
  void solve(TriangularSolve which, double* B, index_t m) const override {
    for (index_t i = 0; i < count(); ++i) members_[i]->solve(which, B + i * order() * m, m);
  }

  /// In place at once where nothing can fail, or where others may change when a member fails; otherwise by way of a
  /// second batch.
  Work modify(const double* V, const BatchTask& task, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              const Poll& poll, std::atomic<bool>& begun) override {
    const bool removes = look_at(V, task), direct = !made && (!removes || !task.all_or_none);
    pivots.assign(count(), -1);
    Members others(count());
    Work all;
    all.device = device_name_;
    for (index_t m = 0; m < count(); ++m) {
      if (direct && m > 0) begun = true;  // those before have changed
      const Work work = modify_member(m, task.V_of(V, order(), m), task, direct ? nullptr : &others[m], poll, begun);
      pivots[m] = work.pivot;
      all.seconds += work.seconds;
      all.device_bytes = std::max(all.device_bytes, work.device_bytes);
      if (!direct && work.pivot >= 0 && !task.all_or_none) others[m] = members_[m]->copy();
    }
    if (made) made->reset();
    const bool any = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
    if (direct || (any && task.all_or_none)) return all;
    if (made) *made = of(std::move(others));
    else members_.swap(others);
    return all;
  }

 private:
  std::unique_ptr<LargeBatch> of(Members members) const {
    return std::make_unique<LargeBatch>(std::move(members), device_, device_name_);
  }

  /// Before anything changes. Whether anything is taken away.
  bool look_at(const double* V, const BatchTask& task) const {
    const double top =
        precision() == Precision::single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    bool removes = false;
    for (index_t m = 0; m < count(); ++m) {
      cpu::ColumnOrder columns;
      columns.find(task, m);
      cpu::for_member(m, [&] { cpu::largest_weighted(task.V_of(V, order(), m), order(), columns, top); });
      removes = removes || columns.added < task.k;
    }
    return removes;
  }

  Work modify_member(index_t m, const double* V, const BatchTask& task, std::unique_ptr<HeldFactor>* made,
                     const Poll& poll, std::atomic<bool>& begun) {
    const index_t n = order();
    cpu::ColumnOrder columns;
    columns.find(task, m);
    const std::vector<double> W = columns.taken(V, n);
    Task one;
    one.n = n;
    one.k = task.k;
    one.removed = task.k - columns.added;
    one.scale = std::sqrt(task.scale_of(m));
    one.precision = precision();
    one.algorithm = Algorithm::unscaled;
    one.threads = task.threads;
    one.device_memory = task.device_memory;
    Work work;
    cpu::for_member(m, [&] {
      work = members_[m]->modify(
          W.data(), one, made, [&](double done) { poll((double(m) + done) / double(count())); }, begun);
    });
    return work;
  }

  Members members_;
  int device_;
  std::string device_name_;
};

}  // namespace gpucholmod::cuda
