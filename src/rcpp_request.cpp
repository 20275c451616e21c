#include "rcpp_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"

/// Reading of requests from R. Defaults are found here, not in R: in a call for a small factor, looking them up in R
/// would take longer than the work.
namespace gpucholmod {
namespace {

/// The elements of the lists that constructors in R/ make, in the order of the constructor.
enum class Asked { downdate, check, lower, single, backend, method, control, weights, scale, sides };
enum class AskedSides { z, y, rss, argument, form };
enum class AskedControl { threads, device_memory, instructions, timeline, optimised_blas, loop_order, shape };

/// Returns the strings that R has for these words, one object for each word.
template <std::size_t N>
std::array<SEXP, N> strings(const char* const (&words)[N]) {
  std::array<SEXP, N> all;
  for (std::size_t i = 0; i < N; ++i) all[i] = PRINTNAME(Rf_install(words[i]));
  return all;
}

/// Reads a list of R's whose elements E names.
template <class E>
class Named {
 public:
  /// Throws bad_argument if the elements of `list` have other names than these, or another order.
  template <std::size_t N>
  Named(SEXP list, const char* constructor, const std::array<SEXP, N>& names) : list_(list) {
    const SEXP given = Rf_getAttrib(list, R_NamesSymbol);
    for (std::size_t i = 0; i < N; ++i)
      if (TYPEOF(list) != VECSXP || R_xlen_t(i) >= Rf_xlength(given) || STRING_ELT(given, R_xlen_t(i)) != names[i])
        throw Error(ErrorCode::bad_argument,
                    "'" + std::string(CHAR(names[i])) + "' is missing, in its place, from what " + constructor +
                        " makes",
                    {{"argument", CHAR(names[i])}, {"value", constructor}});
  }
  SEXP operator[](E element) const { return VECTOR_ELT(list_, R_xlen_t(element)); }

