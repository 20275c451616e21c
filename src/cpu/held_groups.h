#pragma once

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/reshaped_sides.h"
#include "cpu/batch_modification.h"
#include "cpu/group_memory.h"
#include "cpu/group_solve.h"

namespace gpucholmod::cpu {

/// Holds a batch in ordinary memory.
template <class T>
class HostBatch : public HeldBatch, private GroupMemory<T> {
  using Base = GroupMemory<T>;

 public:
  using Base::Base;

  /// Loads and checks the members R. orders: the orders of the members, beyond which they are the identity.
  void load(const double* R, Uplo uplo, std::vector<index_t> orders) {
    const index_t n = order();
    check_groups(groups(), copying_threads(), unwatched, [&](index_t g) {
      Lanes<T, const double*> members{};
      for (index_t l = 0; l < Base::count(g); ++l) members[l] = R + (g * lanes + l) * n * n;
      load_group<T>(members, n, uplo, g * lanes, group(g), ranges_.data() + g * lanes);
    });
    if (!orders.empty()) orders_ = std::move(orders);
  }

  index_t order() const override { return n_; }
  std::vector<index_t> orders() const override { return orders_; }
  index_t capacity() const override { return capacity_; }
  index_t count() const override { return b_; }
  Precision precision() const override { return precision_of<T>; }
  bool on_gpu() const override { return false; }
  double bytes() const override { return Base::bytes_of_groups(); }

  std::unique_ptr<HeldBatch> copy() const override { return copied(capacity()); }

  void download(Uplo uplo, double* out) const override {
    const index_t n = order();
    prefer_huge_pages(out, sizeof(double) * n * n * b_);
    for_groups(groups(), copying_threads(), unwatched, [&](index_t g) {
      Lanes<T, double*> members{};
      for (index_t l = 0; l < Base::count(g); ++l) members[l] = out + (g * lanes + l) * n * n;
      scatter<T>(group(g), n, uplo, members);
    });
  }
  void download(index_t member, Uplo uplo, double* out) const override {
    const index_t own = orders_[member];
    std::fill_n(out, own * own, 0.0);
    for (index_t j = 0; j < own; ++j)
      for (index_t i = 0; i <= j; ++i)
        out[uplo == Uplo::upper ? i + j * own : j + i * own] = double(entry(member)(i, j));
  }
  void diagonals(double* out) const override {
    const index_t n = order();
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = 0; j < n; ++j) out[j + m * n] = double(entry(m)(j, j));
  }

  void solve(TriangularSolve which, double* B, index_t m) const override {
    const index_t n = order();
    for_groups(groups(), solving_threads(m), unwatched, [&](index_t g) {
      std::vector<double> b(n * lanes);
      for (index_t s = 0; s < m; ++s) {
        Lanes<T, const double*> from{};
        Lanes<T, double*> to{};
        for (index_t l = 0; l < Base::count(g); ++l) from[l] = to[l] = B + (s + (g * lanes + l) * m) * n;
        gather_sides<T>(from, n, b.data());
        if (which != TriangularSolve::back) kernels_.solve_forward(group(g), n, b.data());
        if (which != TriangularSolve::forward) kernels_.solve_back(group(g), n, b.data());
        scatter_sides<T>(b.data(), n, to);
      }
    });
  }

  /// Modifies each group in memory that stays in the cache, and solves with the modified group there.
  void solve_modified(const GivenColumns<double>& given, const BatchTask& asked, const BatchSystems& wanted,
                      std::vector<index_t>& pivots, const Poll& poll) override {
    const BatchTask task = resolved(asked);
    const index_t n = order();
    const double* const V = given.host();
    if (is_ragged()) require_zero_beyond(orders_, n, V, task);
    BatchModification<T> run(n, b_, task, [&](index_t m) { return task.V_of(V, n, m); },
                             [&](index_t m) { return task.sides.of(n, task.k, m); }, pivots);
    WorkMemory<T> memory;
    const auto prepare = [&](index_t g) { run.prepare(g, ranges_, group(g)); };
    try {
      for_ranges(groups(), run.threads(), poll, [&](index_t first, index_t last) {
        typename WorkMemory<T>::Lease made(memory, group_words<T>(n));
        auto work = run.work_memory();
        for (index_t g = first; g < last; ++g) {
          prepare(g);
          run.modify(g, group(g), made.data(), work.data());
          for (index_t l = 0; l < Base::count(g); ++l)
            for (index_t j = orders_[g * lanes + l]; j < n; ++j) made.data()[group_entry<T>(n, j, j) + l] = 1;
          solve_wanted<T>(group_kernels<T>(task.instructions), made.data(), n, {g * lanes, Base::count(g), orders_},
                          wanted);
        }
      });
    } catch (const Error&) {  // throws the error of the first member that has one
      for (index_t g = 0; g < groups() && run.threads() > 1; ++g) prepare(g);
      throw;
    }
  }

  Work modify(const GivenColumns<double>& given, const BatchTask& asked, std::unique_ptr<HeldBatch>* made,
              std::vector<index_t>& pivots, const Poll& poll, std::atomic<bool>& begun) override {
    const Clock clock;
    const BatchTask task = resolved(asked);
    const index_t n = order();
    const double* const V = given.host();
    if (is_ragged()) require_zero_beyond(orders_, n, V, task);
    BatchModification<T> run(n, b_, task, [&](index_t m) { return task.V_of(V, n, m); },
                             [&](index_t m) { return task.sides.of(n, task.k, m); }, pivots);
    check_groups(groups(), run.threads(), poll, [&](index_t g) { run.prepare(g, ranges_, group(g)); });
    if (made) modify_into(run, task, made, poll);
    else modify_in_place(run, task, poll, begun);
    Work work;
    work.seconds = clock.seconds();
    return work;
  }

