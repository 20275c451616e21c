#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "modify/modify.h"
#include "regression/account.h"
#include "regression/decompose.h"

namespace gpucholmod::regression {

/// Holds the factor of a regression. A step reads the present factor, and leaves the new one.
class Factor {
 public:
  virtual ~Factor() = default;
  /// Modifies the factor as modify() does. Returns the failing pivot, or -1; with a failing pivot the factor is as it
  /// was.
  virtual index_t modify(const double* V, const Request& request) = 0;
  virtual void diagonal(double* out) const = 0;
  /// Returns the factor, p x p.
  virtual MatrixView<const double> view() const = 0;
  /// Returns memory for a new factor (p x p), which holds the present one if `read` is true.
  virtual MatrixView<double> begin(bool read) = 0;
  /// Makes the contents of the memory of begin() the factor. regular: true if the diagonal of the factor is positive.
  virtual void end(bool regular) = 0;
};

/// A factor in ordinary memory: each step reads one matrix, and writes another.
class PlainFactor : public Factor {
 public:
  /// The function that modifies the factor: it calls modify(), and does what else the caller wants.
  using Run = std::function<Outcome(const Place<double>&, const double* V, const Request&)>;

  /// Wraps the present factor `from` (p x p), memory `to` for the next factor, and memory `spare` for the factor after
  /// the next, or `to` again if there is one step alone.
  PlainFactor(const double* from, double* to, double* spare, index_t p, Run run)
      : from_(from), to_(to), spare_(spare), p_(p), run_(std::move(run)) {}
  index_t modify(const double* V, const Request& request) override;
  void diagonal(double* out) const override;
  MatrixView<double> begin(bool read) override;
  void end(bool regular) override;
  MatrixView<const double> view() const override { return {from_, p_, p_, p_}; }

 private:
  void swap();

  const double* from_;
  double *to_, *spare_;
  index_t p_;
  Run run_;
};

/// Describes one step of a regression.
struct Step {
  Rows added, gone;
  double forget = 1;                      ///< number that multiplies all sums of squares before the rows come
  const double* penalty = nullptr;        ///< penalty that comes with the rows: p numbers, or null
  const Rows* kept = nullptr;             ///< all rows that count after the step; null: rows are not kept
  const double* whole_penalty = nullptr;  ///< the whole penalty after the step: p numbers, or null
};

/// The sums of squares of residuals, and how they were found.
struct Deviance {
  std::vector<double> sums;  ///< a sum for each response: m
  bool from_rows = false;    ///< True if a sum was computed from rows, as rss had lost digits
};

/// Holds a regression from step to step.
struct Regression {
  Sides sides;
  Account account;
  Shift shift;           ///< shift of the rows from which the factor, z and the account are made
  bool regular = false;  ///< True if the factor's diagonal is positive, and its columns differ by more than rounding

  /// Begins the regression with these rows and this penalty.
  void begin(const Rows& rows, const double* penalty, Factor& R);
  /// Takes a step by one modification of the factor. If rows are kept, takes the step by a decomposition of all rows
  /// instead, if a modification would cost more, fail or lose digits. request: how the factor is modified; advance()
  /// sets its n, k, weights, scale and sides. Returns whether the step was taken. If rows are not kept, a step fails if
  /// the rows that go leave no positive definite matrix, or if digits are lost; the factor may then have changed.
  bool advance(const Step& step, Factor& R, Request request);
  /// Returns the solution. If removed rows have cost the solution digits that a decomposition of the kept rows has,
  /// decomposes the kept rows first: `R` then holds their factor.
  Solution solution(Factor& R, double tolerance, bool with_inverse, const Rows* kept, const double* penalty);
  /// Returns sums of squares of residuals: rss or, if removed rows have cost rss digits, sums over the kept rows.
  Deviance deviance(const Solution& solution, const Rows* kept, const double* penalty) const;

 private:
  bool modify(const Rows& added, const Rows& gone, double forget, Factor& R, Request& request);
  bool is_shift_far() const;
  void take_back_shift(Factor& R);
  Solution solve_unshifted(const Factor& R, double tolerance, bool with_inverse) const;
};

}  // namespace gpucholmod::regression