 private:
  SEXP list_;
};

Named<Asked> as_request(SEXP list) {
  static const auto names = strings({"downdate", "check", "lower", "single", "backend", "method", "control", "weights",
                                     "scale", "sides"});
  return {list, "new_request()", names};
}
Named<AskedSides> as_sides(SEXP list) {
  static const auto names = strings({"z", "y", "rss", "argument", "form"});
  return {list, "sides_of()", names};
}
Named<AskedControl> as_control(SEXP list) {
  static const auto names = strings({"threads", "device_memory", "instructions", "timeline", "optimised_blas",
                                     "loop_order", "shape"});
  return {list, "control_numbers()", names};
}

/// Returns whether an option is set.
bool is_set(SEXP option) { return Rf_GetOption1(option) != R_NilValue; }

/// Returns whether x is a positive number of threads.
bool is_whole(SEXP x) {
  if (Rf_isObject(x) || Rf_xlength(x) != 1 || (TYPEOF(x) != INTSXP && TYPEOF(x) != REALSXP)) return false;
  const double value = Rf_asReal(x);
  return value >= 1 && value <= std::numeric_limits<int>::max() && value == std::floor(value);
}

/// Takes weights, one for each column of V, or one for all columns. R has checked the numbers.
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
  request.removed = 0;  // the weights tell which columns are taken away
}

/// Returns right-hand sides of z, y and rss, doubles whose dimensions fit; y and rss may be NULL. `argument`: the
/// user's name for y.
std::shared_ptr<OwnedRightHandSides> make_sides(SEXP z, SEXP y, SEXP rss, const char* argument, index_t n, index_t k) {
  const index_t m = columns_of(z);
  const MatrixView<const double> numbers{REAL(z), n, m, n};
  const MatrixView<const double> Y{y == R_NilValue ? nullptr : REAL(y), y == R_NilValue ? 0 : k, m, k};
  return std::make_shared<OwnedRightHandSides>("z", numbers, argument, Y, rss == R_NilValue ? nullptr : REAL(rss));
}

/// Returns the right-hand sides that sides_of() in R/request.R has made. R has checked that their dimensions fit.
std::shared_ptr<OwnedRightHandSides> to_sides(SEXP list, index_t n, index_t k) {
  const Named<AskedSides> given = as_sides(list);
  const SEXP z = given[AskedSides::z];
  if (Rf_nrows(z) != n)
    throw Error(ErrorCode::bad_argument, "'z' does not fit the factor, which has changed since it was looked at",
                {{"argument", "z"}});
  const char* const argument = CHAR(STRING_ELT(given[AskedSides::argument], 0));
  return make_sides(z, given[AskedSides::y], given[AskedSides::rss], argument, n, k);
}

/// Returns whether y consists of doubles without a class that sides_of() would take for a k x m matrix.
bool are_plain_rows(SEXP y, index_t k, index_t m) {
  if (TYPEOF(y) != REALSXP || Rf_isObject(y)) return false;
  const SEXP shape = Rf_getAttrib(y, R_DimSymbol);
  if (shape != R_NilValue) return Rf_xlength(shape) == 2 && Rf_nrows(y) == k && Rf_ncols(y) == m;
  return (k == 1 || m == 1) && Rf_xlength(y) == k * m;
}

/// Returns whether there are no right-hand sides, or right-hand sides in which R/ would change nothing.
bool are_plain_sides(const UsualArguments& given, index_t n, index_t k) {
  const auto [z, y, rss] = std::array{given.z, given.y, given.rss};
  if (z == R_NilValue) return y == R_NilValue && rss == R_NilValue;
  if (n == 0 || k == 0 || !are_plain_columns(z, n)) return false;
  const index_t m = columns_of(z);
  if (m == 0 || !are_plain_rows(y, k, m)) return false;
  return rss == R_NilValue || (TYPEOF(rss) == REALSXP && !Rf_isObject(rss) && Rf_xlength(rss) == m &&
                               std::all_of(REAL(rss), REAL(rss) + m, [](double sum) { return sum >= 0; }));
}

/// Takes what control_numbers() in R/control.R makes.
void take_control(Request& request, SEXP list) {
  const Named<AskedControl> control = as_control(list);
  const auto at = [&](AskedControl which) { return Rf_asInteger(control[which]); };
  request.threads = at(AskedControl::threads);
  request.device_memory = Rf_asReal(control[AskedControl::device_memory]);
  request.instructions = Instructions(at(AskedControl::instructions));
  request.timeline = at(AskedControl::timeline) != 0;
  request.optimised_blas = at(AskedControl::optimised_blas) != 0;
  request.loop_order = LoopOrder(at(AskedControl::loop_order));
  const int* shape = INTEGER(control[AskedControl::shape]);
  request.shape = paper::Shape{shape[0], shape[1], shape[2], shape[3]};
}

/// Returns whether x consists of finite doubles without a class, which R/ would not change.
bool are_plain_numbers(SEXP x) {
  return TYPEOF(x) == REALSXP && !Rf_isObject(x) &&
         std::all_of(REAL(x), REAL(x) + Rf_xlength(x), [](double number) { return std::isfinite(number); });
}

Request new_request(index_t n, index_t k, bool downdate) {
  Request request;
  request.n = n;
  request.k = k;
  request.downdate = downdate;
  request.removed = downdate ? k : 0;
  return request;
}

void take_backend_option(Request& request) {
  static const SEXP option = Rf_install("gpucholmod.backend");
  if (is_set(option)) request.backend = Backend(Rcpp::as<int>(in_r("default_backend")()));
}

/// Takes R's options, for a call without `control`.
void take_control_options(Request& request) {
  static const SEXP option = Rf_install("gpucholmod.threads");
  static const bool optimised_blas = Rcpp::as<bool>(in_r("has_optimised_blas")());
  if (const SEXP threads = Rf_GetOption1(option); is_whole(threads)) request.threads = Rf_asInteger(threads);
  // Raises R's error for the option.
  else if (threads != R_NilValue) take_control(request, Rcpp::Shield<SEXP>(in_r("default_control")()));
  request.optimised_blas = optimised_blas;
}

}  // namespace

bool is_flag(SEXP x) { return TYPEOF(x) == LGLSXP && Rf_xlength(x) == 1 && LOGICAL(x)[0] != NA_LOGICAL; }

