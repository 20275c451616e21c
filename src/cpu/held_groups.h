#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/batch_orders.h"
#include "base/check_column.h"
#include "base/clock.h"
#include "base/huge_pages.h"
#include "base/turned.h"
#include "cpu/batch_modification.h"
#include "cpu/group_reshape.h"
#include "cpu/groups.h"
#include "cpu/host_factor.h"

namespace gpucholmod::cpu {

/// Groups one after the other, from a cache line on.
template <class T>
class HostBatch : public HeldBatch {
  static constexpr index_t lanes = group_size<T>;

 public:
  /// Memory of members of order n, whose groups have room for more rows.
  HostBatch(index_t n, index_t capacity, index_t b, const Allocate& allocate)
      : n_(n), capacity_(capacity), b_(b), ranges_(b), orders_(b, n), allocate_(allocate) {
    const std::size_t bytes = sizeof(T) * group_words<T>(capacity) * groups();
    if (bytes == 0) return;
    memory_ = allocate_(bytes + 64);
    data_ = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_.get()) + 63) / 64 * 64);
    prefer_huge_pages(data_, bytes);
  }

  /// orders: of the members, which are the identity beyond.
  void load(const double* R, Uplo uplo, std::vector<index_t> orders) {
    const index_t n = order();
    check_groups(groups(), copying_threads(), unwatched, [&](index_t g) {
      Lanes<T, const double*> members{};
      for (index_t l = 0; l < count(g); ++l) members[l] = R + (g * lanes + l) * n * n;
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
  double bytes() const override { return double(sizeof(T)) * double(group_words<T>(capacity())) * double(groups()); }

  std::unique_ptr<HeldBatch> copy() const override { return copied(capacity()); }

  void download(Uplo uplo, double* out) const override {
    const index_t n = order();
    prefer_huge_pages(out, sizeof(double) * n * n * b_);
    for_groups(groups(), copying_threads(), unwatched, [&](index_t g) {
      Lanes<T, double*> members{};
      for (index_t l = 0; l < count(g); ++l) members[l] = out + (g * lanes + l) * n * n;
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
        for (index_t l = 0; l < count(g); ++l)
          for (index_t i = 0; i < n; ++i) b[i * lanes + l] = B[i + (s + (g * lanes + l) * m) * n];
        if (which != TriangularSolve::back) solve_forward(group(g), n, b.data());
        if (which != TriangularSolve::forward) solve_back(group(g), n, b.data());
        for (index_t l = 0; l < count(g); ++l)
          for (index_t i = 0; i < n; ++i) B[i + (s + (g * lanes + l) * m) * n] = b[i * lanes + l];
      }
    });
  }

  Work modify(const double* V, const BatchTask& asked, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              const Poll& poll, std::atomic<bool>& begun) override {
    const Clock clock;
    const BatchTask task = resolved(asked);
    const index_t n = order();
    if (is_ragged()) require_zero_beyond(orders_, n, V, task);
    BatchModification<T> run(n, b_, task, [&](index_t m) { return task.V_of(V, n, m); }, pivots);
    check_groups(groups(), run.threads(), poll, [&](index_t g) { run.prepare(g, ranges_, group(g)); });
    if (made) modify_into(run, task, made, poll);
    else modify_in_place(run, task, poll, begun);
    Work work;
    work.seconds = clock.seconds();
    return work;
  }

  /// New columns of R go behind the rows of their members first; then, where none has failed that must not, members take
  /// them.
  void insert(const BatchInsertion& what, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              std::atomic<bool>& begun) override {
    pivots.assign(b_, -1);
    if (made) made->reset();
    const index_t needed = order() + what.p;
    std::unique_ptr<HostBatch> other;
    if (made) other = copied(std::max(capacity(), needed));
    else if (needed > capacity()) other = copied(needed + needed / 2);
    HostBatch& changed = other ? *other : *this;
    if (!changed.append(what, pivots)) return;
    begun = !made;
    changed.take_appended(what, pivots);
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
    std::vector<double> V(n * what.p * b_);
    std::vector<Range> before = ranges_;
    std::vector<index_t> pivots;
    std::atomic<bool> any{false};
    begun = true;
    for_groups(groups(), reshaping_threads(), unwatched, [&](index_t g) {
      for (index_t m = g * lanes; m < g * lanes + count(g); ++m) {
        double* const own = V.data() + m * n * what.p;
        if (remove_rows(entry(m), orders_[m], what.of(m), what.p, own, n)) any = true;
        orders_[m] -= what.p;
      }
      narrow_group(group(g), n, what.p);
    });
    n_ = n;
    BatchTask task;
    task.k = what.p;
    if (any) modify(V.data(), task, nullptr, pivots, unwatched, begun);
    for (index_t m = 0; m < b_; ++m) ranges_[m].most = before[m].most;  // no column of the factor becomes longer
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

  /// A copy with so much room.
  std::unique_ptr<HostBatch> copied(index_t capacity) const {
    auto made = std::make_unique<HostBatch>(order(), capacity, b_, allocate_);
    made->ranges_ = ranges_;
    made->orders_ = orders_;
    for_groups(groups(), copying_threads(), unwatched,
               [&](index_t g) { std::copy_n(group(g), group_words<T>(order()), made->group(g)); });
    return made;
  }

  bool is_ragged() const {
    return std::any_of(orders_.begin(), orders_.end(), [&](index_t own) { return own != order(); });
  }
  /// What a scale has made of rows that members have not becomes the identity's again.
  void clear_beyond() {
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = orders_[m]; j < order(); ++j) entry(m)(j, j) = 1;
  }
  MemberOfGroup<T> entry(index_t m) const { return {group(m / lanes), n_, m % lanes}; }

  /// The new columns of a member's matrix.
  MatrixView<const double> inserted(const BatchInsertion& what, index_t m) const {
    const index_t ld = order() + what.p;
    return {what.X + (what.common_X ? 0 : m * ld * what.p), orders_[m] + what.p, what.p, ld};
  }
  NewRows rows_of_member(const BatchInsertion& what, index_t m) const {
    return {orders_[m], what.place(m, orders_[m])};
  }

  /// Makes every group wider by the new rows, and puts the new columns behind the rows of their members, which do not
  /// have them yet. Returns false, all being as it was, where members fail and none may. Throws not_finite, overflow and
  /// bad_diagonal likewise.
  bool append(const BatchInsertion& what, std::vector<index_t>& pivots) {
    WorkMemory<double> memory;
    std::vector<char> wide(groups(), 0);
    const auto append_to = [&](index_t g) {
      if (wide[g]) return;
      typename WorkMemory<double>::Lease work(memory, NewColumns<T>::words(n_, what.p));
      append_to_group(what, g, {n_, what.p, work.data()}, pivots);
      wide[g] = 1;
    };
    const auto take_back = [&] {
      for (index_t g = 0; g < groups(); ++g)
        if (wide[g]) narrow_group(group(g), n_, what.p);
    };
    try {
      check_groups(groups(), reshaping_threads(), unwatched, append_to);
    } catch (...) {
      take_back();
      throw;
    }
    const bool any = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
    if (!any || !what.all_or_none) return true;
    take_back();
    return false;
  }
  void append_to_group(const BatchInsertion& what, index_t g, const NewColumns<T>& columns,
                       std::vector<index_t>& pivots) {
    clear(columns);
    for (index_t l = 0; l < count(g); ++l) {
      const index_t m = g * lanes + l;
      for_member(m, [&] { require_inserted<T>(inserted(what, m), what.place(m, orders_[m])); });
      put_columns(inserted(what, m), rows_of_member(what, m), l, columns);
    }
    const Lanes<T, bool> failed = find_columns(group(g), columns);
    for (index_t l = 0; l < count(g); ++l) {
      const index_t m = g * lanes + l;
      if (failed[l]) pivots[m] = failing_pivot(what, m, columns);
      for (index_t q = 0; q < what.p && !failed[l]; ++q)
        for_member(m, [&] { require_normal(T(columns.corner(q, q)[l]), what.place(m, orders_[m]) + q); });
    }
    widen_group(group(g), n_, what.p);
    for (index_t l = 0; l < count(g); ++l)
      if (!failed[l]) append_columns(columns, rows_of_member(what, g * lanes + l), wide_entry(g, l, what.p));
  }
  MemberOfGroup<T> wide_entry(index_t g, index_t lane, index_t p) const { return {group(g), n_ + p, lane}; }

  /// Members that have not failed take what is behind their rows, to its places.
  void take_appended(const BatchInsertion& what, const std::vector<index_t>& pivots) {
    for_groups(groups(), reshaping_threads(), unwatched, [&](index_t g) {
      for (index_t m = g * lanes; m < g * lanes + count(g); ++m)
        if (pivots[m] < 0) take_appended_of(what, m);
    });
    const index_t largest = largest_order(orders_), wide = n_ + what.p;
    for (index_t g = 0; g < groups() && largest < wide; ++g) narrow_group(group(g), largest, wide - largest);
    n_ = largest;
  }
  void take_appended_of(const BatchInsertion& what, index_t m) {
    const NewRows rows = rows_of_member(what, m);
    const MatrixView<const double> X = inserted(what, m);
    const MemberOfGroup<T> R = wide_entry(m / lanes, m % lanes, what.p);
    Range& range = ranges_[m];
    for (index_t q = 0; q < what.p; ++q) {
      const double norm = std::sqrt(X(rows.at + q, q));
      range.most = std::max(range.most, norm * (1 + 16 * double(std::numeric_limits<T>::epsilon())));
      range.least = std::min(range.least, double(R(rows.order + q, rows.order + q)));
      if (rows.at < rows.order) shift_left(R, rows.order + what.p, rows.order + q, rows.at + q);
    }
    orders_[m] += what.p;
    for (index_t j = rows.at; j < rows.order && j < orders_[m]; ++j) range.least = std::min(range.least, double(R(j, j)));
  }
  /// Where the corner of a member is not positive definite: the first leading minor that is not.
  index_t failing_pivot(const BatchInsertion& what, index_t m, const NewColumns<T>& columns) const {
    const auto [n, at] = rows_of_member(what, m);
    std::vector<double> C(n * what.p);
    for (index_t q = 0; q < what.p; ++q)
      for (index_t i = 0; i < n; ++i) C[i + q * n] = columns.at(i, q)[m % lanes];
    const MatrixView<const double> X = inserted(what, m);
    const index_t found = pivot_of_insertion(C.data(), n, at, X.data + at, X.ld, what.p);
    return found >= 0 ? found : n + what.p - 1;
  }
  void take_over(HostBatch& other) {
    std::swap(n_, other.n_);
    std::swap(capacity_, other.capacity_);
    ranges_.swap(other.ranges_);
    orders_.swap(other.orders_);
    memory_.swap(other.memory_);
    std::swap(data_, other.data_);
  }
  int reshaping_threads() const { return solving_threads(1); }

  index_t groups() const { return (b_ + lanes - 1) / lanes; }
  index_t count(index_t g) const { return std::min(lanes, b_ - g * lanes); }
  T* group(index_t g) const { return data_ + g * group_words<T>(capacity()); }
  /// To start others takes as long as to copy a megabyte.
  int copying_threads() const { return bytes() < 4e6 ? 1 : threads_for(0); }
  int solving_threads(index_t m) const { return bytes() * double(m) < 4e6 ? 1 : threads_for(0); }

  index_t n_, capacity_, b_;
  std::vector<Range> ranges_;
  std::vector<index_t> orders_;
  Allocate allocate_;
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
};

}  // namespace gpucholmod::cpu
