#pragma once

#include "base/held_batch.h"
#include "modify_storage.h"

/// A member of a batch that is modified, as the contract (modify_contract.h) sees it.
namespace gpucholmod::test {

/// Keeps b upper factors R (n x n x b).
using KeepBatch =
    std::function<std::unique_ptr<HeldBatch>(const double* R, index_t n, index_t b, Precision precision)>;

/// The fourth of nine members of a batch. The others have other sizes of numbers.
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
    Answer answer = answer_of([&] {
      held_->modify(V.data(), task, in_place_ ? nullptr : &made, pivots, poll, begun_);
      for (index_t m = 0; m < members; ++m)
        EXPECT_TRUE(m == here || pivots[m] == -1);
      return pivots[here];
    });
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
