#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "cpu/host_factor.h"
#include "modify/batch.h"
#include "modify/solve_modified.h"
#include "rcpp_batch.h"
#include "rcpp_fields.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

/// Returns room for a result of `count` numbers, or NULL if the result is not wanted.
SEXP room(bool wanted, index_t count) { return wanted ? new_vector(REALSXP, count) : R_NilValue; }
double* numbers(SEXP x) { return x == R_NilValue ? nullptr : REAL(x); }

}  // namespace

// Solves with f modifications of a factor. held: a handle, or an environment with an upper `matrix` of doubles.
// members: V, n x sum(k) doubles, and k, f numbers; weights: of the columns of V, or NULL; scale: f numbers; sides: b,
// n x m doubles, or n x m x f if `own` is true, or NULL, and m; wants: solution, logdet, quadratic. Returns
// list(solution, logdet, quadratic, pivot, by_factor): NULL for results that are not wanted, NA for matrices that are
// not positive definite; pivot from 1, 0: success; by_factor: true if a modified factor was made.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_solve_modified(SEXP held, Rcpp::List members, SEXP weights, Rcpp::NumericVector scale, Rcpp::List sides,
                               Rcpp::LogicalVector wants, SEXP request) {
  return guarded([&] {
    const SEXP V = members["V"], b = sides["b"];
    const Rcpp::IntegerVector k = members["k"];
    const index_t m = Rf_asInteger(sides["m"]);
    const bool own_b = Rf_asLogical(sides["own"]);
    std::optional<Use<HeldFactor>> kept;
    std::unique_ptr<HeldFactor> borrowed;
    if (Rf_inherits(held, "chol_factor")) {
      kept.emplace(held);
    } else {
      const SEXP matrix = Rf_findVarInFrame(held, Rf_install("matrix"));
      // R need not know of memory for factors that exist only in this call.
      borrowed = cpu::borrow(REAL(matrix), Rf_nrows(matrix), cpu::ordinary_memory);
    }
    HeldFactor& R = borrowed ? *borrowed : **kept;
    const index_t n = R.order(), f = k.size();
    ModifiedSystems systems;
    systems.asked = to_request(request, n, 1);
    if (systems.asked.threads == 0) systems.asked.threads = R.threads();
    require_rows("V", Rf_nrows(V), n);
    if (b != R_NilValue) require_rows("b", Rf_xlength(b), n * m * (own_b ? f : 1));
    systems.k.assign(k.begin(), k.end());
    systems.V = REAL(V);
    systems.weights = numbers(weights);
    for (const double s : scale) systems.scale.push_back(std::sqrt(s));
    systems.m = m;
    systems.b = numbers(b);
    systems.own_b = own_b;
    const Rcpp::Shield<SEXP> solution(room(wants[0], n * m * f)), logdet(room(wants[1], f)),
        quadratic(room(wants[2], m * f));
    const Rcpp::Shield<SEXP> pivot(new_vector(INTSXP, f)), by_factor(new_vector(LGLSXP, f));
    systems.solution = numbers(solution);
    systems.logdet = numbers(logdet);
    systems.quadratic = numbers(quadratic);
    Progress progress(wants_bar());
    const ModifiedOutcome outcome = solve_modified(R, systems, progress.poll());
    for (index_t j = 0; j < f; ++j) {
      LOGICAL(by_factor)[j] = outcome.by_factor[j];
      INTEGER(pivot)[j] = int(outcome.pivot[j] + 1);
    }
    mark_failed(systems, n, outcome.pivot, NA_REAL);
    using Rcpp::_;
    return Rcpp::List::create(_["solution"] = SEXP(solution), _["logdet"] = SEXP(logdet),
                              _["quadratic"] = SEXP(quadratic), _["pivot"] = SEXP(pivot),
                              _["by_factor"] = SEXP(by_factor));
  });
}

// Solves with a modification of each member of a batch. V, b: ColumnsOfBatch, b perhaps NULL; weights, scale: as for
// rcpp_batch_modify(); wants: as above. Returns the same list without by_factor.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_solve_modified(SEXP handle, SEXP V, SEXP weights, SEXP scale, SEXP b, Rcpp::LogicalVector wants,
                                     SEXP request) {
  return guarded([&] {
    const Use<HeldBatch> R(handle);
    const index_t n = R->order(), f = R->count();
    const ColumnsOfBatch given(V);
    require_rows("V", given.numbers, n * given.k * (given.common ? 1 : f));
    const BatchTask task = to_task(to_request(request, n, given.k), weights, scale, given.k, given.common, false);
    BatchSystems wanted;
    if (b != R_NilValue) {
      const ColumnsOfBatch sides(b);
      wanted.m = sides.k;
      wanted.b = sides.V;
      wanted.common_b = sides.common;
      require_rows("b", sides.numbers, n * sides.k * (sides.common ? 1 : f));
    }
    const Rcpp::Shield<SEXP> solution(room(wants[0], n * wanted.m * f)), logdet(room(wants[1], f)),
        quadratic(room(wants[2], wanted.m * f)), pivot(new_vector(INTSXP, f));
    wanted.solution = numbers(solution);
    wanted.logdet = numbers(logdet);
    wanted.quadratic = numbers(quadratic);
    Progress progress(false);
    std::vector<index_t> pivots;
    solve_modified(*R, given.V, task, wanted, pivots, progress.poll());
    mark_failed(wanted, n, pivots, NA_REAL);
    tell(pivots, pivot);
    using Rcpp::_;
    return Rcpp::List::create(_["solution"] = SEXP(solution), _["logdet"] = SEXP(logdet),
                              _["quadratic"] = SEXP(quadratic), _["pivot"] = SEXP(pivot));
  });
}
