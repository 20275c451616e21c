#include "rcpp_handle.h"

#include <cstring>
#include <initializer_list>

using namespace gpucholmod;

namespace {

bool is_one(SEXP x, SEXPTYPE type) { return SEXPTYPE(TYPEOF(x)) == type && Rf_xlength(x) == 1; }
bool is(SEXP x, index_t number) { return is_one(x, INTSXP) && INTEGER(x)[0] == number; }
bool is(SEXP x, const char* word) { return is_one(x, STRSXP) && std::strcmp(CHAR(STRING_ELT(x, 0)), word) == 0; }

/// Returns whether `dimnames` is NULL, or a list that has names, or NULL, for each of these extents.
bool are_names(SEXP dimnames, std::initializer_list<index_t> extents) {
  if (dimnames == R_NilValue) return true;
  if (TYPEOF(dimnames) != VECSXP || Rf_xlength(dimnames) != R_xlen_t(extents.size())) return false;
  R_xlen_t i = 0;
  for (const index_t extent : extents) {
    const SEXP names = VECTOR_ELT(dimnames, i++);
    if (names != R_NilValue && (TYPEOF(names) != STRSXP || Rf_xlength(names) != extent)) return false;
  }
  return true;
}

/// Returns whether each of these fields is one value of this type.
bool are(SEXP handle, SEXPTYPE type, std::initializer_list<Field> fields) {
  for (const Field which : fields)
    if (!is_one(field(handle, which), type)) return false;
  return true;
}

template <class T>
bool are_common(SEXP handle, const T& object) {
  const SEXP uplo = field(handle, Field::uplo);
  return is(field(handle, Field::status), "live") &&
         is(field(handle, Field::precision), object.precision() == Precision::single ? "single" : "double") &&
         (is(uplo, "upper") || is(uplo, "lower")) && are(handle, INTSXP, {Field::device}) &&
         are(handle, STRSXP, {Field::device_name}) && are(handle, REALSXP, {Field::bytes});
}

bool are_sound(SEXP handle, const HeldFactor& R) {
  const char* const home = R.processes() > 0 ? "process_factor" : R.on_gpu() ? "gpu_factor" : "cpu_factor";
  return Rf_inherits(handle, home) && are_common(handle, R) &&
         are(handle, INTSXP, {Field::capacity, Field::modifications}) &&
         are(handle, REALSXP, {Field::trace, Field::trace_error, Field::error}) &&
         are_names(field(handle, Field::dimnames), {R.order(), R.order()}) &&
         (R.processes() == 0 ||
          (is(field(handle, Field::processes), R.processes()) && are(handle, INTSXP, {Field::process})));
}

/// Returns a new environment, whose parent is the empty one.
SEXP new_environment() {
#if R_VERSION >= R_Version(4, 1, 0)
  return R_NewEnv(R_EmptyEnv, FALSE, 0);
#else
  static const SEXP call = [] {
    const SEXP made = Rf_lang3(Rf_install("new.env"), Rf_ScalarLogical(FALSE), R_EmptyEnv);
    R_PreserveObject(made);
    return made;
  }();
  return Rf_eval(call, R_BaseEnv);
#endif
}

bool are_sound(SEXP handle, const HeldBatch& R) {
  return Rf_inherits(handle, "chol_batch") && are_common(handle, R) && are(handle, INTSXP, {Field::capacity}) &&
         is(field(handle, Field::count), R.count()) &&
         are_names(field(handle, Field::dimnames), {R.order(), R.order(), R.count()});
}

}  // namespace

template <class T>
const char* gpucholmod::trouble(SEXP handle, SEXP& pointer) {
  if (TYPEOF(handle) != ENVSXP) return "damaged";
  pointer = field(handle, Field::pointer);
  if (TYPEOF(pointer) != EXTPTRSXP) return "damaged";
  if (R_ExternalPtrAddr(pointer) == nullptr) {
    const SEXP status = field(handle, Field::status);
    return is(status, "freed") ? "freed" : is(status, "half_modified") ? "half_modified" : "restored";
  }
  return is_ours<T>(pointer) && is(field(handle, Field::n), object_at<T>(pointer).order()) ? nullptr : "damaged";
}

SEXP gpucholmod::descendant(SEXP handle, SEXP pointer) {
  return Rcpp::unwindProtect([&] {
    const SEXP names = PROTECT(R_lsInternal3(handle, FALSE, FALSE)), made = PROTECT(new_environment());
    for (R_xlen_t i = 0; i < Rf_xlength(names); ++i) {
      const SEXP name = Rf_installTrChar(STRING_ELT(names, i));
      SEXP value = name == symbol(Field::pointer) ? pointer : Rf_findVarInFrame(handle, name);
      if (TYPEOF(value) == PROMSXP) value = Rf_eval(value, R_EmptyEnv);
      PROTECT(value);
      Rf_defineVar(name, value, made);
      UNPROTECT(1);
    }
    Rf_setAttrib(made, R_ClassSymbol, Rf_getAttrib(handle, R_ClassSymbol));
    UNPROTECT(2);
    return made;
  });
}

template const char* gpucholmod::trouble<HeldFactor>(SEXP, SEXP&);
template const char* gpucholmod::trouble<HeldBatch>(SEXP, SEXP&);

namespace {

/// Returns why a handle cannot be used, as trouble() does, but looks at all fields.
template <class T>
const char* any_trouble(SEXP handle) {
  SEXP pointer;
  const char* const why = trouble<T>(handle, pointer);
  return why || are_sound(handle, object_at<T>(pointer)) ? why : "damaged";
}

}  // namespace

// Returns why a handle, of a factor or a batch, cannot be used: "freed", "half_modified", "restored" or "damaged"; NULL
// if the handle can be used.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_handle_trouble(SEXP handle) {
  const bool batch = Rf_inherits(handle, "chol_batch");
  const char* const why = batch ? any_trouble<HeldBatch>(handle) : any_trouble<HeldFactor>(handle);
  return why ? Rf_mkString(why) : R_NilValue;
}

// Returns a handle with the fields of `handle` and another pointer, which may be NULL, to be set later.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_handle_descendant(SEXP handle, SEXP pointer) {
  return guarded([&] { return descendant(handle, pointer); });
}

// Gives the memory of a handle back now, or when the call that uses the memory has ended; the pointer of the handle is
// null from then on. Returns FALSE if the handle has no memory any more.
// [[Rcpp::export(rng = false)]]
bool rcpp_handle_free(SEXP handle) {
  const SEXP pointer = TYPEOF(handle) == ENVSXP ? field(handle, Field::pointer) : R_NilValue;
  return Rf_inherits(handle, "chol_batch") ? give_up<HeldBatch>(pointer) : give_up<HeldFactor>(pointer);
}
