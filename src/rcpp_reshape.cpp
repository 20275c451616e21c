#include <Rcpp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/threads.h"
#include "cpu/host_factor.h"
#include "modify/carried.h"
#include "modify/choice.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

/// A matrix of R's that becomes a new factor.
struct MatrixOfR {
  Rcpp::RObject numbers;  ///< the last that was asked for

  cpu::Allocate allocate() {
    return [this](std::size_t bytes) -> std::shared_ptr<void> {
      numbers = Rcpp::RObject(Rcpp::unwindProtect([&] { return Rf_allocVector(REALSXP, R_xlen_t(bytes / sizeof(double))); }));
      return {REAL(numbers), [kept = numbers](void*) {}};
    };
  }
  /// That of `made`, whose own memory it is, or, where numbers had to be scaled, a copy.
  Rcpp::RObject filled(const HeldFactor& made, SEXP dimnames) {
    const index_t n = made.order();
    if (numbers.isNULL() || Rf_xlength(numbers) != n * n) {
      numbers = square_matrix(n, R_NilValue);
      made.download(Uplo::upper, REAL(numbers));
    }
    for (index_t j = 0; j < n; ++j) std::fill(REAL(numbers) + j + 1 + j * n, REAL(numbers) + n + j * n, 0.0);
    numbers.attr("dim") = Rcpp::IntegerVector::create(int(n), int(n));
    numbers.attr("dimnames") = dimnames;
    return numbers;
  }
};

/// f(factor, task, made, poll, begun, traces), one of the calls by which rows and columns come, go and move. `held`: a handle, or an environment
/// with an upper `matrix` of doubles. `modified`: `held` itself, to be changed in place, or an environment that gets the new factor: all fields of
/// a handle that change, or `matrix`. dimnames: of the new factor. half_modified: as in rcpp_factor_modify(). traces: of what comes and of what goes. k: how
/// many come or go; `coming`: they come; `changes`: there is something to be done. Right-hand sides: rcpp_take_sides(). Returns the pivot, counted
/// from 1; 0 means success.
template <class F>
int reshaped(SEXP held, SEXP modified, SEXP dimnames, SEXP request, SEXP half_modified, index_t k, bool coming, bool changes, F&& f) {
  return guarded([&] {
    const SEXP numbers = field(held, "matrix");
    MatrixOfR matrix;
    const std::unique_ptr<HeldFactor> borrowed =
        numbers != R_UnboundValue ? cpu::borrow(REAL(numbers), Rf_nrows(numbers), matrix.allocate()) : nullptr;
    HeldFactor& R = borrowed ? *borrowed : live(held);
    const index_t n = R.order();
    Request what = resolved(to_request(request, n, k), Choice{});
    what.threads = threads_for(what.threads);
    what.removed = coming ? k : 0;  // of the sum of squares, as of a modification
    Carried carried(what, what.sides ? what.sides->Y.data() : nullptr, n + (coming ? k : -k));
    what.right = carried.task();
    Begun changed{LOGICAL(half_modified)};
    std::unique_ptr<HeldFactor> made;
    Progress progress(wants_bar());
    const Poll poll = progress.poll();
    double traces[2] = {0, 0};
    const index_t pivot = f(R, what, modified == held ? nullptr : &made, poll, changed.flag, traces);
    if (pivot >= 0) return int(pivot + 1);
    changed.flag = false;
    carried.settle(false);
    last_call().request.sides = what.sides;
    if (borrowed) {
      set_field(modified, "matrix", matrix.filled(*made, dimnames));
      return 0;
    }
    const HeldFactor& now = made ? *made : R;
    set_field(modified, "dimnames", dimnames);
    set_field(modified, "n", Rcpp::wrap(int(now.order())));
    set_field(modified, "bytes", Rcpp::wrap(now.bytes()));
    set_field(modified, "capacity", Rcpp::wrap(int(now.capacity())));
    if (made) set_field(modified, "pointer", handed_over(std::move(made)));
    if (changes) count_modification(modified, traces[0], traces[1], 1);
    return 0;
  });
}

}  // namespace

// gone: from 1, each once.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_delete(SEXP held, SEXP modified, Rcpp::IntegerVector gone, SEXP dimnames, SEXP request, SEXP half_modified) {
  return reshaped(held, modified, dimnames, request, half_modified, gone.size(), false, gone.size() > 0,
                  [&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, std::atomic<bool>& changed, double* traces) {
    std::vector<index_t> numbers(gone.begin(), gone.end());
    for (index_t& j : numbers) --j;
    std::sort(numbers.begin(), numbers.end());
    if (!numbers.empty()) require_rows("index", std::max(numbers.back() + 1, R.order()), R.order());
    traces[1] = R.remove(numbers, task, made, poll, changed);
    return index_t(-1);
  });
}

// at: from 1; X: n + p x p doubles, or n + 1.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_insert(SEXP held, SEXP modified, int at, SEXP X, SEXP dimnames, SEXP request, SEXP half_modified) {
  const index_t p = Rf_ncols(X), first = at - 1;
  return reshaped(held, modified, dimnames, request, half_modified, p, true, p > 0,
                  [&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, std::atomic<bool>& changed, double* traces) {
    require_rows("X", rows_of(X), R.order() + p);
    for (index_t q = 0; q < p; ++q) traces[0] += REAL(X)[first + q + q * (R.order() + p)];
    return R.insert(first, REAL(X), p, task, made, poll, changed);
  });
}

// from, to: from 1.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_shift(SEXP held, SEXP modified, int from, int to, SEXP dimnames, SEXP request, SEXP half_modified) {
  return reshaped(held, modified, dimnames, request, half_modified, 0, false, from != to,
                  [&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, std::atomic<bool>& changed, double*) {
    require_rows("from", std::max<index_t>({from, to, R.order()}), R.order());
    R.shift(from - 1, to - 1, task, made, poll, changed);
    return index_t(-1);
  });
}
