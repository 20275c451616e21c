#pragma once

#include <Rcpp.h>

#include <cstring>
#include <string>

#include "base/error.h"

/// The parts of a fit of rls(), as R keeps it.
namespace gpucholmod {

/// Returns the element with this name of a list of R's or of an environment.
inline SEXP at(SEXP list, const char* name) {
  if (TYPEOF(list) == ENVSXP)
    if (const SEXP found = Rf_findVarInFrame(list, Rf_install(name)); found != R_UnboundValue) return found;
  const SEXP names = TYPEOF(list) == VECSXP ? Rf_getAttrib(list, R_NamesSymbol) : R_NilValue;
  for (R_xlen_t i = 0; i < Rf_xlength(names); ++i)
    if (std::strcmp(CHAR(STRING_ELT(names, i)), name) == 0) return VECTOR_ELT(list, i);
  throw Error(ErrorCode::bad_argument, std::string("'") + name + "' is missing from a fit of rls()",
              {{"argument", name}});
}
inline double number(SEXP list, const char* name) { return Rf_asReal(at(list, name)); }

}  // namespace gpucholmod
