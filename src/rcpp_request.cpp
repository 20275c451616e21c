#include "rcpp_request.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/factor_io.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"

/// Defaults are found here, not in R: in a call for a small factor, looking them up there would take longer than the
/// work.
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
    throw Error(ErrorCode::bad_argument,
                "'weights' must be one number, or one for each of the " + std::to_string(request.k) +
                    " columns of 'V', not " + std::to_string(count),
                {{"argument", "weights"}, {"expected", double(request.k)}, {"value", double(count)}});
  const double* w = REAL(weights);
  if (count == 1) request.weights.assign(request.k, w[0]);
  else request.weights.assign(w, w + count);
  request.removed = 0;  // the weights tell
}

/// list(z, y, rss, name of y, form), whose dimensions fit: R has looked at them.
std::shared_ptr<Sides> to_sides(SEXP given, index_t n, index_t k) {
  const SEXP z = VECTOR_ELT(given, 0), y = VECTOR_ELT(given, 1), rss = VECTOR_ELT(given, 2);
  const char* const argument = CHAR(STRING_ELT(VECTOR_ELT(given, 3), 0));
  auto sides = std::make_shared<Sides>();
  const index_t m = sides->m = Rf_ncols(z);
  if (Rf_nrows(z) != n)
    throw Error(ErrorCode::bad_argument, "'z' does not fit the factor, which has changed since it was looked at",
                {{"argument", "z"}});
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
  static const SEXP backend_option = Rf_install("gpucholmod.backend"),
                    threads_option = Rf_install("gpucholmod.threads");
  Request request;
  request.n = n;
  request.k = k;
  request.downdate = flag(VECTOR_ELT(given, 0), "downdate");
  request.removed = request.downdate ? k : 0;
  flag(VECTOR_ELT(given, 1), "check");
  request.uplo = Rf_asLogical(VECTOR_ELT(given, 2)) ? Uplo::lower : Uplo::upper;
  request.precision = Rf_asLogical(VECTOR_ELT(given, 3)) ? Precision::single : Precision::double_;
  if (const SEXP backend = VECTOR_ELT(given, 4); backend != R_NilValue)
    request.backend = Backend(Rf_asInteger(backend));
  else if (is_set(backend_option)) request.backend = Backend(Rcpp::as<int>(in_r("default_backend")()));
  request.method = Method(Rf_asInteger(VECTOR_ELT(given, 5)));
  if (const SEXP weights = VECTOR_ELT(given, 7); weights != R_NilValue) take_weights(request, weights);
  if (const SEXP scale = VECTOR_ELT(given, 8); scale != R_NilValue) request.scale = std::sqrt(Rf_asReal(scale));
  if (const SEXP sides = VECTOR_ELT(given, 9); sides != R_NilValue) request.sides = to_sides(sides, n, k);
  static const bool optimised_blas = Rcpp::as<bool>(in_r("has_optimised_blas")());
  if (const SEXP control = VECTOR_ELT(given, 6); control != R_NilValue) take_control(request, control);
  else if (const SEXP threads = Rf_GetOption1(threads_option); is_whole(threads))
    request.threads = Rf_asInteger(threads);
  // Which is an error.
  else if (threads != R_NilValue) take_control(request, Rcpp::Shield<SEXP>(in_r("default_control")()));
  if (VECTOR_ELT(given, 6) == R_NilValue) request.optimised_blas = optimised_blas;
  return request;
}

namespace {

/// list(pivot, z, rss), z and rss NULL.
SEXP new_result(int pivot) {
  const char* names[] = {"pivot", "z", "rss", ""};
  const SEXP list = PROTECT(Rf_mkNamed(VECSXP, names));
  SET_VECTOR_ELT(list, 0, Rf_ScalarInteger(pivot));
  UNPROTECT(1);
  return list;
}

/// Returns what most calls return, the same object every time.
SEXP plain_success() {
  static SEXP kept = nullptr;
  if (kept) return kept;
  return kept = allocate(0, [] {
    const SEXP made = PROTECT(new_result(0));
    MARK_NOT_MUTABLE(made);
    R_PreserveObject(made);
    UNPROTECT(1);
    return made;
  });
}

/// form: the attributes of z, a list with names, or NULL; dim comes first, as others depend on it.
SEXP with_room_for(index_t order, index_t m, bool rss, SEXP form) {
  return allocate(8.0 * double(order + 1) * double(m), [&] {
    const SEXP list = PROTECT(new_result(0)), z = Rf_allocVector(REALSXP, R_xlen_t(order * m));
    SET_VECTOR_ELT(list, 1, z);
    const SEXP names = Rf_getAttrib(form, R_NamesSymbol);
    for (const bool dim : {true, false})
      for (R_xlen_t i = 0; i < Rf_xlength(form); ++i) {
        const SEXP name = Rf_installTrChar(STRING_ELT(names, i));
        if ((name == R_DimSymbol) == dim) Rf_setAttrib(z, name, VECTOR_ELT(form, i));
      }
    if (rss) SET_VECTOR_ELT(list, 2, Rf_allocVector(REALSXP, R_xlen_t(m)));
    UNPROTECT(1);
    return list;
  });
}

}  // namespace

Result::Result(SEXP request, const Request& what, index_t order)
    : sides_(what.sides),
      done_(sides_ ? with_room_for(order, sides_->m, !sides_->rss.empty(), VECTOR_ELT(VECTOR_ELT(request, 9), 4))
                   : plain_success()) {}

SEXP Result::failed(index_t pivot) const {
  return allocate(0, [&] { return new_result(int(pivot + 1)); });
}

SEXP Result::done() const {
  if (sides_) std::copy(sides_->z.begin(), sides_->z.end(), REAL(VECTOR_ELT(done_, 1)));
  if (sides_ && !sides_->rss.empty()) std::copy(sides_->rss.begin(), sides_->rss.end(), REAL(VECTOR_ELT(done_, 2)));
  return done_;
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
