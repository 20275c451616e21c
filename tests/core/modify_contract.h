#pragma once

#include "modify_problem.h"

/// The contract of modifications: the properties of a modification that hold for every storage of a factor. A storage
/// takes part by a line in test_modify_contract.cpp or, on a GPU, in cuda/test_modify_contract.cpp.
namespace gpucholmod::test {

class ModifyContract : public testing::TestWithParam<StorageKind> {
 protected:
  struct Call {
    Doubles before;
    Modification asked;
    std::unique_ptr<Storage> storage;
    Answer answer;
  };
  const StorageKind& kind() const { return GetParam(); }
  std::unique_ptr<Storage> stored(const Doubles& R, Precision precision) const {
    std::unique_ptr<Storage> storage = kind().make();
    storage->begin(R, precision);
    return storage;
  }
  Call call(const Doubles& R, const Modification& asked, Precision precision) const {
    Call made{R, asked, stored(R, precision), {}};
    made.answer = made.storage->modify(asked, no_poll);
    return made;
  }
  /// Returns whether the storage has the range of floats.
  bool is_narrow(Precision precision) const { return precision == Precision::single && !kind().always_doubles; }

  /// Calls f(precision) for each precision in which the storage computes.
  template <class F>
  void each_precision(F&& f) const {
    for (const Precision precision : kind().computes) {
      SCOPED_TRACE(precision == Precision::single ? "single" : "double");
      f(precision);
    }
  }
  /// Calls f(problem, asked) without right-hand sides and, if the storage takes right-hand sides, with some. A
  /// sanitizer makes a problem ten times as expensive; then calls f for every other problem only, and with right-hand
  /// sides alone.
  template <class F>
  void each_problem(std::vector<index_t> orders, std::vector<index_t> counts, std::vector<Change> changes,
                    Precision precision, double scale, F&& f) const {
    int number = 0;
    for (const index_t n : orders)
      for (const index_t k : counts) {
        ++number;  // so that no change is always left out
        for (const Change change : changes) {
          if (sanitized && number++ % 2 != 0) continue;
          SCOPED_TRACE(text(change) + ", n " + std::to_string(n) + ", k " + std::to_string(k) + ", scale " +
                       std::to_string(scale));
          const ContractProblem& p = contract_problem(n, k, change, precision, scale);
          if (!sanitized || !kind().takes_sides) f(p, p.without_sides());
          if (kind().takes_sides) f(p, p.asked);
        }
      }
  }

