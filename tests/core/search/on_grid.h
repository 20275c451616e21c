#pragma once

#include "search.h"
#include "../segment_call.h"

namespace gpucholmod::test {

/// Modifies a factor in all ways that the simulated grid has: on every card, in place and not, by panels, on several
/// ranks, in both precisions.
class OnTheGrid : public Subject {
 public:
  std::string begin(const Stored<double>& R, Random& random) override {
    const auto one_of = [&](int count) { return int(random.uniform() * count); };
    single_ = one_of(5) == 0;
    how_ = {};
    how_.card = Simulated(one_of(3));
    how_.into = one_of(3) == 0 ? Into::place : Into::other_memory;
    how_.panels = one_of(5) == 0 ? 1 : 0;
    how_.finishers = 1 + one_of(3);
    if (how_.panels == 0 && how_.card == Simulated::clusters && one_of(4) == 0) {
      how_.ranks = 2 + one_of(2);
      how_.workers = block_columns::WORKERS_OF_STRIP;
      how_.lead = one_of(how_.ranks);
    }
    if (single_ && how_.card == Simulated::data_centre) how_.card = Simulated::clusters;
    R_ = single_ ? Stored<double>(R.cast<float>().cast<double>()) : R;
    constexpr const char* cards[] = {"clusters", "data_centre", "graphics"};
    return std::string(cards[int(how_.card)]) + (how_.into == Into::place ? ", in place" : "") +
           (how_.panels ? ", by panels" : "") + ", ranks " + std::to_string(how_.ranks) + (single_ ? ", single" : "");
  }
  Precision precision() const override { return single_ ? Precision::single : Precision::double_; }
  Stored<double> get() const override { return R_; }
  bool modify(const Stored<double>& V, index_t removed) override {
    if (single_) return modify_as<float>(V, removed);
    // Passes of 32 columns are compiled for the card with clusters alone.
    if (how_.card != Simulated::clusters && block_columns::PassColumns{0, V.cols(), removed}.width() > 16) {
      SegmentsRun how = how_;
      how.card = Simulated::clusters;
      return modify_as<double>(V, removed, how);
    }
    return modify_as<double>(V, removed);
  }

 private:
  template <class T>
  bool modify_as(const Stored<double>& V, index_t removed) { return modify_as<T>(V, removed, how_); }
  template <class T>
  bool modify_as(const Stored<double>& V, index_t removed, SegmentsRun how) {
    const index_t k = V.cols();
    Stored<double> R = R_;
    for (const block_columns::PassColumns& pass : block_columns::passes_of(k, removed, block_columns::most_columns)) {
      how.removed = pass.removed;
      const SegmentsResult<T> result = run_segments<T>({Sign::update, R, V.middleCols(pass.first, pass.count)}, how);
      if (result.done.pivot >= 0) return false;
      R = result.R.template cast<double>();
    }
    R_ = R;
    return true;
  }

  bool single_ = false;
  SegmentsRun how_;
  Stored<double> R_;
};

}  // namespace gpucholmod::test
