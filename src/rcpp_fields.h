#pragma once

#include <Rcpp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "base/held_factor.h"
#include "rcpp_handle.h"

/// The fields of a handle that a modification changes, and the state of the handle if the modification breaks off.
namespace gpucholmod {

/// Returns whether a field that exists can be set.
inline bool may_be_set(SEXP handle, Field which) {
  return !R_BindingIsLocked(symbol(which), handle) && !R_BindingIsActive(symbol(which), handle);
}

/// Raises gpucholmod_invalid_factor unless these fields of a handle exist and can be set. Is called before a factor
/// changes: an error of R's amid a modification would skip destructors, so that the factor would stay in use for good.
template <class T>
void require_settable(SEXP handle, std::initializer_list<Field> fields) {
  for (const Field which : fields)
    if (field(handle, which) == R_UnboundValue || !may_be_set(handle, which))
      in_r("stop_invalid")(Kind<T>::name, "damaged");
}

/// Holds `flag`, which is true if the factor or batch of a handle has itself begun to change. If `flag` is true when
/// the call ends, by a failing pivot, an error or an interrupt, the handle gives up the object, and its status becomes
/// "half_modified".
template <class T>
class Begun {
 public:
  explicit Begun(SEXP handle) : handle_(handle), half_modified_(status()) {
    require_settable<T>(handle, {Field::status});
  }
  ~Begun() {
    if (!flag) return;
    give_up<T>(field(handle_, Field::pointer));
    Rf_defineVar(symbol(Field::status), half_modified_, handle_);
  }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  std::atomic<bool> flag{false};

 private:
  /// Returns the status "half_modified", the same object every time.
  static SEXP status() {
    static SEXP kept = nullptr;
    if (!kept) kept = allocate_for_good([] { return Rf_mkString("half_modified"); });
    return kept;
  }

  SEXP handle_, half_modified_;
};

/// Holds the new numbers of the handle of a modified factor. Allocates their memory before the factor changes, so that
/// R has nothing to allocate afterwards.
class NewFields {
 public:
  /// Allocates memory. `handle`: the handle of the modified factor; its fields are as before, or were copied from the
  /// handle of the former factor. `size`: true if the order changes. Raises gpucholmod_invalid_factor if a number was
  /// changed by hand into something else.
  NewFields(SEXP handle, bool size)
      : handle_(handle), memory_(size ? allocate(0, [] { return new_numbers(7); }) : stored_numbers()) {
    for (int i = 0; i < 4; ++i) {
      const SEXP value = field(handle, fields_[i]);
      if (TYPEOF(value) != type_of(i) || Rf_xlength(value) != 1 || !may_be_set(handle, fields_[i]))
        in_r("stop_invalid")(Kind<HeldFactor>::name, "damaged");
      old_[i] = Rf_asReal(value);
    }
    if (size) require_settable<HeldFactor>(handle, {Field::n, Field::capacity, Field::bytes, Field::dimnames});
  }

  void set_size(const HeldFactor& R, SEXP dimnames) {
    set(4, double(R.order()));
    set(5, double(R.capacity()));
    set(6, R.bytes());
    define(Field::dimnames, dimnames);
  }
  void set_pointer(SEXP pointer) { define(Field::pointer, pointer); }

  /// Counts a modification after which R is the factor of `scale` A plus a matrix of trace `added` minus a matrix of
  /// trace `removed`. Computes the new trace of A from these traces. The new trace is off by as much as the factor may
  /// be off since the trace was last read from the factor. If that is more than sqrt(eps) of the trace, or if either is
  /// no number, reads the trace from the factor again. The error that a modification adds: drift() in R.
  void count(const HeldFactor& R, double added, double removed, double scale) {
    const auto [modifications, error, trace, trace_error] = old_;
    const double eps = R.precision() == Precision::single ? 0x1p-23 : 0x1p-52;
    const double most = scale * trace + added;
    double after = most - removed;
    double off = scale * trace_error + 4 * eps * most;
    if (!(std::isfinite(after) && off <= std::sqrt(eps) * after)) {
      after = R.trace();
      off = 0;
    }
    set(1, scale * error + 4 * eps * std::max(most, after));
    set(2, after);
    set(3, off);
    set(0, modifications + 1);
  }

 private:
  /// The fields; count() changes the first four.
  static constexpr Field fields_[] = {Field::modifications, Field::error,    Field::trace, Field::trace_error,
                                      Field::n,             Field::capacity, Field::bytes};
  static constexpr int type_of(int i) { return i == 0 || i == 4 || i == 5 ? INTSXP : REALSXP; }

  /// Returns memory for the first `count` of fields_.
  static SEXP new_numbers(int count) {
    const SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
    for (int i = 0; i < count; ++i) SET_VECTOR_ELT(list, i, Rf_allocVector(type_of(i), 1));
    UNPROTECT(1);
    return list;
  }
  /// Returns new_numbers(4) from a store. One call of allocate(), which takes ten times as long, fills the store.
  static SEXP stored_numbers() {
    constexpr int size = 64;
    static SEXP store = nullptr;
    static int left = 0;
    if (left == 0) {
      const Rcpp::Shield<SEXP> filled(allocate(0, [] {
        const SEXP lists = PROTECT(Rf_allocVector(VECSXP, size));
        for (int i = 0; i < size; ++i) SET_VECTOR_ELT(lists, i, new_numbers(4));
        if (!store) {
          const SEXP made = PROTECT(Rf_allocVector(VECSXP, 1));
          R_PreserveObject(made);
          UNPROTECT(1);
          store = made;
        }
        UNPROTECT(1);
        return lists;
      }));
      SET_VECTOR_ELT(store, 0, filled);
      left = size;
    }
    const SEXP lists = VECTOR_ELT(store, 0), taken = VECTOR_ELT(lists, --left);
    SET_VECTOR_ELT(lists, left, R_NilValue);
    return taken;
  }

  /// Sets a field. The field exists already, so that R has nothing to allocate.
  void define(Field which, SEXP value) { Rf_defineVar(symbol(which), value, handle_); }
  void set(int i, double number) {
    const SEXP value = VECTOR_ELT(memory_, i);
    if (type_of(i) == INTSXP) INTEGER(value)[0] = int(number);
    else REAL(value)[0] = number;
    define(fields_[i], value);
  }

  SEXP handle_;
  const Rcpp::Shield<SEXP> memory_;
  std::array<double, 4> old_;  ///< former values of the first four fields
};

/// Throws bad_argument unless `rows` is `expected`. R has compared all arguments with the order of the factor, but what
/// was evaluated since then may have changed this order.
inline void require_rows(const char* argument, index_t rows, index_t expected) {
  if (rows != expected)
    throw Error(ErrorCode::bad_argument,
                std::string("'") + argument + "' does not fit the factor, which has changed since it was looked at",
                {{"argument", argument}, {"expected", double(expected)}, {"actual", double(rows)}});
}
inline index_t rows_of(SEXP x) { return Rf_isMatrix(x) ? Rf_nrows(x) : Rf_xlength(x); }

}  // namespace gpucholmod