  void expect_success(const Call& call, Precision precision) const {
    ASSERT_TRUE(call.answer.is_success());
    if (!kind().in_place) { EXPECT_FALSE(call.storage->begun()); }
    expect_modified(call.before, call.asked, call.storage->get(), call.answer.sides, epsilon(precision));
  }
  /// Expects a failed call to have changed no bit of the factor or of the right-hand sides.
  void expect_unchanged(const Call& call) const {
    EXPECT_FALSE(call.storage->begun());
    EXPECT_TRUE(same_bits(call.storage->get(), call.before));
    EXPECT_TRUE(same_bits(call.answer.sides, call.asked.sides));
  }
  /// Expects an error that names row and col of the upper factor or of V, from 1.
  void expect_failure(const Call& call, ErrorCode code, index_t row, index_t col) const {
    ASSERT_TRUE(call.answer.failure);
    EXPECT_STREQ(name(call.answer.failure->code), name(code));
    EXPECT_EQ(call.answer.failure->row, row);
    EXPECT_EQ(call.answer.failure->col, col);
  }
  /// Returns whether V, weighted and scaled, does not fit a float although the storage requires that. If so, expects an
  /// error.
  bool expect_refused(const Call& call, Precision precision) const {
    const Modification& asked = call.asked;
    if (kind().has_range_of_scalar || precision != Precision::single) return false;
    if (asked.scale == 1 && asked.has_sorted_signs()) return false;
    bool fits = true;
    for (index_t q = 0; q < asked.k(); ++q) {
      const double by = std::sqrt(std::abs(asked.weights[q])) / asked.scale;
      fits = fits && asked.V.col(q).cwiseAbs().maxCoeff() * by <= double(std::numeric_limits<float>::max());
    }
    if (fits) return false;
    EXPECT_TRUE(call.answer.failure && call.answer.failure->code == ErrorCode::overflow);
    expect_unchanged(call);
    return true;
  }
};

class ModifyContractPolled : public ModifyContract {};
class ModifyContractSameBits : public ModifyContract {};

TEST_P(ModifyContract, BackwardErrorIsSmall) {
  each_precision([&](Precision precision) {
    each_problem({1, 9, 65, 130}, {1, 3, 16, 33}, all_changes, precision, 1, [&](const auto& p, const auto& asked) {
      expect_success(call(p.R, asked, precision), precision);
    });
  });
}

TEST_P(ModifyContract, Scales) {
  each_precision([&](Precision precision) {
    for (const double scale : {0.5, 3.0, 0x1p-30, 0x1p30})
      each_problem({1, 9, 65}, {1, 3, 16}, all_changes, precision, scale, [&](const auto& p, const auto& asked) {
        expect_success(call(p.R, asked, precision), precision);
      });
  });
}

/// Checks that R and V multiplied by a power of 2 give the same digits of R~ and of right-hand sides.
TEST_P(ModifyContract, NumbersNearTheEndsOfTheRangeKeepTheirDigits) {
  each_precision([&](Precision precision) {
    const std::array sizes = is_narrow(precision) ? std::array{0x1p60, 0x1p-58, 0x1p100, 0x1p-90}
                                                  : std::array{0x1p498, 0x1p-465, 0x1p660, 0x1p-660};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double size = sizes[i], scale = i % 2 == 0 ? 1 : 0.5;
      each_problem({1, 9, 130}, {1, 3, 16}, all_changes, precision, scale, [&](const auto& p, Modification asked) {
        const Call plain = call(p.R, asked, precision);
        asked.V *= size;
        const Call extreme = call(p.R * size, asked, precision);
        if (expect_refused(extreme, precision)) return;
        ASSERT_TRUE(extreme.answer.is_success());
        if (kind().keeps_digits) {
          EXPECT_TRUE(same_bits(extreme.storage->get(), Doubles(plain.storage->get() * size)));
          EXPECT_TRUE(same_bits(extreme.answer.sides, plain.answer.sides));
        } else {
          expect_success(extreme, precision);
        }
      });
    }
  });
}

/// Checks a diagonal entry that an update makes too large, and an entry off the diagonal that a scale makes too large.
TEST_P(ModifyContract, AnEntryBeyondTheRangeIsOverflow) {
  each_precision([&](Precision precision) {
    const double largest = is_narrow(precision) ? 0x1p127 : 0x1p1023;
    const auto expect_overflow = [&](const Doubles& R, const Modification& asked, index_t row, index_t col) {
      const Call made = call(R, asked, precision);
      if (expect_refused(made, precision)) return;
      if (kind().lower) std::swap(row, col);
      if (!kind().names_row_of_overflow) row = 0;
      expect_failure(made, ErrorCode::overflow, row, col);
      if (!kind().loses_what_overflows || !made.storage->begun()) return expect_unchanged(made);
      EXPECT_TRUE(same_bits(made.answer.sides, asked.sides));
    };
    each_problem({1, 9, 70}, {0, 1, 3, 17}, {Change::update}, precision, 1, [&](const auto& p, Modification asked) {
      const index_t n = p.R.cols(), k = asked.k(), j = n / 2;
      Doubles R = Doubles::Identity(n, n) * largest;
      asked.V.setZero();
      if (k > 0) {
        asked.V(j, k - 1) = 1.75 * largest;
        expect_overflow(R, asked, j + 1, j + 1);
        asked.V(j, k - 1) = largest / 4;
      }
      if (n == 1) return;
      R /= 4;
      R(0, n - 1) = 0.75 * largest;
      asked.scale = 3;
      expect_overflow(R, asked, 1, n);
    });
  });
}

