#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "modify/modify.h"
#include "regression/account.h"
#include "regression/decompose.h"

namespace gpucholmod::regression {

/// Where the factor of a regression is kept. A step reads the factor that is there, and leaves the new one.
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
  /// Takes what is in that memory as the factor. regular: its diagonal is positive.
  virtual void end(bool regular) = 0;
};

/// A factor in ordinary memory: each step reads one matrix, and writes another.
class PlainFactor : public Factor {
 public:
  /// How it is modified: by modify(), and what else the caller does then.
  using Run = std::function<Outcome(const Place<double>&, const double* V, const Request&)>;

  /// from (p x p): the present factor; to: room for the next one; spare: for the one after that, or `to` where there is
  /// one step alone.
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

/// One step of a regression.
struct Step {
  Rows added, gone;
  double forget = 1;                ///< everything is multiplied by, before the rows come
  const double* penalty = nullptr;  ///< that comes with the rows: p numbers, or null
  /// Everything that counts after the step: the rows, if they are kept, and the penalty, p numbers or null.
  const Rows* kept = nullptr;
  const double* whole_penalty = nullptr;
};

/// Sums of squares of residuals, and whether they were summed from rows.
struct Deviance {
  std::vector<double> sums;  ///< m
  bool from_rows = false;    ///< rss of a response had lost digits
};

/// A regression as it is kept from step to step.
struct Regression {
  Sides sides;
  Account account;
  Shift shift;           ///< of the rows that the factor, z and the account are of
  bool regular = false;  ///< the factor has a positive diagonal, and columns that differ by more than rounding

  /// Begins with these rows and this penalty.
  void begin(const Rows& rows, const double* penalty, Factor& R);
  /// Takes a step: by one modification of the factor, or, where rows are kept and that would cost more, or digits, by a
  /// decomposition of all rows. request: how the factor is modified; its n, k, weights, scale and sides are set here.
  /// Returns whether the step could be taken. Without rows it cannot where those that go leave no positive definite
  /// matrix, or digits would be lost; the factor may have changed.
  bool advance(const Step& step, Factor& R, Request request);
  /// Returns the solution; where removed rows have cost it digits that a decomposition of those that are kept has, the
  /// solution of that, which `R` then holds too.
  Solution solution(Factor& R, double tolerance, bool with_inverse, const Rows* kept, const double* penalty);
  /// Returns sums of squares of residuals: rss, and where removed rows have cost that digits, from the rows kept.
  Deviance deviance(const Solution& solution, const Rows* kept, const double* penalty) const;

 private:
  bool modify(const Rows& added, const Rows& gone, double forget, Factor& R, Request& request);
  bool is_shift_far() const;
  void take_back_shift(Factor& R);
  Solution solve_unshifted(const Factor& R, double tolerance, bool with_inverse) const;
};

}  // namespace gpucholmod::regression
