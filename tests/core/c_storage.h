#pragma once

#include <optional>

#include "c_call.h"
#include "modify_storage.h"
#include "padded.h"

/// A factor that is modified by the C interface, as a storage for the contract of modifications (modify_contract.h).
namespace gpucholmod::test {

inline Failure failure_of(const gpucholmod_status& status) {
  const auto code = [&] {
    switch (status.code) {
      case GPUCHOLMOD_NOT_FINITE: return ErrorCode::not_finite;
      case GPUCHOLMOD_BAD_DIAGONAL: return ErrorCode::bad_diagonal;
      case GPUCHOLMOD_OVERFLOW: return ErrorCode::overflow;
      default: return ErrorCode::bad_argument;
    }
  }();
  return {code, status.row, status.col};
}

/// Copies the verdict of a status to `answer`. Returns whether the factor is half modified.
inline bool tell(const gpucholmod_status& status, Answer& answer) {
  if (status.code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE) answer.pivot = status.pivot - 1;
  else if (status.code != GPUCHOLMOD_OK) answer.failure = failure_of(status);
  return status.code == GPUCHOLMOD_HALF_MODIFIED;
}

/// Describes a factor: in the caller's memory, or in that of a handle on `device`.
struct CFactor {
  bool by_handle;
  int form;
  int device = GPUCHOLMOD_HOST;
};
template <class S>
class CFactorStorage {
 public:
  CFactorStorage(const Doubles& R, const CFactor& how)
      : form_(how.form), R_(test::stored(Stored<S>(R.cast<S>()), is_lower()), R.cols() + 3) {
    if (!how.by_handle) return;
    EXPECT_EQ(create(form_, R.cols(), R_.data.data(), R_.ld, 0, &held_, nullptr, how.device), GPUCHOLMOD_OK);
  }
  CFactorStorage(const CFactorStorage&) = delete;
  ~CFactorStorage() { gpucholmod_factor_destroy(held_); }

  Doubles get() const {
    const index_t n = R_.rows;
    if (!held_) return upper(R_.matrix(n), is_lower()).template cast<double>();
    Doubles R(n, n);
    EXPECT_EQ(test::get(held_, GPUCHOLMOD_UPPER, R.data(), n, nullptr), GPUCHOLMOD_OK);
    return R;
  }
  Answer modify(const Modification& asked, bool& half_modified) {
    const index_t n = R_.rows, k = asked.k(), m = asked.sides.m;
    const Stored<S> V = asked.V.cast<S>();
    Answer answer;
    answer.sides = asked.sides;
    const Doubles Y = Eigen::Map<const Doubles>(asked.sides.Y.data(), m, m > 0 ? k : 0).transpose();
    const gpucholmod_right_sides sides =
        right_sides(answer.sides.z.data(), n, m, n, Y.data(), m > 0 ? k : 0, m > 0 ? k : 0, answer.sides.rss.data());
    const gpucholmod_right_sides* const along = m > 0 ? &sides : nullptr;
    const bool plain = asked.has_sorted_signs() && asked.removed() == 0;
    const double* const weights = plain ? nullptr : asked.weights.data();
    const double scale = asked.scale * asked.scale;
    gpucholmod_status status;
    if (held_) update(held_, k, asked.V.data(), n, weights, scale, along, &status);
    else update(form_, n, k, R_.data.data(), R_.ld, V.data(), n, weights, scale, along, &status);
    half_modified = tell(status, answer);
    return answer;
  }

 private:
  bool is_lower() const { return form_ & GPUCHOLMOD_LOWER; }

  int form_;
  Padded<S> R_;
  gpucholmod_factor* held_ = nullptr;
};
/// Stores a factor of doubles or floats for the contract, as a Factor<S> made from R and `how`.
template <template <class> class Factor, class How>
class CStorageOf : public Storage {
 public:
  explicit CStorageOf(How how) : how_(how) {}
  void begin(const Doubles& R, Precision precision) override {
    doubles_.reset();
    floats_.reset();
    if (precision == Precision::single) floats_.emplace(R, how_);
    else doubles_.emplace(R, how_);
  }
  Doubles get() const override { return floats_ ? floats_->get() : doubles_->get(); }
  Answer modify(const Modification& asked, const Poll&) override {
    bool half_modified = false;
    const Answer answer = floats_ ? floats_->modify(asked, half_modified) : doubles_->modify(asked, half_modified);
    begun_ = half_modified;
    return answer;
  }

 private:
  How how_;
  std::optional<Factor<double>> doubles_;
  std::optional<Factor<float>> floats_;
};
using CStorage = CStorageOf<CFactorStorage, CFactor>;

}  // namespace gpucholmod::test
