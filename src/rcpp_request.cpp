#include "rcpp_request.h"

#include <cmath>
#include <limits>
#include <string>

#include "base/factor_io.h"
#include "rcpp_guard.h"

/// Defaults are found here, not in R: in a call for a small factor, looking them up there would take longer than the work.
namespace gpucholmod {
namespace {

/// Whether an option is set.
bool is_set(SEXP option) { return Rf_GetOption1(option) != R_NilValue; }

/// A positive number of threads.
bool is_whole(SEXP x) {
  if (Rf_isObject(x) || Rf_xlength(x) != 1 || (TYPEOF(x) != INTSXP && TYPEOF(x) != REALSXP)) return false;
  const double value = Rf_asReal(x);
  return value >= 1 && value <= std::numeric_limits<int>::max() && value == std::floor(value);
}

bool is_flag(SEXP x) { return TYPEOF(x) == LGLSXP && Rf_xlength(x) == 1 && LOGICAL(x)[0] != NA_LOGICAL; }

/// One for each column of V, or one for all; numbers, which R has looked at.
void take_weights(Request& request, SEXP weights) {
  const index_t count = Rf_xlength(weights);
  if (count != 1 && count != request.k)
    throw Error(ErrorCode::bad_argument, "'weights' must be one number, or one for each of the " + std::to_string(request.k) +
                                             " columns of 'V', not " + std::to_string(count),
                {{"argument", "weights"}, {"expected", double(request.k)}, {"value", double(count)}});
  const double* w = REAL(weights);
  if (count == 1) request.weights.assign(request.k, w[0]);
  else request.weights.assign(w, w + count);
  request.removed = 0;  // the weights tell
}

/// list(z, y, rss, name of y), whose dimensions fit: R has looked at them.
std::shared_ptr<Sides> to_sides(SEXP given, index_t n, index_t k) {
  const SEXP z = VECTOR_ELT(given, 0), y = VECTOR_ELT(given, 1), rss = VECTOR_ELT(given, 2);
  const char* const argument = CHAR(STRING_ELT(VECTOR_ELT(given, 3), 0));
  auto sides = std::make_shared<Sides>();
  const index_t m = sides->m = Rf_ncols(z);
  if (Rf_nrows(z) != n) throw Error(ErrorCode::bad_argument, "'z' does not fit the factor, which has changed since it was looked at", {{"argument", "z"}});
  sides->z.assign(REAL(z), REAL(z) + n * m);
  if (y != R_NilValue) sides->Y.resize(m * k);
  for (index_t j = 0; j < m; ++j) {
    largest_of("z", REAL(z) + j * n, n, 0, j);
    if (y == R_NilValue) continue;
    largest_of(argument, REAL(y) + j * k, k, 0, j);
    for (index_t q = 0; q < k; ++q) sides->Y[j + q * m] = REAL(y)[q + j * k];
  }
  if (rss != R_NilValue) sides->rss.assign(REAL(rss), REAL(rss) + m);
  return sides;
}

void take_control(Request& request, SEXP control) {
  const auto at = [&](int i) { return Rf_asInteger(VECTOR_ELT(control, i)); };
  request.threads = at(0);
  request.device_memory = Rf_asReal(VECTOR_ELT(control, 1));
  request.instructions = Instructions(at(2));
  request.timeline = at(3) != 0;
  request.optimised_blas = at(4) != 0;
  request.loop_order = LoopOrder(at(5));
  const int* shape = INTEGER(VECTOR_ELT(control, 6));
  request.shape = paper::Shape{shape[0], shape[1], shape[2], shape[3]};
}

}  // namespace

bool flag(SEXP value, const char* argument) {
  if (!is_flag(value)) in_r("require_flag")(Rcpp::Language("quote", value), argument);  // which is an error
  return LOGICAL(value)[0];
}

Request to_request(SEXP given, index_t n, index_t k) {
  static const SEXP backend_option = Rf_install("gpucholmod.backend"), threads_option = Rf_install("gpucholmod.threads");
  Request request;
  request.n = n;
  request.k = k;
  request.downdate = flag(VECTOR_ELT(given, 0), "downdate");
  request.removed = request.downdate ? k : 0;
  flag(VECTOR_ELT(given, 1), "check");
  request.uplo = Rf_asLogical(VECTOR_ELT(given, 2)) ? Uplo::lower : Uplo::upper;
  request.precision = Rf_asLogical(VECTOR_ELT(given, 3)) ? Precision::single : Precision::double_;
  if (const SEXP backend = VECTOR_ELT(given, 4); backend != R_NilValue) request.backend = Backend(Rf_asInteger(backend));
  else if (is_set(backend_option)) request.backend = Backend(Rcpp::as<int>(in_r("default_backend")()));
  request.method = Method(Rf_asInteger(VECTOR_ELT(given, 5)));
  if (const SEXP weights = VECTOR_ELT(given, 7); weights != R_NilValue) take_weights(request, weights);
  if (const SEXP scale = VECTOR_ELT(given, 8); scale != R_NilValue) request.scale = std::sqrt(Rf_asReal(scale));
  if (const SEXP sides = VECTOR_ELT(given, 9); sides != R_NilValue) request.sides = to_sides(sides, n, k);
  static const bool optimised_blas = Rcpp::as<bool>(in_r("has_optimised_blas")());
  if (const SEXP control = VECTOR_ELT(given, 6); control != R_NilValue) take_control(request, control);
  else if (const SEXP threads = Rf_GetOption1(threads_option); is_whole(threads)) request.threads = Rf_asInteger(threads);
  else if (threads != R_NilValue) take_control(request, Rcpp::Shield<SEXP>(in_r("default_control")()));  // which is an error
  if (VECTOR_ELT(given, 6) == R_NilValue) request.optimised_blas = optimised_blas;
  return request;
}

Rcpp::List to_list(const Sides* sides) {
  using Rcpp::_;
  Rcpp::List list = Rcpp::List::create(_["z"] = R_NilValue, _["rss"] = R_NilValue);
  if (sides) list["z"] = Rcpp::NumericVector(sides->z.begin(), sides->z.end());
  if (sides && !sides->rss.empty()) list["rss"] = Rcpp::NumericVector(sides->rss.begin(), sides->rss.end());
  return list;
}

bool wants_bar() {
  static const bool interactive = Rcpp::as<bool>(Rcpp::Function(Rcpp::Environment::base_namespace()["interactive"])());
  static const SEXP wanted = Rf_install("gpucholmod.progress"), after = Rf_install("gpucholmod.progress_after");
  return is_set(wanted) || is_set(after) ? Rcpp::as<bool>(in_r("wants_bar")()) : interactive;
}

LastCall& last_call() {
  static LastCall last;
  return last;
}

}  // namespace gpucholmod