TEST_P(ModifyContract, ADowndateThatCannotBeDoneNamesItsPivot) {
  each_precision([&](Precision precision) {
    for (const double size : {1.0, is_narrow(precision) ? 0x1p60 : 0x1p498})
      each_problem({1, 9, 65, 200}, {1, 3, 16, 40}, {Change::downdate, Change::mixed, Change::weighted}, precision, 1,
                   [&](const auto& p, const auto& possible) {
                     const index_t n = p.R.cols();
                     for (const index_t j : {index_t(0), n / 2, n - 1}) {
                       Modification asked = possible;
                       index_t q = asked.k() - 1;
                       while (asked.weights[q] >= 0) --q;
                       asked.V.col(q).setZero();
                       asked.V(j, q) = 64 * p.R.norm();
                       asked.V *= size;
                       const Call made = call(p.R * size, asked, precision);
                       if (expect_refused(made, precision)) return;
                       EXPECT_FALSE(made.answer.failure);
                       EXPECT_EQ(made.answer.pivot, j);
                       expect_unchanged(made);
                     }
                   });
  });
}

/// Checks that a factor that small scales bring back from the end of the range is as good as a new factor with the same
/// numbers.
TEST_P(ModifyContract, AHugeNumberThatIsGoneCountsNoLonger) {
  each_precision([&](Precision precision) {
    const int e = is_narrow(precision) ? 50 : 500;
    for (const index_t k : {0, 3})
      each_problem({1, 9, 130}, {3}, {Change::update}, precision, 1, [&](const auto& p, const auto& asked) {
        const double back = std::ldexp(1.0, -e);
        const auto storage = stored(p.R / back / back, precision);
        const Modification smaller =
            contract_problem(p.R.cols(), k, Change::update, precision, back).without_sides();
        for (int i = 0; i < 2; ++i) ASSERT_TRUE(storage->modify(smaller, no_poll).is_success());
        const Call fresh = call(storage->get(), asked, precision);
        const Answer answer = storage->modify(asked, no_poll);
        ASSERT_TRUE(answer.is_success());
        EXPECT_EQ(storage->begun(), fresh.storage->begun());
        EXPECT_TRUE(same_bits(storage->get(), fresh.storage->get()));
        EXPECT_TRUE(same_bits(answer.sides, fresh.answer.sides));
        expect_success(fresh, precision);
      });
  });
}

/// Checks that a call that fails because of a huge number changes neither the factor nor the bounds known of its
/// numbers.
TEST_P(ModifyContract, AFailedCallLeavesNoTrace) {
  each_precision([&](Precision precision) {
    const double huge = precision == Precision::single ? 0x1p100 : 0x1p1000;
    each_problem({1, 9, 130}, {3}, {Change::update}, precision, 1, [&](const auto& p, const auto& asked) {
      Modification failing = asked;
      failing.weights.back() = -1;
      failing.V.col(2) = Doubles::Identity(p.R.cols(), p.R.cols()).col(p.R.cols() / 2) * huge;
      const Call failed = call(p.R, failing, precision), fresh = call(p.R, asked, precision);
      EXPECT_EQ(failed.answer.pivot, p.R.cols() / 2);
      expect_unchanged(failed);
      const Answer answer = failed.storage->modify(asked, no_poll);
      EXPECT_EQ(failed.storage->begun(), fresh.storage->begun());
      EXPECT_TRUE(same_bits(failed.storage->get(), fresh.storage->get()));
      EXPECT_TRUE(same_bits(answer.sides, fresh.answer.sides));
      expect_success(fresh, precision);
    });
  });
}