  /// Appends the new columns of R behind the rows of their members first; members take the columns to their places when
  /// it is known which members fail. Works in a copy if members might lose digits.
  void insert(const BatchInsertion& what, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              std::atomic<bool>& begun) override {
    pivots.assign(b_, -1);
    if (made) made->reset();
    const index_t needed = order() + what.p;
    std::unique_ptr<HostBatch> other;
    if (made) other = copied(std::max(capacity(), needed));
    else if (needed > capacity()) other = copied(needed + needed / 2);
    if (!(other ? *other : *this).append(what, pivots)) return;
    if (!other && may_vanish_when_placed(what, pivots)) {
      forget_appended(what);
      other = copied(capacity());
      other->append(what, pivots);
    }
    begun = !other;
    (other ? *other : *this).take_appended(what, pivots);
    if (other) other->require_normal_diagonals();
    if (made) *made = std::move(other);
    else if (other) take_over(*other);
  }

  void remove(const BatchRemoval& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) override {
    if (made) {
      auto other = copied(capacity());
      std::atomic<bool> of_copy{false};
      other->remove(what, nullptr, of_copy);
      *made = std::move(other);
      return;
    }
    const index_t n = order() - what.p;
    const SidesOfRemoval sides(what, orders_, order());
    std::vector<double> V(n * what.p * b_);
    std::vector<Range> before = ranges_;
    std::vector<index_t> pivots;
    std::atomic<bool> any{false};
    begun = true;
    for_groups(groups(), reshaping_threads(), unwatched, [&](index_t g) {
      if (remove_from_group(what, g, V.data() + g * lanes * n * what.p)) any = true;
      narrow_group(group(g), n, what.p);
    });
    n_ = n;
    BatchTask task;
    task.k = what.p;
    task.sides = sides.of_modification();
    if (any) modify(V.data(), task, nullptr, pivots, unwatched, begun);
    else for (index_t m = 0; m < b_; ++m) pass_through(task, n, m);
    for (index_t m = 0; m < b_; ++m) ranges_[m].most = before[m].most;  // no column of the factor becomes longer
  }

  /// Works in a copy if members might lose digits.
  void shift(const BatchShift& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>& begun) override {
    const index_t words = order() * what.sides.m * b_;
    std::unique_ptr<HostBatch> other;
    if (made || may_vanish_when_moved(what)) other = copied(capacity());
    if (words > 0) std::copy_n(what.sides.first.z, words, what.sides.first.out);
    begun = !other;
    (other ? *other : *this).move_members(what);
    if (other) other->require_normal_diagonals();
    if (made) *made = std::move(other);
    else if (other) take_over(*other);
  }

 private:
  void modify_into(BatchModification<T>& run, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
                   const Poll& poll) const {
    made->reset();
    auto other = std::make_unique<HostBatch>(order(), capacity(), b_, allocate_);
    other->orders_ = orders_;
    for_groups<T>(run, poll, [&](index_t g, T* work) { run.modify(g, group(g), other->group(g), work); });
    if (task.all_or_none && run.any_failed()) return;
    if (run.any_failed()) other->ranges_ = ranges_;
    other->keep_ranges(run);
    if (task.scale) other->clear_beyond();
    *made = std::move(other);
  }

  void modify_in_place(BatchModification<T>& run, const BatchTask& task, const Poll& poll, std::atomic<bool>& begun) {
    if (task.all_or_none && run.removes())
      for_groups<T>(run, poll, [&](index_t g, T* work) { run.test(g, group(g), work); });
    if (task.all_or_none && run.any_failed()) return;
    const bool tests = !task.all_or_none && run.removes();
    begun = true;
    for_groups<T>(run, poll, [&](index_t g, T* work) {
      if (tests) run.test(g, group(g), work);
      run.modify_in_place(g, group(g), work);
    });
    keep_ranges(run);
    if (task.scale) clear_beyond();
  }

  void keep_ranges(const BatchModification<T>& run) {
    if (!run.any_failed()) {
      ranges_ = run.ranges();
    } else {
      for (index_t m = 0; m < b_; ++m)
        if (!run.failed(m)) ranges_[m] = run.ranges()[m];
    }
  }

  /// Returns a copy with room for `capacity` rows and columns.
  std::unique_ptr<HostBatch> copied(index_t capacity) const {
    auto made = std::make_unique<HostBatch>(order(), capacity, b_, allocate_);
    made->ranges_ = ranges_;
    made->orders_ = orders_;
    for_groups(groups(), copying_threads(), unwatched,
               [&](index_t g) { std::copy_n(group(g), group_words<T>(order()), made->group(g)); });
    return made;
  }

  using Base::allocate_;
  using Base::append;
  using Base::b_;
  using Base::capacity_;
  using Base::clear_beyond;
  using Base::copying_threads;
  using Base::entry;
  using Base::forget_appended;
  using Base::group;
  using Base::groups;
  using Base::is_ragged;
  using Base::kernels_;
  using Base::lanes;
  using Base::may_vanish_when_moved;
  using Base::may_vanish_when_placed;
  using Base::move_members;
  using Base::n_;
  using Base::orders_;
  using Base::ranges_;
  using Base::remove_from_group;
  using Base::require_normal_diagonals;
  using Base::reshaping_threads;
  using Base::solving_threads;
  using Base::take_appended;
  using Base::take_over;
};

}  // namespace gpucholmod::cpu
