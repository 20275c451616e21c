#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "reshape_call.h"

/// Storages of a factor, as the contract of modifications (modify_contract.h) sees them.
namespace gpucholmod::test {

using Doubles = Stored<double>;

/// A modification of A to scale^2 A + V diag(weights) V', and of right-hand sides with it.
struct Modification {
  Doubles V;                    ///< n x k
  std::vector<double> weights;  ///< weights of the k columns of V
  double scale = 1;
  OwnedRightHandSides sides;    ///< right-hand sides; none if m is 0

  index_t k() const { return V.cols(); }
  /// Returns whether the weights are 1, then -1: a caller then gives the number of columns to be removed instead.
  bool has_sorted_signs() const {
    return std::all_of(weights.begin(), weights.end(), [](double w) { return std::abs(w) == 1; }) &&
           std::is_sorted(weights.rbegin(), weights.rend());
  }
  index_t removed() const { return std::count_if(weights.begin(), weights.end(), [](double w) { return w < 0; }); }
};

/// The exception that a poll throws.
struct Stop {};

/// An error of a call, with the row and column of V or of the result that it names, from 1; 0 if it names none.
struct Failure {
  ErrorCode code;
  index_t row = 0, col = 0;
};
inline Failure failure_of(const Error& error) {
  const auto index = [&](const char* name) { return field(error, name) ? index_t(number(error, name)) : 0; };
  return {error.code(), index("row") + index("index"), index("col")};
}

/// The outcome of a call.
struct Answer {
  index_t pivot = -1;
  std::optional<Failure> failure;
  bool stopped = false;       ///< True if `poll` threw Stop
  OwnedRightHandSides sides;  ///< the right-hand sides after the call

  bool is_success() const { return pivot < 0 && !failure && !stopped; }
};

/// A factor in one storage. begin() takes R, whose numbers have the precision of the computation.
class Storage {
 public:
  virtual ~Storage() = default;
  virtual void begin(const Doubles& R, Precision precision) = 0;
  /// Returns the factor, with zeros below the diagonal.
  virtual Doubles get() const = 0;
  /// Replaces the factor by the modified one if the call succeeds. Calls `poll` if the storage has a poll.
  virtual Answer modify(const Modification& asked, const Poll& poll) = 0;
  /// Returns whether the last call had begun to change the factor itself.
  bool begun() const { return begun_; }

 protected:
  std::atomic<bool> begun_{false};
};

/// Returns the outcome of f(), which returns a failing pivot or -1.
template <class F>
Answer answer_of(F&& f) {
  Answer answer;
  try {
    answer.pivot = f();
  } catch (const Error& error) {
    answer.failure = failure_of(error);
  } catch (const Stop&) {
    answer.stopped = true;
  }
  return answer;
}

/// Returns the answer of gpucholmod::modify() for a factor of order n. `how` tells the backend, the method, the
/// precision and the triangle.
template <class S>
Answer answer_of_modify(const Place<S>& place, index_t n, const Modification& asked, Request how, const Poll& poll) {
  const Stored<S> V = asked.V.cast<S>();
  how.n = n;
  how.k = asked.k();
  how.scale = asked.scale;
  how.threads = 2;
  if (asked.has_sorted_signs()) how.removed = asked.removed();
  else how.weights = asked.weights;
  if (asked.sides.m > 0) how.sides = std::make_shared<OwnedRightHandSides>(asked.sides);
  Answer answer = answer_of([&] { return gpucholmod::modify(place, V.data(), how, poll).pivot; });
  if (how.sides) answer.sides = *how.sides;
  return answer;
}

/// Returns R as `uplo` stores it, with NaN in the other triangle.
template <class S>
Stored<S> in_triangle(const Doubles& R, Uplo uplo) {
  Stored<S> all = Stored<S>::Constant(R.rows(), R.cols(), std::numeric_limits<S>::quiet_NaN());
  all.template triangularView<Eigen::Upper>() = R.cast<S>();
  if (uplo == Uplo::lower) all.transposeInPlace();
  return all;
}
/// Returns the upper factor of a matrix as in_triangle() returns it.
template <class S>
Doubles from_triangle(Stored<S> all, Uplo uplo) {
  if (uplo == Uplo::lower) all.transposeInPlace();
  return Stored<S>(all.template triangularView<Eigen::Upper>()).template cast<double>();
}

/// Stores a factor as a matrix of the caller. A modification makes another matrix, overwrites this one, or reads and
/// writes as with a file, as `where` says. The matrix consists of floats if the computation is in single precision,
/// unless `always_doubles`.
class MatrixStorage : public Storage {
 public:
  MatrixStorage(Where where, Uplo uplo, Request how, bool always_doubles = false)
      : where_(where), uplo_(uplo), how_(std::move(how)), always_doubles_(always_doubles) {}
  void begin(const Doubles& R, Precision precision) override {
    how_.precision = precision;
    how_.uplo = uplo_;
    is_float_ = precision == Precision::single && !always_doubles_;
    if (is_float_) floats_ = in_triangle<float>(R, uplo_);
    else doubles_ = in_triangle<double>(R, uplo_);
  }
  Doubles get() const override { return is_float_ ? from_triangle(floats_, uplo_) : from_triangle(doubles_, uplo_); }
  Answer modify(const Modification& asked, const Poll& poll) override {
    return is_float_ ? modify(floats_, asked, poll) : modify(doubles_, asked, poll);
  }

