#pragma once

#include <Rcpp.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/types.h"

/// Memory of R's. If R lacks memory, R raises an error of its own, which becomes an error of the core here.
namespace gpucholmod {

/// Jumps back to allocate(), from where R was entered. R prints nothing then.
inline SEXP leave_allocation(SEXP, void*) {
  const SEXP abort = PROTECT(Rf_lang2(Rf_install("invokeRestart"), Rf_mkString("abort")));
  Rf_eval(abort, R_BaseEnv);
  UNPROTECT(1);
  return R_NilValue;
}

/// Returns the object, of about `bytes`, that make() allocates in R. Throws out_of_memory.
template <class F>
SEXP allocate(double bytes, F&& make) {
  struct Call {
    F& make;
    SEXP made;
  } call{make, R_NilValue};
  const auto run = [](void* data) {
    const auto body = [](void* of) -> SEXP { return static_cast<Call*>(of)->make(); };
    static_cast<Call*>(data)->made = R_withCallingErrorHandler(body, data, leave_allocation, nullptr);
  };
  if (!R_ToplevelExec(run, &call))
    throw Error(ErrorCode::out_of_memory, "R has no memory for " + text_of_bytes(bytes), {{"needed", bytes}});
  return call.made;
}

/// Returns the object that make() allocates in R, which is never freed and never changed.
template <class F>
SEXP allocate_for_good(F&& make) {
  return allocate(0, [&] {
    const SEXP made = PROTECT(make());
    MARK_NOT_MUTABLE(made);
    R_PreserveObject(made);
    UNPROTECT(1);
    return made;
  });
}

inline double bytes_of(SEXPTYPE type, index_t count) {
  return double(count) * (type == REALSXP || type == VECSXP ? 8 : type == RAWSXP ? 1 : 4);
}

/// Returns a vector that is not filled.
inline SEXP new_vector(SEXPTYPE type, index_t count, SEXP names = R_NilValue) {
  return allocate(bytes_of(type, count), [&] {
    const SEXP made = PROTECT(Rf_allocVector(type, R_xlen_t(count)));
    if (names != R_NilValue) Rf_setAttrib(made, R_NamesSymbol, names);
    UNPROTECT(1);
    return made;
  });
}

/// Returns a matrix that is not filled. Sets its names here, because R would copy the matrix to set them.
inline SEXP new_matrix(SEXPTYPE type, index_t rows, index_t cols, SEXP dimnames = R_NilValue) {
  return allocate(bytes_of(type, rows * cols), [&] {
    const SEXP made = PROTECT(Rf_allocMatrix(type, int(rows), int(cols)));
    if (dimnames != R_NilValue) Rf_setAttrib(made, R_DimNamesSymbol, dimnames);
    UNPROTECT(1);
    return made;
  });
}

/// Returns an array of doubles that is not filled.
inline SEXP new_array(index_t rows, index_t cols, index_t depth) {
  return allocate(bytes_of(REALSXP, rows * cols * depth),
                  [&] { return Rf_alloc3DArray(REALSXP, int(rows), int(cols), int(depth)); });
}

/// Returns memory that R knows of, so that R collects its garbage before the machine is full.
inline std::shared_ptr<void> of_r(std::size_t bytes) {
  const SEXP memory = allocate(double(bytes), [&] {
    const SEXP made = PROTECT(Rf_allocVector(RAWSXP, R_xlen_t(bytes)));
    R_PreserveObject(made);
    UNPROTECT(1);
    return made;
  });
  return {RAW(memory), [memory](void*) { R_ReleaseObject(memory); }};
}

/// Returns f(). If f() throws out_of_memory and may_repeat() is true, runs the finalisers of handles that nobody refers
/// to, and returns f() again. with_room() in R does the same, but takes four microseconds more.
template <class F, class May>
auto with_room(F&& f, May&& may_repeat) -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || !may_repeat()) throw;
  }
  R_gc();
  R_RunPendingFinalizers();
  return f();
}

}  // namespace gpucholmod
