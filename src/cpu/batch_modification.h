#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/held_batch.h"
#include "base/range.h"
#include "base/tuning.h"
#include "cpu/batch_columns.h"
#include "cpu/group_layout.h"

// Functions that run once in a call, or for few members, are compiled for size.
#define SELDOM __attribute__((cold, noinline))

namespace gpucholmod::cpu {

/// Lends pieces of memory to threads, as many pieces as there are threads. A lease is best kept for many groups: a
/// piece moves to the cache of the thread that takes it.
template <class T>
class WorkMemory {
 public:
  class Lease : NotCopied {
   public:
    Lease(WorkMemory& from, index_t words) : from_(from) {
      const std::lock_guard<std::mutex> lock(from.mutex_);
      if (!from.free_.empty()) {
        memory_.swap(from.free_.back());
        from.free_.pop_back();
      }
      if (index_t(memory_.size()) < words + line) memory_.resize(words + line);
    }
    ~Lease() {
      const std::lock_guard<std::mutex> lock(from_.mutex_);
      try {
        from_.free_.push_back(std::move(memory_));
      } catch (const std::bad_alloc&) {  // then the piece is freed
      }
    }
    T* data() {
      return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 63) / 64 * 64);
    }

   private:
    static constexpr index_t line = 64 / sizeof(T);
    WorkMemory& from_;
    std::vector<T> memory_;
  };

 private:
  std::mutex mutex_;
  std::vector<std::vector<T>> free_;
};

/// The fate of a member.
enum class Fate : char {
  grouped,  ///< member that is modified with its group
  apart,    ///< member modified by itself, whose new factor is kept in `apart_` until it is copied to its group
  failed    ///< member that stays as it is
};

/// Runs one modification of a batch, computed in T. The groups belong to the caller.
template <class T>
class BatchModification : NotCopied {
 public:
  using Columns = std::function<const double*(index_t member)>;
  using Sides = std::function<MemberSides(index_t member)>;

  /// Takes `task` and the functions that return V and the right-hand sides of a member, `sides` called only if
  /// task.sides.m > 0. `task` and the returned arrays have to outlive this object. pivots (b) <- -1.
  SELDOM BatchModification(index_t n, index_t b, const BatchTask& task, Columns V, Sides sides,
                           std::vector<index_t>& pivots);

  /// Checks V of group g, and modifies apart the members whose numbers come near the ends of the range, or all members
  /// if V is wide. ranges (b): the bounds of each factor. R: the group. Must be called first for each group. Throws
  /// not_finite, overflow and bad_diagonal.
  void prepare(index_t g, const std::vector<Range>& ranges, const T* R);

  index_t groups() const { return (b_ + lanes - 1) / lanes; }
  int threads() const { return threads_; }
  /// Returns whether columns are taken away, so that a result may not be positive definite.
  bool removes() const { return removes_; }
  bool failed(index_t member) const { return fate_[member] == Fate::failed; }
  bool any_failed() const {
    return std::any_of(fate_.begin(), fate_.end(), [](Fate fate) { return fate == Fate::failed; });
  }

  /// Returns work memory for several groups, one after the other.
  typename WorkMemory<T>::Lease work_memory() { return {memory_, pass_words() + (removes_ ? tested_words() : 0)}; }
  /// Modifies group g from R to `out`, which is not R. A member that fails is copied to `out` as it is in R.
  void modify(index_t g, const T* R, T* out, T* work);
  /// Tests group g without changing R (a dry run): finds the members that fail or are modified apart.
  void test(index_t g, const T* R, T* work);
  /// Modifies group g in place; if columns are taken away, after test().
  void modify_in_place(index_t g, T* R, T* work);

  /// Returns the bounds of the new factors.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  static constexpr index_t lanes = group_size<T>;
  static constexpr Precision precision = precision_of<T>;
  /// The rest of a pass for a member that has left the pass.
  struct Rest {
    index_t lane, row;
    std::vector<double> V;  ///< rest of V, n - row x columns of the pass
    SidesAlone sides;       ///< right-hand sides of rows from `row` on
  };

  index_t pass_width(index_t first) const {
    const index_t left = task_.k - first;
    return left > 4 && kernels_.columns == 8 ? 8 : left > 2 ? 4 : std::max<index_t>(left, 1);
  }
  /// The aim of the passes over a group: its modification, or a dry run.
  enum class Aim { result, verdict };

  GroupPass<T> lay_out(index_t g, index_t first, Aim aim, T* work);
  /// Adds z and Y of grouped members to `pass`, which begins with column `first` of V. Loads z for the first pass only;
  /// later passes modify it further.
  SELDOM void lay_out_sides(index_t g, index_t first, GroupPass<T>& pass, T* z);
  /// Runs one pass. Returns the members that leave the pass, with the rest of the pass for each.
  std::vector<Rest> run(GroupPass<T>& pass);
  SELDOM Rest take_out(GroupPass<T>& pass, index_t row, index_t lane) const;
  std::vector<index_t> run_passes(index_t g, const T* R, T* out, Aim aim, T* work);
  SELDOM void finish(index_t g, index_t first, Rest& rest, const GroupPass<T>& pass);
  /// Copies what a pass has left of Y, and after the last pass z, to the caller's arrays.
  SELDOM void put_sides_of_group(index_t g, index_t first, const GroupPass<T>& pass) const;
  /// Computes the new factor of a member of group R by itself, or finds that the member fails.
  SELDOM void modify_apart(index_t member, const T* R);
  /// Returns the smallest entry of the diagonal of a member of group R.
  SELDOM double least_of(index_t member, const T* R) const;
  SELDOM void put_apart(index_t g, const T* R, T* out);
  /// Returns whether a member of group g is modified with its group.
  bool any_grouped(index_t g) const {
    return std::any_of(fate_.begin() + g * lanes, fate_.begin() + std::min(b_, (g + 1) * lanes),
                       [](Fate fate) { return fate == Fate::grouped; });
  }
  void put(index_t g, const T* R, T* out);
  bool are_far(const ColumnOrder& order, index_t member) const;
  /// Calls f(lane, member) for the members of group g that are modified with the group.
  template <class F>
  void for_grouped(index_t g, F&& f) const {
    for (index_t m = g * lanes; m < std::min(b_, (g + 1) * lanes); ++m)
      if (fate_[m] == Fate::grouped) f(m - g * lanes, m);
  }
  const ColumnOrder& order_of(index_t member, ColumnOrder& own) const {
    if (same_columns_) return common_;
    own.find(task_, member);
    return own;
  }
  index_t columns_words() const { return (n_ + task_.sides.m + 3) * kernels_.columns * lanes; }
  index_t pass_words() const { return columns_words() + n_ * task_.sides.m * lanes; }
  bool one_pass() const { return pass_width(0) >= task_.k; }
  /// Returns the size of the result that test() makes and drops.
  index_t tested_words() const { return one_pass() ? GroupPass<T>::discarded * lanes : group_words<T>(n_); }

  index_t n_, b_;
  const BatchTask& task_;
  const GroupKernels<T>& kernels_;
  Columns V_;
  Sides sides_;
  std::vector<index_t>& pivots_;
  bool removes_ = false, same_columns_;
  int threads_;
  ColumnOrder common_;
  std::vector<Fate> fate_;
  std::vector<Range> ranges_;
  std::mutex mutex_;
  std::map<index_t, std::vector<double>> apart_;
  WorkMemory<T> memory_;
};

extern template class BatchModification<float>;
extern template class BatchModification<double>;

}  // namespace gpucholmod::cpu
