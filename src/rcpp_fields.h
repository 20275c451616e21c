#pragma once

#include <Rcpp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "base/held_factor.h"
#include "rcpp_handle.h"

/// The fields of a handle that a modification changes, and what becomes of the handle if the modification breaks off.
namespace gpucholmod {

/// Raises gpucholmod_invalid_factor unless these fields of a handle can be set. To be called before a factor changes:
/// an error of R's amid a modification would skip destructors, and leave the factor in use for good.
template <class T>
void require_settable(SEXP handle, std::initializer_list<Field> fields) {
  for (const Field which : fields)
    if (field(handle, which) == R_UnboundValue || R_BindingIsLocked(symbol(which), handle) ||
        R_BindingIsActive(symbol(which), handle))
      in_r("stop_invalid")(Kind<T>::name, "damaged");
}

/// Whether the factor or the batch of a handle itself has begun to change. If `flag` is true when the call ends, by a
/// pivot that fails, an error or an interrupt, the handle gives up the factor, and its status becomes "half_modified".
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
  /// The same object every time.
  static SEXP status() {
    static SEXP kept = nullptr;
    if (kept) return kept;
    return kept = allocate(0, [] {
      const SEXP made = PROTECT(Rf_mkString("half_modified"));
      MARK_NOT_MUTABLE(made);
      R_PreserveObject(made);
      UNPROTECT(1);
      return made;
    });
  }

  SEXP handle_, half_modified_;
};

/// The numbers of the handle of a modified factor. Their memory is there before the factor changes, so that afterwards
/// R has nothing to allocate.
class NewFields {
 public:
  /// `handle`: that of the modified factor; its fields are as they were, or were copied from the one that it comes of.
  /// `size`: the order changes. Raises gpucholmod_invalid_factor where a number was changed by hand into something
  /// else.
  NewFields(SEXP handle, bool size)
      : handle_(handle), memory_(allocate(0, [&] {
          const int count = size ? 7 : 4;
          const SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
          for (int i = 0; i < count; ++i) SET_VECTOR_ELT(list, i, Rf_allocVector(is_integer(i) ? INTSXP : REALSXP, 1));
          UNPROTECT(1);
          return list;
        })) {
    for (const Field which : {Field::modifications, Field::error, Field::trace, Field::trace_error}) {
      const SEXP value = field(handle, which);
      if (TYPEOF(value) != (which == Field::modifications ? INTSXP : REALSXP) || Rf_xlength(value) != 1)
        in_r("stop_invalid")(Kind<HeldFactor>::name, "damaged");
    }
    require_settable<HeldFactor>(handle, {Field::modifications, Field::error, Field::trace, Field::trace_error});
    if (size) require_settable<HeldFactor>(handle, {Field::n, Field::capacity, Field::bytes, Field::dimnames});
  }

  void set_size(const HeldFactor& R, SEXP dimnames) {
    set(4, Field::n, double(R.order()));
    set(5, Field::capacity, double(R.capacity()));
    set(6, Field::bytes, R.bytes());
    define(Field::dimnames, dimnames);
  }
  void set_pointer(SEXP pointer) { define(Field::pointer, pointer); }

  /// Counts a modification of `scale` A into R. `added`, `removed`: the traces of what is added and taken away. The
  /// trace of A is kept by their differences, and is off by as much as the factor may be since it was looked at: where
  /// that is more than sqrt(eps) of it, or no number, the factor is looked at again. What a modification adds to the
  /// error: drift() in R.
  void count(const HeldFactor& R, double added, double removed, double scale) {
    const double eps = R.precision() == Precision::single ? 0x1p-23 : 0x1p-52;
    const double most = scale * old(Field::trace) + added;
    double after = most - removed;
    double off = scale * old(Field::trace_error) + 4 * eps * most;
    if (!(std::isfinite(after) && off <= std::sqrt(eps) * after)) {
      after = R.trace();
      off = 0;
    }
    set(1, Field::error, scale * old(Field::error) + 4 * eps * std::max(most, after));
    set(2, Field::trace, after);
    set(3, Field::trace_error, off);
    set(0, Field::modifications, old(Field::modifications) + 1);
  }

 private:
  /// Of modifications, error, trace, trace_error, n, capacity, bytes.
  static bool is_integer(int i) { return i == 0 || i == 4 || i == 5; }
  double old(Field which) const { return Rf_asReal(field(handle_, which)); }
  /// The field is there already, so R has nothing to allocate.
  void define(Field which, SEXP value) { Rf_defineVar(symbol(which), value, handle_); }
  void set(int i, Field which, double number) {
    const SEXP value = VECTOR_ELT(memory_, i);
    if (is_integer(i)) INTEGER(value)[0] = int(number);
    else REAL(value)[0] = number;
    define(which, value);
  }

  SEXP handle_;
  const Rcpp::Shield<SEXP> memory_;
};

/// R has looked at what it was given beside the order of the factor; what is evaluated since may have changed that.
inline void require_rows(const char* argument, index_t rows, index_t expected) {
  if (rows != expected)
    throw Error(ErrorCode::bad_argument,
                std::string("'") + argument + "' does not fit the factor, which has changed since it was looked at",
                {{"argument", argument}, {"expected", double(expected)}, {"actual", double(rows)}});
}
inline index_t rows_of(SEXP x) { return Rf_isMatrix(x) ? Rf_nrows(x) : Rf_xlength(x); }

}  // namespace gpucholmod