/// Checks that the error names the first entry that is not finite, in the order of V's columns as they are given.
TEST_P(ModifyContract, AColumnThatIsNotFiniteIsAnError) {
  constexpr double infinite = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto expect_not_finite = [&](const Call& made) {
    const Modification& asked = made.asked;
    index_t col = -1;
    const auto is_added = [&](index_t q) { return asked.weights[q] >= 0; };
    for (index_t q = asked.k() - 1; q >= 0; --q) {
      if (asked.V.col(q).allFinite()) continue;
      if (col < 0 || !kind().names_added_columns_first || is_added(q) || !is_added(col)) col = q;
    }
    if (col < 0) {
      EXPECT_FALSE(made.answer.failure);
      return;
    }
    index_t row = 0;
    while (std::isfinite(asked.V(row, col))) ++row;
    expect_failure(made, ErrorCode::not_finite, row + 1, col + 1);
    expect_unchanged(made);
  };
  each_precision([&](Precision precision) {
    for (const double scale : {1.0, 0.5})
      each_problem({1, 130}, {3, 17}, all_changes, precision, 1, [&](const auto& p, const auto& good) {
        for (const double bad : {-infinite, nan})
          for (const index_t q : {index_t(0), good.k() - 2, good.k() - 1}) {
            Modification asked = good;
            asked.scale = scale;
            asked.V(p.R.cols() / 2, q) = bad;
            expect_not_finite(call(p.R, asked, precision));
            asked.V(0, good.k() - 1) = nan;
            expect_not_finite(call(p.R, asked, precision));
          }
      });
  });
}

TEST_P(ModifyContract, WithoutColumnsThereIsTheScale) {
  each_precision([&](Precision precision) {
    for (const double scale : {1.0, 0.5, 4.0, 0x1p-30})
      each_problem({1, 9, 130}, {0}, {Change::update}, precision, scale, [&](const auto& p, const auto& asked) {
        const Call made = call(p.R, asked, precision);
        ASSERT_TRUE(made.answer.is_success());
        EXPECT_TRUE(same_bits(made.storage->get(), Doubles(scale * p.R)));
        OwnedRightHandSides expected = asked.sides;
        for (double& x : expected.z) x *= scale;
        for (double& x : expected.rss) x *= scale * scale;
        EXPECT_TRUE(same_bits(made.answer.sides, expected));
      });
  });
}

/// Checks a factor of order 0, whose right-hand sides consist of residual sums of squares alone.
TEST_P(ModifyContract, AFactorWithoutRows) {
  each_precision([&](Precision precision) {
    for (const double scale : {1.0, 0.5})
      each_problem({0}, {0, 3}, all_changes, precision, scale, [&](const auto& p, const auto& asked) {
        expect_success(call(p.R, asked, precision), precision);
      });
  });
}

/// Checks that a poll that throws before the factor has begun to change leaves everything as it was.
TEST_P(ModifyContractPolled, APollThatThrowsBeforeAnythingHasBegun) {
  each_precision([&](Precision precision) {
    for (const double size : {1.0, is_narrow(precision) ? 0x1p60 : 0x1p498})
      each_problem({9, 130}, {1, 16}, all_changes, precision, 1, [&](const auto& p, Modification asked) {
        asked.V *= size;
        Call made{p.R * size, asked, stored(p.R * size, precision), {}};
        made.answer = made.storage->modify(asked, [&](double) {
          if (!made.storage->begun()) throw Stop();
        });
        if (expect_refused(made, precision)) return;
        if (size == 1 && asked.removed() == 0 && !kind().polls_before_an_update) {
          EXPECT_TRUE(made.storage->begun());
          return expect_success(made, precision);
        }
        if (!kind().always_polls && !made.answer.stopped) return expect_success(made, precision);
        EXPECT_TRUE(made.answer.stopped);
        expect_unchanged(made);
      });
  });
}

TEST_P(ModifyContractSameBits, AsAnotherStorage) {
  const std::vector<index_t> orders = {1, 9, 65, 130};
  each_precision([&](Precision precision) {
    for (const double scale : {1.0, 0.5})
      each_problem(orders, {1, 3, 16, 33}, all_changes, precision, scale, [&](const auto& p, const auto& asked) {
        const Call made = call(p.R, asked, precision);
        const auto other = kind().same_bits_as();
        other->begin(p.R, precision);
        const Answer expected = other->modify(asked, no_poll);
        ASSERT_TRUE(made.answer.is_success());
        EXPECT_TRUE(same_bits(made.storage->get(), other->get()));
        EXPECT_TRUE(same_bits(made.answer.sides, expected.sides));
      });
  });
}

}  // namespace gpucholmod::test
