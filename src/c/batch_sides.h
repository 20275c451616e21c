#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "c/batch.h"
#include "c/right_sides.h"
#include "modify/batch_sides.h"

namespace gpucholmod::c {

/// Holds right-hand sides that are changed along with a batch: copies of the caller's, and the results.
class SidesOfMembers : NotCopied {
 public:
  /// Copies the right-hand sides of a modification by k columns; `given` is null if there are none. `task` changes the
  /// copies, and may be used as long as this object lives. Throws bad_argument, and not_finite and overflow with the
  /// member.
  SidesOfMembers(const gpucholmod_right_sides* given, const HeldBatch& R, index_t k, const Options& options,
                 BatchTask& task)
      : SidesOfMembers(given, R, k, R.order(), options) {
    checked([&] { carried_.emplace(sides_, R.order(), R.count(), R.precision(), task); }, "y");
  }
  /// Copies the right-hand sides of a call that inserts, deletes or moves rows, and makes `what` change them.
  SidesOfMembers(const gpucholmod_right_sides* given, const HeldBatch& R, const Options& options,
                 BatchInsertion& what)
      : SidesOfMembers(given, R, what.p, R.order() + what.p, options) {
    checked([&] { reshaped_.emplace(sides_, R, what); }, "b");
  }
  SidesOfMembers(const gpucholmod_right_sides* given, const HeldBatch& R, const Options& options,
                 BatchRemoval& what)
      : SidesOfMembers(given, R, 0, R.order() - what.p, options) {
    checked([&] { reshaped_.emplace(sides_, R, what); }, "b");
  }
  SidesOfMembers(const gpucholmod_right_sides* given, const HeldBatch& R, const Options& options, BatchShift& what)
      : SidesOfMembers(given, R, 0, R.order(), options) {
    checked([&] { reshaped_.emplace(sides_, R, what); }, "b");
  }

  /// Writes the results to the caller's memory after `task`, which set `pivots`, for members of these orders.
  void put_back(const BatchTask& task, const std::vector<index_t>& pivots, const std::vector<index_t>& orders) {
    if (carried_) carried_->settle(task, pivots, orders);
    put_back();
  }
  /// Writes the results to the caller's memory after rows have been inserted, deleted or moved.
  void put_back(const std::vector<index_t>& pivots) {
    if (reshaped_) reshaped_->settle(pivots);
    put_back();
  }

 private:
  /// Copies right-hand sides. k: rows of Y that are read; after: rows of the new z.
  SidesOfMembers(const gpucholmod_right_sides* given, const HeldBatch& R, index_t k, index_t after,
                 const Options& options)
      : here_(given, k > 0, options), after_(after) {
    given_ = here_.get();
    if (!given_) return;
    const index_t n = R.order(), count = R.count(), columns = given_->z.cols;
    require(count > 0 ? columns % count == 0 : columns == 0, "sides->z", "must have as many columns for each member");
    const SideViews views = views_of(*given_, n, k, std::max(n, after));
    if (columns == 0) {
      given_ = nullptr;
      return;
    }
    z_ = packed<double>(views.z.block(0, 0, n, columns));
    Y_ = packed<double>(views.Y);
    new_z_.resize(after * columns);
    for (index_t j = 0; given_->rss && j < columns; ++j)
      require(!(given_->rss[j] < 0), "sides->rss", "must not be negative");
    if (given_->rss) rss_.assign(given_->rss, given_->rss + columns);
    double* const sums = rss_.empty() ? nullptr : rss_.data();
    sides_ = {columns / count, z_.data(), Y_.data(), sums, new_z_.data(), sums};
  }
  /// Calls f() if there are right-hand sides. Errors of f() name the caller's arguments.
  template <class F>
  void checked(F&& f, const char* name_of_Y) {
    if (given_) renaming("z", "sides->z", [&] { renaming(name_of_Y, "sides->Y", f); });
  }
  void put_back() {
    if (!given_) return;
    const MatrixView<double> z = view<double>("sides->z", given_->z);
    put_numbers(new_z_, z.block(0, 0, after_, z.cols));
    std::copy(rss_.begin(), rss_.end(), given_->rss);
    here_.put_back();
  }

  SidesOnHost here_;
  index_t after_;
  const gpucholmod_right_sides* given_;
  std::vector<double> z_, Y_, new_z_, rss_;
  GivenBatchSides sides_;
  std::optional<CarriedSides> carried_;
  std::optional<ReshapedSides> reshaped_;
};

}  // namespace gpucholmod::c
