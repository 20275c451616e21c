#include <Rcpp.h>

#include <atomic>
#include <limits>

#include "rcpp_guard.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

using namespace gpucholmod;

int rcpp_other_triangle(SEXP R, bool lower);  // rcpp_cholupdate.cpp

namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& why, const std::string& reason) {
  throw Error(code, "'R' cannot be overwritten: " + why, {{"argument", "R"}, {"value", reason}});
}

/// Returns the value of the variable `name` of the frame `env`, a matrix of doubles. The variable must exist, and must
/// not be an active binding. Evaluates the variable if it is an argument of a function.
SEXP matrix_of(SEXP name, SEXP env) {
  SEXP value = Rf_findVarInFrame(env, name);
  if (TYPEOF(value) == PROMSXP) value = Rcpp::unwindProtect([&] { return Rf_eval(name, env); });
  if (TYPEOF(value) != REALSXP || Rf_isObject(value) || !Rf_isMatrix(value))
    refuse(ErrorCode::bad_argument, "it is not an ordinary matrix of doubles", "type");
  if (Rf_nrows(value) != Rf_ncols(value)) refuse(ErrorCode::bad_argument, "it is not square", "not_square");
  if (Rf_getAttrib(value, Rf_install("pivot")) != R_NilValue)
    refuse(ErrorCode::bad_argument, "it comes from a pivoted factorisation", "pivoted");
  return value;
}

/// Returns whether something else refers to the value of the variable, as far as R's counts tell, which are never too
/// low.
bool shared(SEXP name, SEXP env) {
  const SEXP value = Rf_findVarInFrame(env, name);
  return TYPEOF(value) == PROMSXP || MAYBE_SHARED(value);
}

}  // namespace

// Returns list(n =, shared =, dimnames =) for variable `name` of `env`, after checking that its value can be
// overwritten.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_overwrite_look(SEXP name, SEXP env) {
  return guarded([&] {
    const SEXP matrix = matrix_of(name, env);
    using Rcpp::_;
    return Rcpp::List::create(_["n"] = Rf_nrows(matrix), _["shared"] = shared(name, env),
                              _["dimnames"] = Rf_getAttrib(matrix, R_DimNamesSymbol));
  });
}

// Returns rcpp_other_triangle() of the matrix in variable `name` of `env`; as an argument, the matrix would be shared.
// [[Rcpp::export(rng = false)]]
int rcpp_overwrite_other_triangle(SEXP name, SEXP env, bool lower) {
  return guarded([&] { return rcpp_other_triangle(matrix_of(name, env), lower); });
}

// Replaces the matrix in variable `name` of `env` by a copy, to which nothing else refers.
// [[Rcpp::export(rng = false)]]
void rcpp_overwrite_own(SEXP name, SEXP env) {
  guarded([&] {
    const SEXP value = matrix_of(name, env);
    const Rcpp::Shield<SEXP> copy(allocate(bytes_of(REALSXP, Rf_xlength(value)), [&] { return Rf_duplicate(value); }));
    Rf_defineVar(name, copy, env);
  });
}

// Modifies the matrix in variable `name` of `env`. V: n x k doubles. Returns what Result says. If a run breaks off
// after it has begun to write, the diagonal becomes NaN.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_cholupdate_overwrite(SEXP name, SEXP env, SEXP V, SEXP request) {
  return guarded([&]() -> SEXP {
    const Rcpp::Shield<SEXP> R(matrix_of(name, env));  // does not count as a reference
    const index_t n = Rf_nrows(R), k = Rf_isMatrix(V) ? Rf_ncols(V) : 1;
    if (Rf_xlength(V) != n * k) refuse(ErrorCode::bad_argument, "it is not of the order it was", "changed");
    const Request what = to_request(request, n, k);
    const Result result(request, what, n);
    if (shared(name, env)) refuse(ErrorCode::shared, "something else refers to the same matrix", "shared");
    double* const data = REAL(R);
    std::atomic<bool> begun{false};
    const auto spoil = [&] {
      if (begun)
        for (index_t j = 0; j < n; ++j) data[j + j * n] = std::numeric_limits<double>::quiet_NaN();
    };
    try {
      const index_t pivot = carry_out(Place<double>::in_place(data, begun), REAL(V), what);
      return pivot < 0 ? result.done() : result.failed(pivot);
    } catch (const Error& error) {
      spoil();
      if (!begun) throw;
      Error::Fields fields = error.fields();
      fields.push_back({"lost", "R"});
      throw Error(error.code(), std::string(error.what()) + "; 'R', half overwritten, is lost", fields);
    } catch (...) {
      spoil();
      throw;
    }
  });
}
