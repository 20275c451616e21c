#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/types.h"
#include "rcpp_guard.h"
#include "rcpp_rls.h"

using namespace gpucholmod;

namespace {

/// Returns whether a part of a fit, which may have been changed by hand, consists of `count` doubles.
bool are_doubles(SEXP x, index_t count) { return TYPEOF(x) == REALSXP && Rf_xlength(x) == count; }
bool is_matrix(SEXP x, index_t rows, index_t cols) {
  return TYPEOF(x) == REALSXP && Rf_isMatrix(x) && Rf_nrows(x) == rows && Rf_ncols(x) == cols;
}
bool is_flag(SEXP x) { return TYPEOF(x) == LGLSXP && Rf_xlength(x) == 1 && LOGICAL(x)[0] != NA_LOGICAL; }
bool is_number(SEXP x) {
  return (TYPEOF(x) == REALSXP || TYPEOF(x) == INTSXP) && ATTRIB(x) == R_NilValue && Rf_xlength(x) == 1 &&
         !std::isnan(Rf_asReal(x)) && !(TYPEOF(x) == INTSXP && INTEGER(x)[0] == NA_INTEGER);
}
bool are_names(SEXP x, index_t count) {
  return x == R_NilValue || (TYPEOF(x) == STRSXP && Rf_xlength(x) == count);
}

bool are_numbers_sound(SEXP fit, index_t p, index_t m) {
  const SEXP R = at(fit, "R"), account = at(fit, "account");
  const bool on_gpu = Rf_asLogical(at(fit, "on_gpu")) == TRUE;
  return ((on_gpu && Rf_inherits(R, "chol_factor")) || is_matrix(R, p, p)) && are_doubles(at(fit, "rss"), m) &&
         are_doubles(at(fit, "ridge"), p) && are_doubles(at(account, "sums"), p + m) &&
         are_doubles(at(account, "squared_errors"), p + m) && is_number(at(account, "moved")) &&
         is_flag(at(account, "removed")) && is_flag(at(account, "regular")) &&
         (are_doubles(at(account, "shift"), 0) || are_doubles(at(account, "shift"), p + m));
}

bool is_text(SEXP string, const char* text) { return std::strcmp(CHAR(string), text) == 0; }

bool are_settings_sound(SEXP fit, index_t p, index_t m) {
  for (const char* name : {"count", "age", "level", "sum_log_weights", "window", "forget", "tol", "first", "kept"})
    if (!is_number(at(fit, name))) return false;
  for (const char* name : {"penalised", "singular.ok", "keep_ridge", "on_gpu", "intercept"})
    if (!is_flag(at(fit, name))) return false;
  const SEXP names = at(fit, "names"), action = at(fit, "na.action");
  const double window = number(fit, "window"), forget = number(fit, "forget");
  return window >= 1 && window == std::floor(window) && forget > 0 && forget <= 1 && TYPEOF(names) == VECSXP &&
         Rf_xlength(names) == 2 && are_names(VECTOR_ELT(names, 0), p) && are_names(VECTOR_ELT(names, 1), m) &&
         TYPEOF(action) == STRSXP && Rf_xlength(action) == 1 &&
         (is_text(STRING_ELT(action, 0), "omit") || is_text(STRING_ELT(action, 0), "fail"));
}

/// Returns whether a fit keeps no rows, or keeps a complete history of rows.
bool is_history_sound(SEXP fit, index_t p, index_t m) {
  const SEXP history = at(fit, "history");
  const double first = number(fit, "first"), kept = number(fit, "kept");
  if (history == R_NilValue) return std::isinf(number(fit, "window")) && kept == 0;
  if (TYPEOF(history) != ENVSXP || first < 0 || kept < 0) return false;
  const SEXP w = at(history, "w"), used = at(history, "used");
  const index_t room = Rf_xlength(w);
  return are_doubles(w, room) && are_doubles(at(history, "age"), room) && is_matrix(at(history, "x"), p, room) &&
         is_matrix(at(history, "y"), m, room) && is_number(used) && Rf_asReal(used) <= double(room) &&
         first + kept <= Rf_asReal(used);
}

}  // namespace

// Returns whether `fit` can be what rls() or update() has returned.
// [[Rcpp::export(rng = false)]]
bool rcpp_rls_is_sound(SEXP fit) {
  return guarded([&] {
    try {
      const SEXP z = at(fit, "z");
      if (TYPEOF(z) != REALSXP || !Rf_isMatrix(z) || Rf_nrows(z) == 0) return false;
      const index_t p = Rf_nrows(z), m = Rf_ncols(z);
      return are_numbers_sound(fit, p, m) && are_settings_sound(fit, p, m) && is_history_sound(fit, p, m);
    } catch (const Error&) {  // a part is missing
      return false;
    }
  });
}
