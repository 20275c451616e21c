#include <Rcpp.h>

#include <algorithm>
#include <cstring>

#include "base/other_triangle.h"
#include "cuda/backend.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

using namespace gpucholmod;

// Returns whether R and V can be given to rcpp_cholupdate() as they are, without a warning: ordinary matrices of
// doubles that fit, or a vector V. lower: true if the lower triangle of R is read.
// [[Rcpp::export(rng = false)]]
bool rcpp_are_plain(SEXP R, SEXP V, bool lower) {
  static const SEXP pivot = Rf_install("pivot");
  if (TYPEOF(R) != REALSXP || Rf_isObject(R) || !Rf_isMatrix(R)) return false;
  const index_t n = Rf_nrows(R);
  return are_plain_columns(V, n) && Rf_ncols(R) == n && Rf_getAttrib(R, pivot) == R_NilValue &&
         look_at_other_triangle<double>({REAL(R), n, n, n}, lower ? Uplo::lower : Uplo::upper) == OtherTriangle::zero;
}

// Modifies a matrix. R: n x n double matrix, or integer matrix that holds the bits of floats; V: n x k, or n, of the
// same type. Returns what Result says, with a factor.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_cholupdate(SEXP R, SEXP V, SEXP request) {
  return guarded([&]() -> SEXP {
    const index_t n = Rf_nrows(R), k = columns_of(V);
    const Request what = to_request(request, n, k);
    const Result result(request, what, n, TYPEOF(R), Rf_getAttrib(R, R_DimNamesSymbol));
    const SEXP out = result.factor();
    const index_t pivot = TYPEOF(R) == INTSXP
                              ? carry_out(Place<float>::memory(floats(R), floats(out)), floats(V), what)
                              : carry_out(Place<double>::memory(REAL(R), REAL(out)), REAL(V), what);
    return pivot < 0 ? result.done() : result.failed(pivot);
  });
}

// Makes the usual call of cholupdate_gpu(), all arguments being as the user gave them. Returns the modified matrix, or,
// with z, what Result says; if the pivot fails, its number, from 1. Does nothing and returns NULL if R/ has to look at
// the arguments or if the call may take long.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_cholupdate_usual(SEXP R, SEXP V, SEXP downdate, SEXP weights, SEXP scale, SEXP z, SEXP y, SEXP rss) {
  return guarded([&]() -> SEXP {
    const index_t n = Rf_nrows(R), k = columns_of(V);
    if (!is_brief(n, k, false) || !rcpp_are_plain(R, V, false)) return R_NilValue;
    const SEXP dimnames = Rf_getAttrib(R, R_DimNamesSymbol);
    if (!are_named_alike(V, dimnames, 1)) return R_NilValue;
    const UsualArguments given{downdate, weights, scale, z, y, rss};
    const std::optional<Request> what = usual_request(given, n, k, false);
    if (!what) return R_NilValue;
    const Result result(given, *what, n, REALSXP, dimnames);
    const index_t pivot = carry_out(Place<double>::memory(REAL(R), REAL(result.factor())), REAL(V), *what, true);
    if (pivot >= 0) return failing_pivot(pivot);
    return what->sides ? result.done() : result.factor();
  });
}

// Describes how an n x n factor, which is at `where`, would be modified by k columns: list(backend, method, why,
// expected, panels, device_bytes, threads, instructions), choices as numbers.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate_plan(double n, double k, SEXP request, int where) {
  return guarded([&] {
    const Plan found = plan(to_request(request, index_t(n), index_t(k)), Where(1 << where));
    Expected time = found.choice.expected;
    if (found.choice.reason == Reason::on_gpu || found.choice.reason == Reason::held)
      time.cpu = time.gpu = time.start = NA_REAL;
    using Rcpp::_;
    return Rcpp::List::create(
        _["backend"] = int(found.choice.backend), _["method"] = int(found.choice.method), _["why"] = why(found.choice),
        _["expected"] = Rcpp::NumericVector::create(_["cpu"] = time.cpu, _["gpu"] = cuda::built() ? time.gpu : NA_REAL,
                                                    _["start"] = time.start),
        _["panels"] = double(found.panels), _["device_bytes"] = found.device_bytes, _["threads"] = found.threads,
        _["instructions"] = int(found.instructions));
  });
}

namespace {

/// Returns a data frame with a row for each entry: stage, panel (from 1), begin and end in seconds.
Rcpp::DataFrame to_data_frame(const std::vector<Timeline::Entry>& entries) {
  const char* const stages[] = {"fill", "send", "modify", "fetch", "empty"};
  const int count = int(entries.size());
  Rcpp::CharacterVector stage(count);
  Rcpp::IntegerVector panel(count);
  Rcpp::NumericVector begin(count), end(count);
  for (int i = 0; i < count; ++i) {
    stage[i] = stages[int(entries[i].stage)];
    panel[i] = entries[i].panel + 1;
    begin[i] = entries[i].begin;
    end[i] = entries[i].end;
  }
  using Rcpp::_;
  return Rcpp::DataFrame::create(_["stage"] = stage, _["panel"] = panel, _["begin"] = begin, _["end"] = end,
                                 _["stringsAsFactors"] = false);
}

/// Returns a count, or NA if it is below zero.
double or_na(index_t count) { return count < 0 ? NA_REAL : double(count); }

}  // namespace

