#include <Rcpp.h>

#include <atomic>
#include <limits>

#include "core/dispatch.h"
#include "rcpp_guard.h"
#include "rcpp_progress.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& why, const std::string& reason) {
  throw Error(code, "'R' cannot be overwritten: " + why, {{"argument", "R"}, {"value", reason}});
}

/// The value of a variable of the frame `env`, which is there, and no active binding: a matrix of doubles that nobody
/// else refers to.
SEXP own_matrix(SEXP name, SEXP env) {
  SEXP value = Rf_findVarInFrame(env, name);
  if (TYPEOF(value) == PROMSXP)
    refuse(ErrorCode::bad_argument, "it is an argument, which its caller may have too", "argument");
  if (TYPEOF(value) != REALSXP || Rf_isObject(value) || !Rf_isMatrix(value))
    refuse(ErrorCode::bad_argument, "it is not an ordinary matrix of doubles", "type");
  if (Rf_nrows(value) != Rf_ncols(value)) refuse(ErrorCode::bad_argument, "it is not square", "not_square");
  if (Rf_getAttrib(value, Rf_install("pivot")) != R_NilValue)
    refuse(ErrorCode::bad_argument, "it comes from a pivoted factorisation", "pivoted");
  if (MAYBE_SHARED(value)) refuse(ErrorCode::shared, "something else refers to the same matrix", "shared");
  return value;
}

}  // namespace

// The order of the matrix that variable `name` of `env` holds, after looking whether it may be overwritten.
// [[Rcpp::export(rng = false)]]
int rcpp_overwrite_order(SEXP name, SEXP env) {
  return guarded([&] { return Rf_nrows(own_matrix(name, env)); });
}

// Returns list(pivot =, report =). Where a run breaks off after it has begun to write, the diagonal becomes NaN.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate_overwrite(SEXP name, SEXP env, Rcpp::NumericMatrix V, Rcpp::List request) {
  return guarded([&] {
    const SEXP R = own_matrix(name, env);
    const index_t n = Rf_nrows(R);
    const Request what = to_request(request, n, V.ncol());
    double* const data = REAL(R);
    std::atomic<bool> begun{false};
    const auto spoil = [&] {
      if (begun)
        for (index_t j = 0; j < n; ++j) data[j + j * n] = std::numeric_limits<double>::quiet_NaN();
    };
    Progress progress(request);
    Outcome done;
    try {
      done = modify_in_place<double>(data, V.begin(), what, progress.poll(), begun);
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
    using Rcpp::_;
    return Rcpp::List::create(_["pivot"] = int(done.pivot + 1), _["report"] = to_report(what, done));
  });
}