bool flag(SEXP value, const char* argument) {
  if (!is_flag(value)) in_r("require_flag")(Rcpp::Language("quote", value), argument);  // raises R's error
  return LOGICAL(value)[0];
}

Request to_request(SEXP list, index_t n, index_t k) {
  const Named<Asked> given = as_request(list);
  Request request = new_request(n, k, flag(given[Asked::downdate], "downdate"));
  flag(given[Asked::check], "check");
  request.uplo = Rf_asLogical(given[Asked::lower]) ? Uplo::lower : Uplo::upper;
  request.precision = Rf_asLogical(given[Asked::single]) ? Precision::single : Precision::double_;
  if (const SEXP backend = given[Asked::backend]; backend != R_NilValue)
    request.backend = Backend(Rf_asInteger(backend));
  else take_backend_option(request);
  request.method = Method(Rf_asInteger(given[Asked::method]));
  if (const SEXP weights = given[Asked::weights]; weights != R_NilValue) take_weights(request, weights);
  if (const SEXP scale = given[Asked::scale]; scale != R_NilValue) request.scale = std::sqrt(Rf_asReal(scale));
  if (const SEXP sides = given[Asked::sides]; sides != R_NilValue) request.sides = to_sides(sides, n, k);
  if (const SEXP control = given[Asked::control]; control != R_NilValue) take_control(request, control);
  else take_control_options(request);
  return request;
}

std::optional<Request> usual_request(const UsualArguments& given, index_t n, index_t k, bool kept) {
  if (!is_flag(given.downdate) || !are_plain_numbers(given.scale)) return {};
  if (Rf_xlength(given.scale) != 1 || REAL(given.scale)[0] <= 0) return {};
  const bool downdate = LOGICAL(given.downdate)[0], weighted = given.weights != R_NilValue;
  if (weighted && (downdate || !are_plain_numbers(given.weights))) return {};
  if (!are_plain_sides(given, n, k)) return {};
  Request request = new_request(n, k, downdate);
  if (!kept) take_backend_option(request);
  if (weighted) take_weights(request, given.weights);
  request.scale = std::sqrt(REAL(given.scale)[0]);
  if (given.z != R_NilValue) request.sides = make_sides(given.z, given.y, given.rss, "y", n, k);
  take_control_options(request);
  return request;
}

bool are_plain_columns(SEXP V, index_t n) {
  if (TYPEOF(V) != REALSXP || Rf_isObject(V)) return false;
  const SEXP shape = Rf_getAttrib(V, R_DimSymbol);
  return shape == R_NilValue ? Rf_xlength(V) == n : Rf_xlength(shape) == 2 && Rf_nrows(V) == n;
}

bool are_named_alike(SEXP V, SEXP dimnames, int which) {
  if (TYPEOF(dimnames) != VECSXP || Rf_xlength(dimnames) != 2) return true;
  const SEXP names = VECTOR_ELT(dimnames, which);
  if (TYPEOF(names) != STRSXP) return true;
  const bool vector = Rf_getAttrib(V, R_DimSymbol) == R_NilValue;
  SEXP own = Rf_getAttrib(V, vector ? R_NamesSymbol : R_DimNamesSymbol);
  if (!vector && own != R_NilValue) own = VECTOR_ELT(own, 0);
  if (own == R_NilValue) return true;
  if (Rf_xlength(own) != Rf_xlength(names)) return false;
  for (R_xlen_t i = 0; i < Rf_xlength(own); ++i)
    if (STRING_ELT(own, i) != STRING_ELT(names, i)) return false;
  return true;
}

