#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regression/rolling.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"
#include "rcpp_progress.h"
#include "rcpp_request.h"
#include "rcpp_rls.h"

using namespace gpucholmod;
using namespace gpucholmod::regression;

namespace {

/// Returns the numbers of a vector, or null for NULL.
const double* numbers(SEXP x) { return x == R_NilValue ? nullptr : REAL(x); }
std::vector<double> copied(SEXP x) { return {REAL(x), REAL(x) + Rf_xlength(x)}; }

/// Returns `count` rows, from `first` on, of list(x, y, w), x and y with a column for each row; of list(..., age) if
/// `aged` is true.
Rows rows_of(SEXP list, index_t first, index_t count, bool aged, double now) {
  const SEXP x = at(list, "x"), y = at(list, "y");
  const index_t p = Rf_nrows(x), m = Rf_nrows(y);
  return Rows{{REAL(x), p, Rf_ncols(x), p}, {REAL(y), m, Rf_ncols(y), m}, REAL(at(list, "w")),
              aged ? REAL(at(list, "age")) : nullptr, now}
      .block(first, count);
}
Rows rows_of(SEXP list) { return rows_of(list, 0, Rf_ncols(at(list, "x")), false, 0); }

/// The factor of a regression on a GPU: a handle, or a matrix while the diagonal is not positive. R modifies the
/// factor.
class HandleFactor : public Factor {
 public:
  HandleFactor(SEXP R, index_t p) : R_(R), p_(p) {}

  index_t modify(const double* V, const Request& request) override {
    OwnedRightHandSides& sides = *request.sides;
    const auto matrix = [](const double* from, index_t rows, index_t cols) {
      return Rcpp::NumericMatrix(int(rows), int(cols), from);
    };
    const Rcpp::List done = in_r("modify_rls")(
        R_, matrix(V, request.n, request.k), Rcpp::NumericVector(request.weights.begin(), request.weights.end()),
        request.scale * request.scale, matrix(sides.z.data(), request.n, sides.m),
        matrix(sides.Y.data(), sides.m, request.k), Rcpp::NumericVector(sides.rss.begin(), sides.rss.end()));
    const int pivot = Rcpp::as<int>(done["pivot"]);
    if (pivot > 0) return pivot - 1;
    R_ = done["R"];
    sides.z = Rcpp::as<std::vector<double>>(done["z"]);
    sides.rss = Rcpp::as<std::vector<double>>(done["rss"]);
    return -1;
  }
  void diagonal(double* out) const override {
    const Rcpp::NumericVector found = in_r("diagonal_of")(R_);
    std::copy(found.begin(), found.end(), out);
  }
  MatrixView<const double> view() const override {
    throw Error(ErrorCode::not_supported, "a factor on a GPU has no view in ordinary memory");
  }
  MatrixView<double> begin(bool read) override {
    made_ = Rcpp::NumericMatrix(int(p_), int(p_));
    if (read) {
      const Rcpp::NumericMatrix now = Rcpp::Function("as.matrix")(R_);
      std::copy(now.begin(), now.end(), made_.begin());
    }
    return {made_.begin(), p_, p_, p_};
  }
  void end(bool regular) override {
    if (regular) R_ = in_r("gpu_factor")(made_);
    else R_ = made_;
  }
  SEXP get() const { return R_; }

 private:
  Rcpp::RObject R_;
  index_t p_;
  Rcpp::NumericMatrix made_;
};

/// Returns list(R, z, rss, account).
Rcpp::List to_list(SEXP R, const Regression& fit) {
  using Rcpp::_;
  const Sides& sides = fit.sides;
  Rcpp::NumericMatrix z(int(sides.p), int(sides.m), sides.z.begin());
  Rcpp::NumericVector rss(sides.rss.begin(), sides.rss.end());
  Account account = fit.account;
  return Rcpp::List::create(
      _["R"] = R, _["z"] = z, _["rss"] = rss,
      _["account"] = Rcpp::List::create(_["sums"] = account.sums(), _["squared_errors"] = account.squared_errors(),
                                        _["moved"] = account.moved, _["removed"] = account.removed,
                                        _["regular"] = fit.regular, _["shift"] = fit.shift.multiples()));
}

/// Returns the regression of which to_list() has made a list.
Regression to_regression(SEXP fit) {
  Regression made;
  const SEXP z = at(fit, "z"), account = at(fit, "account");
  made.sides = {Rf_nrows(z), Rf_ncols(z), copied(z), copied(at(fit, "rss"))};
  made.account = Account(made.sides.p, made.sides.m);
  made.account.sums() = copied(at(account, "sums"));
  made.account.squared_errors() = copied(at(account, "squared_errors"));
  made.account.moved = number(account, "moved");
  made.account.removed = number(account, "removed") != 0;
  made.regular = number(account, "regular") != 0;
  made.shift = Shift(copied(at(account, "shift")));
  return made;
}

/// Returns a request of R's defaults, for a factor in ordinary memory.
Request plain_request(SEXP request, index_t p) {
  Request asked = to_request(request, p, 1);
  asked.backend = Backend::cpu;
  asked.method = Method::blocked;
  return asked;
}

/// Calls f() with a factor of order p that begins as R, or, if R is NULL, with nothing. Returns the list of the factor
/// and of the regression `fit` that f() has changed; NULL if f() returns false.
template <class F>
SEXP with_factor(SEXP R, index_t p, bool on_gpu, const Regression& fit, F&& f) {
  if (on_gpu) {
    HandleFactor factor(R, p);
    return f(factor) ? SEXP(to_list(factor.get(), fit)) : R_NilValue;
  }
  const Rcpp::Shield<SEXP> made(new_matrix(REALSXP, p, p));
  Progress progress(false);
  PlainFactor factor(R == R_NilValue ? REAL(made) : REAL(R), REAL(made), REAL(made), p,
                     [&](const Place<double>& place, const double* V, const Request& request) {
                       const Outcome outcome = modify(place, V, request, progress.poll());
                       take_note(place, request, outcome);
                       return outcome;
                     });
  return f(factor) ? SEXP(to_list(made, fit)) : R_NilValue;
}

}  // namespace

