#pragma once

#include <deque>
#include <thread>

#include "modify_storage.h"
#include "mpi/factor.h"
#include "process_threads.h"

/// A factor over several processes, which are threads, as a storage for the contract of modifications
/// (modify_contract.h).
namespace gpucholmod::test {

/// Stores a factor dealt out to processes, which are threads. Process 0 alone is polled. All processes have to give the
/// same answer.
class ProcessStorage : public Storage {
 public:
  ProcessStorage(int size, bool in_place, cpu::Allocate allocate, mpi::MakePanels make = {})
      : in_place_(in_place), allocate_(std::move(allocate)), make_(std::move(make)), all_(size), factors_(size) {
    for (int p = 0; p < size; ++p) {
      transports_.emplace_back(all_, p);
      teams_.emplace_back(transports_.back(), [] {});
    }
  }
  void begin(const Doubles& R, Precision precision) override {
    const Doubles given = in_triangle<double>(R, Uplo::upper);
    each([&](int p) {
      const double* const own = p == 0 ? given.data() : nullptr;
      factors_[p] = mpi::deal_out(teams_[p], own, R.cols(), Uplo::upper, precision, allocate_, make_);
    });
  }
  Doubles get() const override {
    Doubles R(factors_[0]->order(), factors_[0]->order());
    each([&](int p) { factors_[p]->download(Uplo::upper, p == 0 ? R.data() : nullptr); });
    return R;
  }
  Answer modify(const Modification& asked, const Poll& poll) override {
    const int size = int(teams_.size());
    const Doubles before = get();
    std::vector<Answer> answers(size);
    std::vector<std::unique_ptr<HeldFactor>> made(size);
    std::deque<std::atomic<bool>> begun(size);
    begun_ = false;
    Request how;
    how.precision = factors_[0]->precision();
    each([&](int p) {
      std::atomic<bool>& begins = p == 0 ? begun_ : begun[p];
      const auto place = Place<double>::held(*factors_[p], in_place_ ? nullptr : &made[p], begins);
      answers[p] = answer_of_modify(place, before.cols(), asked, how, p == 0 ? poll : [](double) {});
    });
    const Answer& first = answers[0];
    for (int p = 1; p < size; ++p) {
      EXPECT_EQ(begun[p], begun_);
      EXPECT_EQ(answers[p].pivot, first.pivot);
      EXPECT_EQ(answers[p].failure.has_value(), first.failure || first.stopped);
      if (first.failure && answers[p].failure) {
        EXPECT_EQ(answers[p].failure->code, first.failure->code);
      }
      EXPECT_TRUE(same_bits(answers[p].sides, first.sides));
    }
    if (in_place_) return first;
    EXPECT_FALSE(begun_);
    EXPECT_TRUE(same_bits(get(), before));
    for (int p = 0; p < size; ++p) {
      EXPECT_EQ(made[p] != nullptr, first.is_success());
      if (made[p]) factors_[p] = std::move(made[p]);
    }
    return first;
  }

 private:
  /// Calls f(p) in a thread for each process p.
  template <class F>
  void each(F&& f) const {
    std::vector<std::thread> threads;
    for (int p = 0; p < int(factors_.size()); ++p) threads.emplace_back([&f, p] { f(p); });
    for (std::thread& one : threads) one.join();
  }

  bool in_place_;
  cpu::Allocate allocate_;
  mpi::MakePanels make_;
  Threads all_;
  std::deque<Threads::Process> transports_;
  std::deque<mpi::Team> teams_;
  std::vector<std::unique_ptr<HeldFactor>> factors_;
};

}  // namespace gpucholmod::test
