#pragma once

#include <optional>

#include "modify/batch_sides.h"
#include "modify_storage.h"

/// A member of a batch, as a storage for the contract of modifications (modify_contract.h).
namespace gpucholmod::test {

/// A function that keeps b upper factors R (n x n x b) as a batch.
using KeepBatch =
    std::function<std::unique_ptr<HeldBatch>(const double* R, index_t n, index_t b, Precision precision)>;

/// Holds the right-hand sides of `members` members: those of `asked` for member `here`, and ones for all other members,
/// to which nothing is added.
class SidesOfMembers {
 public:
  SidesOfMembers(const Modification& asked, index_t n, index_t members, index_t here)
      : asked_(asked), n_(n), here_(here), z_(n * m() * members, 1), Y_(asked.k() * m() * members),
        rss_(m() * members, 1), new_z_(z_.size(), NAN) {
    std::copy(asked.sides.z.begin(), asked.sides.z.end(), z_.begin() + here * n * m());
    std::copy(asked.sides.rss.begin(), asked.sides.rss.end(), rss_.begin() + here * m());
    for (index_t q = 0; q < asked.k(); ++q)
      for (index_t s = 0; s < m(); ++s) Y_[q + (s + here * m()) * asked.k()] = asked.sides.Y[s + q * m()];
  }
  GivenBatchSides given() { return {m(), z_.data(), Y_.data(), rss_.data(), new_z_.data(), rss_.data()}; }
  /// Returns the right-hand sides of member `here` after the modification.
  OwnedRightHandSides after() const {
    OwnedRightHandSides made = asked_.sides;
    std::copy_n(new_z_.begin() + here_ * n_ * m(), n_ * m(), made.z.begin());
    std::copy_n(rss_.begin() + here_ * m(), made.rss.size(), made.rss.begin());
    return made;
  }

 private:
  index_t m() const { return asked_.sides.m; }
  const Modification& asked_;
  index_t n_, here_;
  std::vector<double> z_, Y_, rss_, new_z_;
};

/// Stores a factor as the fourth of nine members of a batch. The other members have numbers of other sizes.
class BatchStorage : public Storage {
 public:
  BatchStorage(bool in_place, KeepBatch keep) : in_place_(in_place), keep_(std::move(keep)) {}
  void begin(const Doubles& R, Precision precision) override {
    const index_t n = R.cols();
    Doubles all(n, n * members);
    for (index_t m = 0; m < members; ++m) all.middleCols(m * n, n) = Doubles::Identity(n, n) * (m + 1);
    all.middleCols(here * n, n) = in_triangle<double>(R, Uplo::upper);
    held_ = keep_(all.data(), n, members, precision);
  }
  Doubles get() const override {
    Doubles R(held_->order(), held_->order());
    held_->download(here, Uplo::upper, R.data());
    return R;
  }
  Answer modify(const Modification& asked, const Poll& poll) override {
    const index_t n = held_->order(), k = asked.k();
    const Doubles before = get();
    Doubles V = Doubles::Zero(n, k * members);
    V.middleCols(here * k, k) = asked.V;
    std::vector<double> scale(members, 1);
    scale[here] = asked.scale * asked.scale;
    BatchTask task;
    task.k = k;
    task.weights = asked.weights.data();
    task.scale = scale.data();
    task.common_scale = false;
    task.threads = 1;
    std::unique_ptr<HeldBatch> made;
    std::vector<index_t> pivots;
    begun_ = false;
    SidesOfMembers sides(asked, n, members, here);
    Answer answer = answer_of([&] {
      std::optional<CarriedSides> along;
      if (asked.sides.m > 0) along.emplace(sides.given(), n, members, held_->precision(), task);
      held_->modify(V.data(), task, in_place_ ? nullptr : &made, pivots, poll, begun_);
      if (along) along->settle(task, pivots, held_->orders());
      for (index_t m = 0; m < members; ++m)
        EXPECT_TRUE(m == here || pivots[m] == -1);
      return pivots[here];
    });
    answer.sides = answer.is_success() ? sides.after() : asked.sides;
    if (in_place_) return answer;
    EXPECT_FALSE(begun_);
    EXPECT_TRUE(same_bits(get(), before));
    EXPECT_EQ(made != nullptr, answer.is_success());
    if (made) held_ = std::move(made);
    return answer;
  }

 private:
  static constexpr index_t members = 9, here = 3;
  bool in_place_;
  KeepBatch keep_;
  std::unique_ptr<HeldBatch> held_;
};

}  // namespace gpucholmod::test
