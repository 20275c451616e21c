#include <Rcpp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/threads.h"
#include "base/turned.h"
#include "cpu/host_factor.h"
#include "modify/choice.h"
#include "rcpp_fields.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

/// A matrix of R's that becomes a new factor.
struct MatrixOfR {
  Rcpp::RObject numbers;  ///< memory that was asked for last

  cpu::Allocate allocate() {
    return [this](std::size_t bytes) -> std::shared_ptr<void> {
      numbers = Rcpp::RObject(new_vector(REALSXP, index_t(bytes / sizeof(double))));
      return {REAL(numbers), [kept = numbers](void*) {}};
    };
  }
  /// Returns the matrix of `made`: its own memory, or, if numbers had to be scaled, a copy.
  Rcpp::RObject filled(const HeldFactor& made, SEXP dimnames) {
    const index_t n = made.order();
    if (numbers.isNULL() || Rf_xlength(numbers) != n * n) {
      numbers = new_matrix(REALSXP, n, n);
      made.download(Uplo::upper, REAL(numbers));
    }
    for (index_t j = 0; j < n; ++j) std::fill(REAL(numbers) + j + 1 + j * n, REAL(numbers) + n + j * n, 0.0);
    gpucholmod::allocate(0, [&]() -> SEXP {
      const SEXP dim = PROTECT(Rf_allocVector(INTSXP, 2));
      INTEGER(dim)[0] = INTEGER(dim)[1] = int(n);
      Rf_setAttrib(numbers, R_DimSymbol, dim);
      Rf_setAttrib(numbers, R_DimNamesSymbol, dimnames);
      UNPROTECT(1);
      return R_NilValue;
    });
    return numbers;
  }
};

/// Runs one of the calls that insert, remove and move rows and columns.
struct Reshape {
  SEXP held;      ///< a handle, or an environment with an upper `matrix` of doubles
  SEXP modified;  ///< `held` itself, to be changed in place, or another handle, for the new factor; or NULL
  SEXP dimnames;  ///< dimnames of the new factor
  SEXP request;
  index_t k;      ///< number of rows and columns that are inserted or removed
  bool coming;    ///< True if rows and columns are inserted
  bool changes;   ///< True if there is something to do

  /// Calls f(factor, task, made, poll, begun, traces); traces: of what is inserted and of what is removed. Returns what
  /// Result says, with a matrix as the factor if `held` is no handle. Half modified handles: see Begun.
  template <class F>
  SEXP operator()(F&& f) const {
    return guarded([&] {
      if (Rf_inherits(held, "chol_factor")) return of_handle(f);
      return of_matrix(Rf_findVarInFrame(held, Rf_install("matrix")), f);
    });
  }

 private:
  template <class F>
  SEXP of_matrix(SEXP matrix, F&& f) const {
    MatrixOfR memory;
    const Turned<double> given(REAL(matrix), Rf_nrows(matrix), Uplo::upper);
    const std::unique_ptr<HeldFactor> R = cpu::borrow(given.data(), Rf_nrows(matrix), memory.allocate());
    Request what = asked(*R);
    given.turn(what.sides.get());
    const Result result(request, what, new_order(R->order()));
    std::unique_ptr<HeldFactor> made;
    std::atomic<bool> begun{false};  // stays false: `matrix` is only read
    double traces[2] = {0, 0};
    const index_t pivot = run(f, *R, what, &made, begun, traces);
    return pivot < 0 ? result.done(memory.filled(*made, dimnames)) : result.failed(pivot);
  }

  template <class F>
  SEXP of_handle(F&& f) const {
    const bool in_place = modified == held;
    const Use<HeldFactor> R(held, in_place ? For::changing : For::reading);
    Request what = asked(*R);
    const Result result(request, what, new_order(R->order()));
    NewFields fields(modified, true);
    Begun<HeldFactor> changed(modified);
    std::unique_ptr<HeldFactor> made;
    double traces[2] = {0, 0};
    const index_t pivot = run(f, *R, what, in_place ? nullptr : &made, changed.flag, traces);
    if (pivot >= 0) return result.failed(pivot);
    const HeldFactor& now = made ? *made : *R;
    fields.set_size(now, dimnames);
    if (changes) fields.count(now, traces[0], traces[1], 1);
    if (made) fields.set_pointer(handed_over(std::move(made)));
    return result.done();
  }

  /// Returns the new order, which is not negative even if the factor has lost rows since R looked at it; f throws then.
  index_t new_order(index_t n) const { return std::max<index_t>(n + (coming ? k : -k), 0); }
  Request asked(const HeldFactor& R) const {
    Request what = resolved(to_request(request, R.order(), k), Choice{});
    what.threads = threads_for(what.threads == 0 ? R.threads() : what.threads);
    what.removed = coming ? k : 0;  // rss shrinks by squares of `rest`, as for columns that a modification takes away
    return what;
  }
  template <class F>
  index_t run(F&& f, HeldFactor& R, Request& what, std::unique_ptr<HeldFactor>* made, std::atomic<bool>& begun,
              double* traces) const {
    if (what.sides) what.right = what.sides->view(what, what.sides->Y.data(), new_order(what.n));
    Progress progress(wants_bar());
    const Poll poll = progress.poll();
    const index_t pivot = f(R, what, made, poll, begun, traces);
    if (pivot >= 0) return pivot;
    begun = false;
    if (what.sides) what.sides->settle(what, false);
    return pivot;
  }
};

}  // namespace

// Removes rows and columns. gone: numbers from 1, each once.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_delete(SEXP held, SEXP modified, Rcpp::IntegerVector gone, SEXP dimnames, SEXP request) {
  const Reshape call{held, modified, dimnames, request, gone.size(), false, gone.size() > 0};
  return call([&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, auto& changed, double* traces) {
    std::vector<index_t> numbers(gone.begin(), gone.end());
    for (index_t& j : numbers) --j;
    std::sort(numbers.begin(), numbers.end());
    if (!numbers.empty()) require_rows("index", std::max(numbers.back() + 1, R.order()), R.order());
    traces[1] = R.remove(numbers, task, made, poll, changed);
    return index_t(-1);
  });
}

// Inserts rows and columns. at: from 1; X: n + p x p doubles, or n + 1.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_insert(SEXP held, SEXP modified, int at, SEXP X, SEXP dimnames, SEXP request) {
  const index_t p = Rf_ncols(X), first = at - 1;
  const Reshape call{held, modified, dimnames, request, p, true, p > 0};
  return call([&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, auto& changed, double* traces) {
    require_rows("X", rows_of(X), R.order() + p);
    for (index_t q = 0; q < p; ++q) traces[0] += REAL(X)[first + q + q * (R.order() + p)];
    return R.insert(first, REAL(X), p, task, made, poll, changed);
  });
}

// Moves row and column `from` to number `to`, both from 1.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_shift(SEXP held, SEXP modified, int from, int to, SEXP dimnames, SEXP request) {
  const Reshape call{held, modified, dimnames, request, 0, false, from != to};
  return call([&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, auto& changed, double*) {
    require_rows("from", std::max<index_t>({from, to, R.order()}), R.order());
    R.shift(from - 1, to - 1, task, made, poll, changed);
    return index_t(-1);
  });
}