// Fits a regression to list(x, y, w), x and y with a column for each row, and to a penalty, p numbers or NULL, by a QR
// decomposition. Returns list(R, z, rss, account).
// [[Rcpp::export(rng = false)]]
SEXP rcpp_rls_begin(SEXP rows, SEXP penalty, bool on_gpu) {
  return guarded([&]() -> SEXP {
    Regression fit;
    const Rows all = rows_of(rows);
    return with_factor(R_NilValue, all.x.rows, on_gpu, fit, [&](Factor& R) {
      fit.begin(all, numbers(penalty), R);
      return true;
    });
  });
}

// Makes a step of a regression. fit: what rcpp_rls_begin() returned. step: list(x, y, w), the rows that are added, and
// list(..., gone, forget, penalty, first, kept, age, whole): `gone` rows of the log, from number `first` on, counted
// from 0, leave it, and `kept` rows are in it afterwards, at time `age`. penalty: the penalty that is added; whole: the
// penalty that is there afterwards; each p numbers or NULL. log: list(x, y, w, age), or NULL if no rows are kept. gone:
// NULL, or list(x, y, w), the rows that leave instead of rows of the log. Returns list(R, z, rss, account), or NULL if
// the step is not possible without rows.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_rls_step(SEXP fit, SEXP step, SEXP log, SEXP gone, bool on_gpu, SEXP request) {
  return guarded([&]() -> SEXP {
    Regression regression = to_regression(fit);
    const index_t p = regression.sides.p;
    Step next;
    next.added = rows_of(step);
    next.forget = number(step, "forget");
    next.penalty = numbers(at(step, "penalty"));
    next.whole_penalty = numbers(at(step, "whole"));
    Rows kept;
    if (log != R_NilValue) {
      const double now = number(step, "age");
      const index_t first = index_t(number(step, "first")), leave = index_t(number(step, "gone"));
      next.gone = rows_of(log, first, leave, true, now);
      kept = rows_of(log, first + leave, index_t(number(step, "kept")), true, now);
      next.kept = &kept;
    }
    if (gone != R_NilValue) next.gone = rows_of(gone);
    return with_factor(at(fit, "R"), p, on_gpu, regression, [&](Factor& R) {
      return regression.advance(next, R, plain_request(request, p));
    });
  });
}

// Returns a matrix with `room` columns: `kept` columns of x, from number `first` on, counted from 0, and then zeros.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_rls_widened(SEXP x, double first, double kept, double room) {
  return guarded([&]() -> SEXP {
    const index_t rows = Rf_nrows(x), used = rows * index_t(kept);
    const Rcpp::Shield<SEXP> made(new_matrix(REALSXP, rows, index_t(room)));
    std::copy_n(REAL(x) + rows * index_t(first), used, REAL(made));
    std::fill(REAL(made) + used, REAL(made) + rows * index_t(room), 0.0);
    return made;
  });
}

// Copies rows, list(x, y, w), to the log, list(x, y, w, age), from number `first` on, counted from 0. The log is memory
// of R's that several fits share; no fit uses this part of the log yet.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_rls_append(SEXP log, SEXP rows, double first, double age) {
  return guarded([&]() -> SEXP {
    const index_t at_row = index_t(first), count = Rf_ncols(at(rows, "x"));
    for (const char* name : {"x", "y"}) {
      const index_t wide = Rf_nrows(at(rows, name));
      std::copy_n(REAL(at(rows, name)), wide * count, REAL(at(log, name)) + wide * at_row);
    }
    std::copy_n(REAL(at(rows, "w")), count, REAL(at(log, "w")) + at_row);
    std::fill_n(REAL(at(log, "age")) + at_row, count, age);
    return R_NilValue;
  });
}