 private:
  template <class S>
  Answer modify(Stored<S>& R, const Modification& asked, const Poll& poll) {
    const index_t n = R.cols();
    begun_ = false;
    if (where_ == Where::in_place) {
      Answer answer = answer_of_modify(Place<S>::in_place(R.data(), begun_), n, asked, how_, poll);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = j + 1; i < n; ++i) EXPECT_TRUE(std::isnan(uplo_ == Uplo::upper ? R(i, j) : R(j, i)));
      return answer;
    }
    const Stored<S> before = R;
    Stored<S> out = Stored<S>::Zero(n, n);
    const MemorySource<S> source(R.data(), n);
    MemorySink<S> sink(out.data(), n);
    if (where_ == Where::memory) out.setConstant(std::numeric_limits<S>::quiet_NaN());
    const Place<S> place =
        where_ == Where::memory ? Place<S>::memory(R.data(), out.data()) : Place<S>::file(source, sink);
    Answer answer = answer_of_modify(place, n, asked, how_, poll);
    EXPECT_TRUE(same_bits(R, before));
    if (!answer.is_success()) return answer;
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j + 1; i < n; ++i) EXPECT_EQ(uplo_ == Uplo::upper ? out(i, j) : out(j, i), S(0));
    R = in_triangle<S>(from_triangle(out, uplo_), uplo_);
    return answer;
  }

  Where where_;
  Uplo uplo_;
  Request how_;
  bool always_doubles_, is_float_ = false;
  Doubles doubles_;
  Stored<float> floats_;
};

/// Stores a factor as a HeldFactor, which is modified in place or into a new one.
class HeldStorage : public Storage {
 public:
  HeldStorage(bool in_place, Keep keep) : in_place_(in_place), keep_(std::move(keep)) {}
  void begin(const Doubles& R, Precision precision) override {
    R_ = in_triangle<double>(R, Uplo::upper);
    f_ = keep_(R_, precision, in_place_ ? R.cols() + 3 : 0);
  }
  Doubles get() const override { return contents(*f_); }
  Answer modify(const Modification& asked, const Poll& poll) override {
    const Doubles before = get();
    std::unique_ptr<HeldFactor> made;
    Request how;
    how.precision = f_->precision();
    begun_ = false;
    const Place<double> place = Place<double>::held(*f_, in_place_ ? nullptr : &made, begun_);
    Answer answer = answer_of_modify(place, f_->order(), asked, how, poll);
    if (in_place_) return answer;
    EXPECT_FALSE(begun_);
    EXPECT_TRUE(same_bits(get(), before));
    EXPECT_EQ(made != nullptr, answer.is_success());
    if (made) f_ = std::move(made);
    return answer;
  }

 private:
  bool in_place_;
  Keep keep_;
  Doubles R_;  ///< numbers of the factor; must outlive a factor that borrows them
  std::unique_ptr<HeldFactor> f_;
};

/// Describes a storage: how to make it, its abilities, and its differences from most storages.
struct StorageKind {
  const char* name;
  std::function<std::unique_ptr<Storage>()> make;
  bool in_place = false;
  std::vector<Precision> computes = {Precision::double_, Precision::single};
  bool always_doubles = false;  ///< True if it stores doubles, also for computations in single precision
  bool lower = false;           ///< True if it stores, and names in errors, entries of R'
  bool takes_sides = true;      ///< True if it takes right-hand sides
  bool takes_zeros = true;      ///< True if it takes factors with zeros on the diagonal; others refuse them
  bool has_poll = true;
  std::function<std::unique_ptr<Storage>()> same_bits_as = {};  ///< a storage with the same bits; empty: none

  // Differences from what most storages do:

  /// True if an overflow is found while R is overwritten; R is lost then, and begun() is true.
  bool loses_what_overflows = false;
  /// True if a modification in place, even an update, calls `poll` before the factor itself changes.
  bool polls_before_an_update = true;
  /// True if `poll` is called however little time a call takes.
  bool always_polls = true;
  /// True if numbers near an end of the range are modified by the same arithmetic as other numbers.
  bool keeps_digits = true;
  /// True if, of several columns that are not finite, an added column is named before one that is taken away.
  bool names_added_columns_first = false;
  /// True if V has to fit only the scalar in which R is stored. If false, and if there are weights or a scale, V has to
  /// fit the scalar of the computation, too.
  bool has_range_of_scalar = true;
  /// True if an overflow of the result names a row besides the column.
  bool names_row_of_overflow = true;
};
inline void PrintTo(const StorageKind& kind, std::ostream* out) { *out << kind.name; }
inline std::string name_of(const testing::TestParamInfo<StorageKind>& info) { return info.param.name; }

/// Returns the kinds that have a poll.
inline std::vector<StorageKind> polled(std::vector<StorageKind> all) {
  const auto has_none = [](const StorageKind& kind) { return !kind.has_poll; };
  all.erase(std::remove_if(all.begin(), all.end(), has_none), all.end());
  return all;
}
/// Returns the kinds whose results have the bits of another storage.
inline std::vector<StorageKind> with_same_bits(std::vector<StorageKind> all) {
  const auto has_none = [](const StorageKind& kind) { return !kind.same_bits_as; };
  all.erase(std::remove_if(all.begin(), all.end(), has_none), all.end());
  return all;
}

}  // namespace gpucholmod::test
