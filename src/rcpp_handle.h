#pragma once

#include <Rcpp.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/held_factor.h"
#include "rcpp_guard.h"

/// A handle, as R/chol_factor_handle.R describes it, and the factor that it refers to.
namespace gpucholmod {

/// What an R handle holds. The finaliser does not run when R quits: CUDA may be gone by then, and frees everything.
using FactorPointer = Rcpp::XPtr<HeldFactor, Rcpp::PreserveStorage, Rcpp::standard_delete_finalizer<HeldFactor>, false>;

inline HeldFactor& factor(SEXP pointer) { return *FactorPointer(pointer).checked_get(); }

/// A new factor belongs to the external pointer from now on.
inline FactorPointer handed_over(std::unique_ptr<HeldFactor> made) { return FactorPointer(made.release()); }

/// Whether a factor itself has begun to change, told to a logical of R's.
struct Begun {
  int* told;
  std::atomic<bool> flag{false};
  ~Begun() { *told = flag; }
};

/// Of a handle, which is an environment: R/chol_factor_handle.R.
inline SEXP field(SEXP handle, const char* name) { return Rf_findVarInFrame(handle, Rf_install(name)); }
inline void set_field(SEXP handle, const char* name, SEXP value) {
  const Rcpp::Shield<SEXP> kept(value);
  Rf_defineVar(Rf_install(name), kept, handle);
}

/// The factor of a handle; where that cannot be used, R's error.
inline HeldFactor& live(SEXP handle) {
  const SEXP pointer = field(handle, "pointer");
  if (R_ExternalPtrAddr(pointer) == nullptr) in_r("live")(handle);
  return factor(pointer);
}

/// Enters a modification of `scale` A into the handle of the modified factor. `added`, `removed`: the traces of what is added and taken away.
/// The trace of A is kept by their differences, and is off by as much as the factor may be since it was looked at: where that is more than
/// sqrt(eps) of it, or no number, the factor is looked at again. What a modification adds to the error: drift() in R.
inline void count_modification(SEXP handle, double added, double removed, double scale) {
  const HeldFactor& R = factor(field(handle, "pointer"));
  const double eps = R.precision() == Precision::single ? 0x1p-23 : 0x1p-52;
  const double most = scale * Rf_asReal(field(handle, "trace")) + added;
  double after = most - removed;
  double off = scale * Rf_asReal(field(handle, "trace_error")) + 4 * eps * most;
  if (!(std::isfinite(after) && off <= std::sqrt(eps) * after)) {
    after = R.trace();
    off = 0;
  }
  const double error = scale * Rf_asReal(field(handle, "error")) + 4 * eps * std::max(most, after);
  set_field(handle, "trace", Rcpp::wrap(after));
  set_field(handle, "trace_error", Rcpp::wrap(off));
  set_field(handle, "error", Rcpp::wrap(error));
  set_field(handle, "modifications", Rcpp::wrap(Rf_asInteger(field(handle, "modifications")) + 1));
}

/// R has looked at what it was given beside the order of the factor; what is evaluated since may have changed that.
inline void require_rows(const char* argument, index_t rows, index_t expected) {
  if (rows != expected)
    throw Error(ErrorCode::bad_argument, std::string("'") + argument + "' does not fit the factor, which has changed since it was looked at",
                {{"argument", argument}, {"expected", double(expected)}, {"actual", double(rows)}});
}
inline index_t rows_of(SEXP x) { return Rf_isMatrix(x) ? Rf_nrows(x) : Rf_xlength(x); }

/// Memory that R knows of, so that it collects its garbage before the machine is full.
inline std::shared_ptr<void> of_r(std::size_t bytes) {
  const SEXP memory = Rcpp::unwindProtect([&] {
    const SEXP made = PROTECT(Rf_allocVector(RAWSXP, R_xlen_t(bytes)));
    R_PreserveObject(made);
    UNPROTECT(1);
    return made;
  });
  return {RAW(memory), [memory](void*) { R_ReleaseObject(memory); }};
}

/// An n x n matrix that is not filled. Its names are set here: from R, that would copy it.
inline Rcpp::RObject square_matrix(index_t n, SEXP dimnames) {
  Rcpp::RObject matrix(Rcpp::unwindProtect([&] { return Rf_allocMatrix(REALSXP, int(n), int(n)); }));
  matrix.attr("dimnames") = dimnames;
  return matrix;
}

}  // namespace gpucholmod