// Returns the solution of a fit: list(columns, beta, rss, effects, inverse, deviance), see regression/decompose.h;
// columns from 1. R: the factor as a matrix. history: the rows that are kept, or NULL; step: their numbers, and the
// penalty, as in rcpp_rls_step(). wants: inverse, deviance.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_rls_solve(SEXP fit, SEXP R, double tolerance, SEXP history, SEXP step, Rcpp::LogicalVector wants) {
  return guarded([&] {
    Regression regression = to_regression(fit);
    const index_t p = regression.sides.p, m = regression.sides.m;
    std::vector<double> room(p * p);
    PlainFactor factor(REAL(R), room.data(), room.data(), p, nullptr);
    std::optional<Rows> kept;
    if (history != R_NilValue)
      kept = rows_of(history, index_t(number(step, "first")), index_t(number(step, "kept")), true, number(step, "age"));
    const Rows* const rows = kept ? &*kept : nullptr;
    const double* const penalty = numbers(at(step, "whole"));
    const Solution found = regression.solution(factor, tolerance, wants[0], rows, penalty);
    const int r = int(found.columns.size());
    Rcpp::IntegerVector columns(r);
    for (int i = 0; i < r; ++i) columns[i] = int(found.columns[i]) + 1;
    Rcpp::NumericMatrix beta(int(p), int(m), found.beta.begin());
    for (double& b : beta)
      if (std::isnan(b)) b = NA_REAL;
    using Rcpp::_;
    return Rcpp::List::create(
        _["columns"] = columns, _["beta"] = beta, _["rss"] = found.rss,
        _["effects"] = Rcpp::NumericMatrix(r, int(m), found.effects.begin()),
        _["inverse"] = wants[0] ? SEXP(Rcpp::NumericMatrix(r, r, found.inverse.begin())) : R_NilValue,
        _["deviance"] = wants[1] ? Rcpp::wrap(regression.deviance(found, rows, penalty).sums) : R_NilValue);
  });
}

// Returns whether the coefficients of a fit may be off by more than a decomposition of its rows would leave them.
// diagonal: the diagonal of R.
// [[Rcpp::export(rng = false)]]
bool rcpp_rls_is_worse(SEXP fit, Rcpp::NumericVector diagonal) {
  return guarded([&] { return to_regression(fit).account.look(diagonal.begin()).is_worse_than_new(); });
}

// Returns the relative error that each deviance may have. solved: what rcpp_rls_solve() returned.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector rcpp_rls_loss_of_deviance(SEXP fit, Rcpp::List solved) {
  return guarded([&] {
    const Regression regression = to_regression(fit);
    const index_t p = regression.sides.p, m = regression.sides.m;
    std::vector<double> beta = copied(solved["beta"]);
    const std::vector<double> rss = copied(solved["rss"]);
    Rcpp::NumericVector losses(static_cast<int>(m));
    for (index_t j = 0; j < m; ++j)
      losses[j] = regression.account.loss_of_rss(j, rss[j], beta.data() + j * p, regression.shift);
    return losses;
  });
}

// Fits regressions to windows. rows: list(x, y, w); first, last: row numbers of each window, from 1. Returns
// list(coefficients, errors, sigma, r_squared, nobs, rank), with a row for each window.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_rolling(SEXP rows, Rcpp::NumericVector first, Rcpp::NumericVector last, double tolerance,
                        SEXP request) {
  return guarded([&] {
    Windows windows;
    windows.rows = rows_of(rows);
    for (const double i : first) windows.first.push_back(index_t(i) - 1);
    for (const double i : last) windows.last.push_back(index_t(i));
    windows.tolerance = tolerance;
    const index_t p = windows.rows.x.rows, m = windows.rows.y.rows, count = first.size();
    const Rcpp::Shield<SEXP> coefficients(new_matrix(REALSXP, count, p * m)), errors(new_matrix(REALSXP, count, p * m)),
        sigma(new_matrix(REALSXP, count, m)), r_squared(new_matrix(REALSXP, count, m)),
        used(new_vector(REALSXP, count)), rank(new_vector(REALSXP, count));
    Request asked = plain_request(request, p);
    Progress progress(wants_bar());
    roll(windows, asked, {REAL(coefficients), REAL(errors), REAL(sigma), REAL(r_squared), REAL(used), REAL(rank)},
         progress.poll());
    for (const SEXP numbers : {SEXP(coefficients), SEXP(errors), SEXP(sigma), SEXP(r_squared)})
      for (R_xlen_t i = 0; i < Rf_xlength(numbers); ++i)
        if (std::isnan(REAL(numbers)[i])) REAL(numbers)[i] = NA_REAL;
    using Rcpp::_;
    return Rcpp::List::create(_["coefficients"] = SEXP(coefficients), _["errors"] = SEXP(errors),
                              _["sigma"] = SEXP(sigma), _["r_squared"] = SEXP(r_squared), _["nobs"] = SEXP(used),
                              _["rank"] = SEXP(rank));
  });
}