// Returns what the last call did, choices as numbers; NULL before the first call.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_last_call() {
  const auto& [any, in_place, what, done, members] = last_call();
  if (!any) return R_NilValue;
  using Rcpp::_;
  Rcpp::List report = Rcpp::List::create(
      _["n"] = or_na(what.n), _["k"] = or_na(what.k), _["downdate"] = what.downdate, _["backend"] = int(done.backend),
      _["method"] = int(done.method), _["precision"] = int(done.precision), _["device"] = done.device,
      _["seconds"] = done.seconds, _["panels"] = double(done.panels), _["device_bytes_peak"] = done.device_bytes,
      _["pinned"] = done.pinned, _["pivot"] = int(done.pivot + 1), _["blocks"] = double(done.blocks),
      _["fallbacks"] = double(done.fallbacks), _["rescalings"] = double(done.rescalings), _["in_place"] = in_place,
      _["threads"] = done.threads, _["instructions"] = int(done.instructions));
  report["removed"] =
      or_na(std::count_if(what.weights.begin(), what.weights.end(), [](double w) { return w < 0; }) + what.removed);
  report["scale"] = what.scale * what.scale;
  report["members"] = double(members);
  report["gpus"] = done.device.empty() ? 0 : done.device_ranks;
  if (what.timeline) report["timeline"] = to_data_frame(done.timeline);
  return report;
}

// Returns the kind of the triangle of R that is not read, as a number from 0 (base/other_triangle.h). R: as in
// rcpp_cholupdate().
// [[Rcpp::export(rng = false)]]
int rcpp_other_triangle(SEXP R, bool lower) {
  const index_t n = Rf_nrows(R);
  const Uplo own = lower ? Uplo::lower : Uplo::upper;
  return int(TYPEOF(R) == INTSXP ? look_at_other_triangle<float>({floats(R), n, n, n}, own)
                                 : look_at_other_triangle<double>({REAL(R), n, n, n}, own));
}

// Looks at the other triangles of all members of a batch, or, of 128 or more members, at those of 64 to 96. Returns the
// most suspicious kind, and the number of its member, from 1. R: n x n x b doubles, or a list of square matrices of
// doubles.
// [[Rcpp::export(rng = false)]]
Rcpp::IntegerVector rcpp_batch_other_triangle(SEXP R, int n, bool lower) {
  const bool list = TYPEOF(R) == VECSXP;
  const index_t count = list ? Rf_xlength(R) : n == 0 ? 0 : Rf_xlength(R) / (index_t(n) * n);
  const index_t step = std::max<index_t>(1, count / 64);
  int most = 0, member = 0;
  for (index_t m = 0; m < count; m += step) {
    const SEXP matrix = list ? VECTOR_ELT(R, m) : R;
    const index_t order = list ? Rf_nrows(matrix) : n;
    const double* const x = REAL(matrix) + (list ? 0 : m * order * order);
    const int looks = int(look_at_other_triangle<double>({x, order, order, order}, lower ? Uplo::lower : Uplo::upper));
    if (looks <= most) continue;
    most = looks;
    member = int(m + 1);
  }
  return Rcpp::IntegerVector::create(most, member);
}

// Converts the bits of floats, as package float keeps them in an integer vector, to doubles; the next function converts
// doubles to such bits.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_from_float(SEXP bits) {
  return guarded([&]() -> SEXP {
    const Rcpp::Shield<SEXP> x(new_vector(REALSXP, Rf_xlength(bits)));
    std::copy_n(floats(bits), Rf_xlength(bits), REAL(x));
    return x;
  });
}

// [[Rcpp::export(rng = false)]]
SEXP rcpp_to_float(Rcpp::NumericVector x) {
  return guarded([&]() -> SEXP {
    const Rcpp::Shield<SEXP> bits(new_vector(INTSXP, x.size()));
    std::copy(x.begin(), x.end(), floats(bits));
    return bits;
  });
}

// Returns the tunables of the paper's method, checked, in the order of paper::Shape; a default for each one that is NA.
// [[Rcpp::export(rng = false)]]
Rcpp::IntegerVector rcpp_paper_shape(Rcpp::IntegerVector given) {
  return guarded([&] {
    paper::Shape shape;
    int* const all[] = {&shape.blocks_per_kernel, &shape.threads_per_block, &shape.elements_per_thread,
                        &shape.panel_rows};
    for (int i = 0; i < 4; ++i)
      if (given[i] != NA_INTEGER) *all[i] = given[i];
    paper::require_possible(shape);
    return Rcpp::IntegerVector::create(*all[0], *all[1], *all[2], *all[3]);
  });
}
