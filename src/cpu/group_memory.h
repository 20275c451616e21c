#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/batch_orders.h"
#include "base/check_column.h"
#include "base/huge_pages.h"
#include "base/sizes.h"
#include "cpu/group_reshape.h"
#include "cpu/groups.h"
#include "cpu/host_factor.h"
#include "cpu/kernels.h"

namespace gpucholmod::cpu {

/// The groups of a batch one after the other, from a cache line on, and how their members get and lose rows.
template <class T>
class GroupMemory {
 public:
  /// Memory of members of order n, whose groups have room for more rows.
  GroupMemory(index_t n, index_t capacity, index_t b, const Allocate& allocate)
      : n_(n), capacity_(capacity), b_(b), ranges_(b), orders_(b, n), allocate_(allocate) {
    const std::size_t bytes = bytes_of(group_words<T>(capacity), groups(), sizeof(T));
    if (bytes == 0) return;
    memory_ = allocate_(bytes + 64);
    data_ = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_.get()) + 63) / 64 * 64);
    prefer_huge_pages(data_, bytes);
  }

 protected:
  static constexpr index_t lanes = group_size<T>;

  double bytes_of_groups() const {
    return double(sizeof(T)) * double(group_words<T>(capacity_)) * double(groups());
  }

  /// Takes rows from the members of a group, together if they lose the same ones. V: of the first of them.
  bool remove_from_group(const BatchRemoval& what, index_t g, double* V) {
    const index_t n = n_ - what.p, first = g * lanes, members = count(g);
    bool alike = true, any = false;
    for (index_t l = 0; l < members; ++l)
      alike = alike && orders_[first + l] == orders_[first] && std::equal(what.of(first), what.of(first) + what.p,
                                                                          what.of(first + l));
    if (alike)
      any = remove_rows<lanes, T>({group(g), n_}, orders_[first], what.of(first), what.p, members, V, n, n * what.p);
    for (index_t l = 0; l < members; ++l) {
      if (!alike && remove_rows<1, T>({group(g) + l, n_}, orders_[first + l], what.of(first + l), what.p, 1,
                                      V + l * n * what.p, n, 0))
        any = true;
      orders_[first + l] -= what.p;
    }
    return any;
  }

  bool is_ragged() const {
    return std::any_of(orders_.begin(), orders_.end(), [&](index_t own) { return own != n_; });
  }
  /// What a scale has made of rows that members have not becomes the identity's again.
  void clear_beyond() {
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = orders_[m]; j < n_; ++j) entry(m)(j, j) = 1;
  }
  MemberOfGroup<T> entry(index_t m) const { return {group(m / lanes), n_, m % lanes}; }

  /// The new columns of a member's matrix.
  MatrixView<const double> inserted(const BatchInsertion& what, index_t m) const {
    const index_t ld = n_ + what.p;
    return {what.X + (what.common_X ? 0 : m * ld * what.p), orders_[m] + what.p, what.p, ld};
  }
  NewRows rows_of_member(const BatchInsertion& what, index_t m) const {
    return {orders_[m], what.place(m, orders_[m])};
  }

  /// Makes every group wider by the new rows, and puts the new columns behind the rows of their members, which do not
  /// have them yet. Returns false if members fail and none may: all is as it was then, as it is after an error. Throws
  /// not_finite, overflow and bad_diagonal.
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
    const Lanes<T, bool> failed = find_columns(kernels_, group(g), columns);
    for (index_t l = 0; l < count(g); ++l) {
      const index_t m = g * lanes + l;
      if (failed[l]) pivots[m] = failing_pivot(what, m, columns);
      for (index_t q = 0; q < what.p && !failed[l]; ++q)
        for_member(m, [&] { require_normal(T(columns.corner(q, q)[l]), what.place(m, orders_[m]) + q); });
    }
    widen_group(group(g), n_, what.p);
    for (index_t l = 0; l < count(g); ++l) {
      if (failed[l]) continue;
      append_columns(columns, rows_of_member(what, g * lanes + l), wide_entry(g, l, what.p));
      append_sides(what, g * lanes + l, columns);
    }
  }
  /// The right-hand sides of a member get their new rows at the end.
  void append_sides(const BatchInsertion& what, index_t m, const NewColumns<T>& columns) const {
    const index_t own = orders_[m], p = what.p, lane = m % lanes;
    const MemberSides sides = what.sides.of(n_, p, m, n_ + p);
    for (index_t s = 0; s < what.sides.m; ++s) {
      const double* const z = sides.z + s * n_;
      double *const out = sides.out + s * (n_ + p), *const rest = sides.rest + s * p;
      std::copy_n(z, own, out);
      for (index_t q = 0; q < p; ++q) {
        double left = sides.Y[q + s * p];
        for (index_t i = 0; i < own; ++i) left -= columns.at(i, q)[lane] * z[i];
        for (index_t t = 0; t < q; ++t) left -= columns.corner(t, q)[lane] * rest[t];
        rest[q] = out[own + q] = left / columns.corner(q, q)[lane];
      }
    }
  }
  MemberOfGroup<T> wide_entry(index_t g, index_t lane, index_t p) const { return {group(g), n_ + p, lane}; }

  /// Whether an entry of the diagonal may become too small for T while appended columns go to their places. Rotations
  /// leave of it at least what the new entry is of the norm of its column, of each.
  bool may_vanish_when_placed(const BatchInsertion& what, const std::vector<index_t>& pivots) const {
    for (index_t m = 0; m < b_; ++m) {
      const NewRows rows = rows_of_member(what, m);
      if (pivots[m] >= 0 || rows.at == rows.order) continue;
      double least = ranges_[m].least;
      for (index_t q = 0; q < what.p; ++q)
        least *= double(wide_entry(m / lanes, m % lanes, what.p)(rows.order + q, rows.order + q)) /
                 std::sqrt(inserted(what, m)(rows.at + q, q));
      if (may_vanish<T>(least)) return true;
    }
    return false;
  }
  /// Gives up appended columns that members have not taken.
  void forget_appended(const BatchInsertion& what) {
    for (index_t g = 0; g < groups(); ++g) narrow_group(group(g), n_, what.p);
  }
  /// Throws bad_diagonal where an entry of the diagonal of a member is too small for T.
  void require_normal_diagonals() const {
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = 0; j < orders_[m] && !is_normal(T(ranges_[m].least)); ++j)
        for_member(m, [&] { require_normal(entry(m)(j, j), j); });
  }

  /// Members that have not failed take what is behind their rows to its places.
  void take_appended(const BatchInsertion& what, const std::vector<index_t>& pivots) {
    WorkMemory<double> memory;
    WorkMemory<T> copies;
    const index_t wide = n_ + what.p;
    for_groups(groups(), reshaping_threads(), unwatched, [&](index_t g) {
      typename WorkMemory<double>::Lease work(memory, GroupShift<T>::words(wide));
      place_in_group(what, pivots, g, copies, work.data());
      for (index_t m = g * lanes; m < g * lanes + count(g); ++m)
        if (pivots[m] < 0) keep_range(what, m);
    });
    const index_t largest = b_ > 0 ? largest_order(orders_) : wide;
    for (index_t g = 0; g < groups() && largest < wide; ++g) narrow_group(group(g), largest, wide - largest);
    n_ = largest;
  }
  /// Members of a group that have one order and one place are done together: in a copy, if they are not all.
  void place_in_group(const BatchInsertion& what, const std::vector<index_t>& pivots, index_t g, WorkMemory<T>& copies,
                      double* work) const {
    const index_t words = group_words<T>(n_ + what.p);
    const auto rows = [&](index_t l) { return rows_of_member(what, g * lanes + l); };
    Lanes<T, bool> left{};
    for (index_t l = 0; l < count(g); ++l) left[l] = pivots[g * lanes + l] < 0 && rows(l).at < rows(l).order;
    for (index_t first = 0; first < count(g); ++first) {
      if (!left[first]) continue;
      Lanes<T, bool> alike{};
      for (index_t l = first; l < count(g); ++l) {
        alike[l] = left[l] && rows(l) == rows(first);
        left[l] = left[l] && !alike[l];
      }
      if (std::count(alike.begin(), alike.end(), true) == count(g)) {
        place(what, {g * lanes, alike}, group(g), work);
        continue;
      }
      typename WorkMemory<T>::Lease copy(copies, words);
      std::copy_n(group(g), words, copy.data());
      place(what, {g * lanes, alike}, copy.data(), work);
      take_lanes(alike, copy.data(), n_ + what.p, group(g));
    }
  }
  /// Some members of a group, of which the first member of the batch is number `first`.
  struct Alike {
    index_t first;
    Lanes<T, bool> lane;
  };
  /// R: the group, or a copy of it, in which these members, of one order, take their rows to one place.
  void place(const BatchInsertion& what, const Alike& members, T* R, double* work) const {
    const index_t one = std::find(members.lane.begin(), members.lane.end(), true) - members.lane.begin();
    const NewRows rows = rows_of_member(what, members.first + one);
    for (index_t q = 0; q < what.p; ++q) {
      const GroupShift<T> shift{R, n_ + what.p, rows.order + what.p, rows.order + q, rows.at + q, work};
      kernels_.shift_left(shift);
      for (index_t l = 0; l < lanes && what.sides.m > 0; ++l)
        if (members.lane[l]) rotate_sides(what, members.first + l, shift);
    }
  }
  /// The same for right-hand sides of a member.
  void rotate_sides(const BatchInsertion& what, index_t m, const GroupShift<T>& shift) const {
    const index_t wide = n_ + what.p, lane = m % lanes;
    for (index_t s = 0; s < what.sides.m; ++s) {
      double* const z = what.sides.of(n_, what.p, m, wide).out + s * wide;
      double carried = z[shift.from];
      for (index_t i = shift.from; i-- > shift.to;) {
        const double sine = shift.sine(i)[lane], cosine = shift.cosine(i)[lane], here = z[i];
        z[i + 1] = sine * here - cosine * carried;
        carried = cosine * here + sine * carried;
      }
      z[shift.to] = carried;
    }
  }
  /// Counts the new rows of a member.
  void keep_range(const BatchInsertion& what, index_t m) {
    const NewRows rows = rows_of_member(what, m);
    const MatrixView<const double> X = inserted(what, m);
    const MemberOfGroup<T> R = wide_entry(m / lanes, m % lanes, what.p);
    Range& range = ranges_[m];
    for (index_t q = 0; q < what.p; ++q) {
      const double norm = std::sqrt(X(rows.at + q, q));
      range.most = std::max(range.most, norm * (1 + 16 * double(std::numeric_limits<T>::epsilon())));
    }
    orders_[m] += what.p;
    for (index_t j = rows.at; j < orders_[m]; ++j) range.least = std::min(range.least, double(R(j, j)));
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
  void take_over(GroupMemory& other) {
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
  T* group(index_t g) const { return data_ + g * group_words<T>(capacity_); }
  /// To start others takes as long as to copy a megabyte.
  int copying_threads() const { return bytes_of_groups() < 4e6 ? 1 : threads_for(0); }
  int solving_threads(index_t m) const { return bytes_of_groups() * double(m) < 4e6 ? 1 : threads_for(0); }

  index_t n_, capacity_, b_;
  std::vector<Range> ranges_;
  std::vector<index_t> orders_;
  const GroupKernels<T>& kernels_ = group_kernels<T>(resolve(Instructions::automatic));
  Allocate allocate_;
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
};

}  // namespace gpucholmod::cpu