namespace {

/// The positions of the elements of a result.
enum { pivot_at, factor_at, z_at, rss_at };

/// Returns the result of a call that succeeds and returns nothing else: the same object every time.
SEXP plain_success() {
  static SEXP kept = nullptr;
  if (kept) return kept;
  return kept = allocate_for_good([] {
    const char* names[] = {"pivot", "factor", "z", "rss", ""};
    const SEXP made = PROTECT(Rf_mkNamed(VECSXP, names));
    SET_VECTOR_ELT(made, pivot_at, Rf_ScalarInteger(0));
    UNPROTECT(1);
    return made;
  });
}

/// Allocates z of the result. form: the attributes of z, a list with names, or NULL. Sets dim first, because other
/// attributes depend on it.
SEXP new_z(index_t order, index_t m, SEXP form) {
  const SEXP z = PROTECT(Rf_allocVector(REALSXP, R_xlen_t(order * m))), names = Rf_getAttrib(form, R_NamesSymbol);
  for (const bool dim : {true, false})
    for (R_xlen_t i = 0; i < Rf_xlength(form); ++i) {
      const SEXP name = Rf_installTrChar(STRING_ELT(names, i));
      if ((name == R_DimSymbol) == dim) Rf_setAttrib(z, name, VECTOR_ELT(form, i));
    }
  UNPROTECT(1);
  return z;
}

}  // namespace

template <class F>
Result::Result(const Request& what, index_t order, SEXPTYPE type, SEXP dimnames, F&& make_z)
    : sides_(what.sides), done_([&]() -> SEXP {
        const SEXP plain = plain_success();
        if (!sides_ && type == NILSXP) return plain;
        const index_t m = sides_ ? sides_->m : 0;
        const double matrix = type == NILSXP ? 0 : bytes_of(type, order * order);
        return allocate(matrix + 8.0 * double(order + 1) * double(m), [&] {
          const SEXP list = PROTECT(Rf_shallow_duplicate(plain));
          if (type != NILSXP) {
            SET_VECTOR_ELT(list, factor_at, Rf_allocMatrix(type, int(order), int(order)));
            if (dimnames != R_NilValue) Rf_setAttrib(VECTOR_ELT(list, factor_at), R_DimNamesSymbol, dimnames);
          }
          if (sides_) SET_VECTOR_ELT(list, z_at, make_z(m));
          if (sides_ && !sides_->rss.empty()) SET_VECTOR_ELT(list, rss_at, Rf_allocVector(REALSXP, R_xlen_t(m)));
          UNPROTECT(1);
          return list;
        });
      }()) {}

Result::Result(SEXP request, const Request& what, index_t order, SEXPTYPE type, SEXP dimnames)
    : Result(what, order, type, dimnames, [&](index_t m) {
        return new_z(order, m, as_sides(as_request(request)[Asked::sides])[AskedSides::form]);
      }) {}

Result::Result(const UsualArguments& given, const Request& what, index_t order, SEXPTYPE type, SEXP dimnames)
    : Result(what, order, type, dimnames, [&](index_t m) {
        const SEXP z = PROTECT(Rf_allocVector(REALSXP, R_xlen_t(order * m)));
        SHALLOW_DUPLICATE_ATTRIB(z, given.z);
        what.sides->put_into(REAL(z));
        UNPROTECT(1);
        return z;
      }) {}

SEXP Result::factor() const { return VECTOR_ELT(done_, factor_at); }

SEXP failing_pivot(index_t pivot) {
  return allocate(0, [&] { return Rf_ScalarInteger(int(pivot + 1)); });
}

SEXP Result::failed(index_t pivot) const {
  return allocate(0, [&] {
    const SEXP list = PROTECT(Rf_shallow_duplicate(plain_success()));
    SET_VECTOR_ELT(list, pivot_at, Rf_ScalarInteger(int(pivot + 1)));
    UNPROTECT(1);
    return list;
  });
}

SEXP Result::done() const {
  if (!sides_) return done_;
  if (!sides_->has_place()) std::copy(sides_->z.begin(), sides_->z.end(), REAL(VECTOR_ELT(done_, z_at)));
  const std::vector<double>& rss = sides_->rss;
  if (!rss.empty()) std::copy(rss.begin(), rss.end(), REAL(VECTOR_ELT(done_, rss_at)));
  return done_;
}

SEXP Result::done(SEXP factor) const {
  const Rcpp::Shield<SEXP> list(allocate(0, [&] { return Rf_shallow_duplicate(done()); }));
  SET_VECTOR_ELT(list, factor_at, factor);
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
