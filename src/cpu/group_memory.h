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

/// Holds the groups of a batch one after the other, from a cache line on; inserts, deletes and moves rows of members.
template <class T>
class GroupMemory {
 public:
  /// Allocates memory for b members of order n, in groups with room for `capacity` rows.
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

  /// Removes rows from the members of a group, together if all members lose the same rows. V begins with the columns of
  /// the group's first member. Returns whether V has an entry that is not zero.
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
  /// Sets the diagonal beyond the order of each member to 1 again, after a scale has multiplied it.
  void clear_beyond() {
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = orders_[m]; j < n_; ++j) entry(m)(j, j) = 1;
  }
  MemberOfGroup<T> entry(index_t m) const { return {group(m / lanes), n_, m % lanes}; }

  /// Returns the new columns of a member's matrix.
  MatrixView<const double> inserted(const BatchInsertion& what, index_t m) const {
    const index_t ld = n_ + what.p;
    return {what.X + (what.common_X ? 0 : m * ld * what.p), orders_[m] + what.p, what.p, ld};
  }
  NewRows rows_of_member(const BatchInsertion& what, index_t m) const {
    return {orders_[m], what.place(m, orders_[m])};
  }

  /// Widens every group by the new rows, and puts the new columns behind the rows of their members, whose orders stay
  /// as they are. Returns false if members fail and none may fail. After false and after an error, all groups are as
  /// they were. Throws not_finite, overflow and bad_diagonal.
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
  /// Appends the new rows of a member's right-hand sides at the end.
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

  /// Returns whether an entry of the diagonal may become too small for T while appended columns move to their places.
  /// For each new column, rotations multiply an entry by no less than the column's own diagonal entry over its norm.
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
  /// Drops appended columns that members have not taken.
  void forget_appended(const BatchInsertion& what) {
    for (index_t g = 0; g < groups(); ++g) narrow_group(group(g), n_, what.p);
  }
  /// Throws bad_diagonal if an entry of the diagonal of a member is too small for T.
  void require_normal_diagonals() const {
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = 0; j < orders_[m] && !is_normal(T(ranges_[m].least)); ++j)
        for_member(m, [&] { require_normal(entry(m)(j, j), j); });
  }

  /// Moves the appended rows and columns of each member that has not failed to their places.
  void take_appended(const BatchInsertion& what, const std::vector<index_t>& pivots) {
    WorkMemory<double> memory;
    WorkMemory<T> copies;
    const index_t wide = n_ + what.p;
    for_groups(groups(), reshaping_threads(), unwatched, [&](index_t g) {
      typename WorkMemory<double>::Lease work(memory, GroupShift<T>::words(wide));
      const auto move_of = [&](index_t m) {
        const NewRows rows = rows_of_member(what, m);
        return pivots[m] >= 0 ? MovedRows{} : MovedRows{rows.order + what.p, rows.order, rows.at, what.p};
      };
      const auto z_of = [&](index_t m) {
        return MatrixView<double>{what.sides.of(n_, what.p, m, wide).out, wide, what.sides.m, wide};
      };
      move_rows(g, wide, move_of, z_of, copies, work.data());
      for (index_t m = g * lanes; m < g * lanes + count(g); ++m)
        if (pivots[m] < 0) keep_range(what, m);
    });
    const index_t largest = b_ > 0 ? largest_order(orders_) : wide;
    for (index_t g = 0; g < groups() && largest < wide; ++g) narrow_group(group(g), largest, wide - largest);
    n_ = largest;
  }
  /// Moves rows of the members of a group, whose triangles have order n. move_of(m): the rows of member m that move;
  /// z_of(m): its right-hand sides, whose rows move with those of R. Members with the same move are rotated together:
  /// in a copy of the group, unless all members have the same move.
  template <class MoveOf, class SidesOf>
  void move_rows(index_t g, index_t n, MoveOf&& move_of, SidesOf&& z_of, WorkMemory<T>& copies, double* work) const {
    Lanes<T, bool> left{};
    Lanes<T, MovedRows> moves{};
    for (index_t l = 0; l < count(g); ++l) {
      moves[l] = move_of(g * lanes + l);
      left[l] = moves[l].from != moves[l].to;
    }
    const auto move_alike = [&](const Lanes<T, bool>& alike, const MovedRows& move, T* R) {
      for (index_t q = 0; q < move.count; ++q) {
        const GroupShift<T> shift{R, n, move.order, move.from + q, move.to + q, work};
        kernels_.shift(shift);
        for (index_t l = 0; l < count(g); ++l) {
          if (!alike[l]) continue;
          const MatrixView<double> z = z_of(g * lanes + l);
          for (index_t s = 0; s < z.cols; ++s) rotate_side(shift, l, z.col(s));
        }
      }
    };
    for (index_t first = 0; first < count(g); ++first) {
      if (!left[first]) continue;
      Lanes<T, bool> alike{};
      for (index_t l = first; l < count(g); ++l) {
        alike[l] = left[l] && moves[l] == moves[first];
        left[l] = left[l] && !alike[l];
      }
      if (std::count(alike.begin(), alike.end(), true) == count(g)) {
        move_alike(alike, moves[first], group(g));
        continue;
      }
      typename WorkMemory<T>::Lease copy(copies, group_words<T>(n));
      std::copy_n(group(g), group_words<T>(n), copy.data());
      move_alike(alike, moves[first], copy.data());
      take_lanes(alike, copy.data(), n, group(g));
    }
  }

  /// Returns whether an entry of the diagonal may become too small for T when rows move. If a row moves up, rotations
  /// multiply an entry by no less than the moved row's diagonal entry over the norm of its column. If a row moves down,
  /// only its own entry becomes smaller: each passed row multiplies the entry by no less than the passed row's diagonal
  /// entry over the norm of the passed row's column.
  bool may_vanish_when_moved(const BatchShift& what) const {
    for (index_t m = 0; m < b_; ++m) {
      const index_t from = what.from_of(m), to = what.to_of(m);
      const double most = ranges_[m].most;
      double least = ranges_[m].least;
      if (from > to) least *= double(entry(m)(from, from)) / most;
      if (from < to) least = double(entry(m)(from, from));
      for (index_t i = from + 1; i <= to; ++i) least *= double(entry(m)(i, i)) / most;
      if (from != to && may_vanish<T>(least)) return true;
    }
    return false;
  }
  /// Moves a row and column of each member. Right-hand sides must have been copied to their results before.
  void move_members(const BatchShift& what) {
    WorkMemory<double> memory;
    WorkMemory<T> copies;
    for_groups(groups(), reshaping_threads(), unwatched, [&](index_t g) {
      typename WorkMemory<double>::Lease work(memory, GroupShift<T>::words(n_));
      const auto move_of = [&](index_t m) { return MovedRows{orders_[m], what.from_of(m), what.to_of(m)}; };
      const auto z_of = [&](index_t m) {
        return MatrixView<double>{what.sides.of(n_, 0, m).out, n_, what.sides.m, n_};
      };
      move_rows(g, n_, move_of, z_of, copies, work.data());
      for (index_t m = g * lanes; m < g * lanes + count(g); ++m)
        for (index_t j = 0; j < orders_[m]; ++j) ranges_[m].least = std::min(ranges_[m].least, double(entry(m)(j, j)));
    });
  }
  /// Updates the order and the bounds of a member for its new rows.
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
  /// Returns the failing pivot of a member whose corner is not positive definite: the last row of the first leading
  /// minor that is not.
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
  /// Returns the number of threads that copy groups: 1 for less than 4 MB, as starting the others takes as long as
  /// copying 1 MB.
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
