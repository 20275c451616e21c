#pragma once

#include <optional>
#include <vector>

#include "c/batch.h"
#include "c/right_sides.h"
#include "modify/batch_sides.h"

namespace gpucholmod::c {

/// Right-hand sides that come along with a modification of a batch: copies of the caller's, and the results.
class SidesOfMembers : NotCopied {
 public:
  /// given: null if there are none; k: columns of V. `task` takes them along as long as this lives. Throws
  /// bad_argument, and not_finite and overflow of a member.
  SidesOfMembers(const gpucholmod_right_sides* given, const HeldBatch& R, index_t k, const Options& options,
                 BatchTask& task)
      : here_(given, k > 0, options) {
    given_ = here_.get();
    if (!given_) return;
    const index_t n = R.order(), count = R.count(), columns = given_->z.cols;
    require(count > 0 ? columns % count == 0 : columns == 0, "sides->z", "must have as many columns for each member");
    const SideViews views = views_of(*given_, n, k, n);
    if (columns == 0) {
      given_ = nullptr;
      return;
    }
    z_ = packed<double>(views.z);
    Y_ = packed<double>(views.Y);
    new_z_.resize(z_.size());
    for (index_t j = 0; given_->rss && j < columns; ++j)
      require(!(given_->rss[j] < 0), "sides->rss", "must not be negative");
    if (given_->rss) rss_.assign(given_->rss, given_->rss + columns);
    double* const sums = rss_.empty() ? nullptr : rss_.data();
    const GivenBatchSides sides{columns / count, z_.data(), Y_.data(), sums, new_z_.data(), sums};
    renaming("z", "sides->z", [&] {
      renaming("y", "sides->Y", [&] { carried_.emplace(sides, n, count, R.precision(), task); });
    });
  }

  /// After `task`, which told `pivots` of members of these orders: writes the results into the caller's memory.
  void put_back(const BatchTask& task, const std::vector<index_t>& pivots, const std::vector<index_t>& orders) {
    if (!given_) return;
    carried_->settle(task, pivots, orders);
    put_numbers(new_z_, view<double>("sides->z", given_->z));
    std::copy(rss_.begin(), rss_.end(), given_->rss);
    here_.put_back();
  }

 private:
  SidesOnHost here_;
  const gpucholmod_right_sides* given_;
  std::vector<double> z_, Y_, new_z_, rss_;
  std::optional<CarriedSides> carried_;
};

}  // namespace gpucholmod::c
