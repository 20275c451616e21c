#pragma once

#include <Rcpp.h>

#include <array>
#include <memory>
#include <utility>

#include "base/held_batch.h"
#include "base/held_factor.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"

/// The objects that R's handles refer to, and how calls use them. A handle is an environment: R/chol_factor_handle.R.
namespace gpucholmod {

/// The name that R has for the objects of a handle, and the tag of external pointers to them.
template <class T>
struct Kind;
template <>
struct Kind<HeldFactor> {
  static constexpr const char* name = "factor";
  static constexpr const char* tag = "gpucholmod_factor";
};
template <>
struct Kind<HeldBatch> {
  static constexpr const char* name = "batch";
  static constexpr const char* tag = "gpucholmod_batch";
};

/// A factor or a batch, which its handle and the calls that use it own together. R runs finalisers wherever it
/// allocates, so that a finaliser may give up the handle's share amid a call: the last owner destroys the object.
template <class T>
struct Kept {
  explicit Kept(std::unique_ptr<T> made) : object(std::move(made)) {}

  std::unique_ptr<T> object;
  int readers = 0;        ///< number of calls that use the object without changing it
  bool changing = false;  ///< True while a call changes the object
};
template <class T>
using Owner = std::shared_ptr<Kept<T>>;

/// The fields of a handle.
enum class Field {
  pointer, status, n, precision, uplo, dimnames, device, device_name, bytes, capacity, modifications, trace,
  trace_error, error, processes, process, count
};

/// Returns the name of a field as R's symbol. Looks all names up once, because that takes longer than finding a field.
inline SEXP symbol(Field which) {
  static const std::array<SEXP, 17> all = [] {
    constexpr const char* names[] = {"pointer", "status", "n", "precision", "uplo", "dimnames", "device", "device_name",
                                     "bytes", "capacity", "modifications", "trace", "trace_error", "error", "processes",
                                     "process", "count"};
    std::array<SEXP, 17> symbols;
    for (int i = 0; i < 17; ++i) symbols[i] = Rf_install(names[i]);
    return symbols;
  }();
  return all[int(which)];
}
inline SEXP field(SEXP handle, Field which) { return Rf_findVarInFrame(handle, symbol(which)); }

/// Returns whether `pointer` is an external pointer that handed_over() has made.
template <class T>
bool is_ours(SEXP pointer) {
  static const SEXP tag = Rf_install(Kind<T>::tag);
  return TYPEOF(pointer) == EXTPTRSXP && R_ExternalPtrTag(pointer) == tag;
}

/// Gives up the object that the handle owns. Returns false if the handle owns no object any more.
template <class T>
bool give_up(SEXP pointer) {
  if (!is_ours<T>(pointer)) return false;
  const std::unique_ptr<Owner<T>> owner(static_cast<Owner<T>*>(R_ExternalPtrAddr(pointer)));
  R_ClearExternalPtr(pointer);
  return owner != nullptr;
}

/// Returns an external pointer that owns `made`. Its finaliser does not run when R quits: CUDA may be gone by then, and
/// frees all its memory itself.
template <class T>
SEXP handed_over(std::unique_ptr<T> made) {
  auto owner = std::make_unique<Owner<T>>(std::make_shared<Kept<T>>(std::move(made)));
  const SEXP pointer = allocate(0, [] {
    const SEXP empty = PROTECT(R_MakeExternalPtr(nullptr, Rf_install(Kind<T>::tag), R_NilValue));
    R_RegisterCFinalizerEx(empty, [](SEXP of) { give_up<T>(of); }, FALSE);
    UNPROTECT(1);
    return empty;
  });
  R_SetExternalPtrAddr(pointer, owner.release());
  return pointer;
}

/// Returns the object of an external pointer that handed_over() has made and that is not null.
template <class T>
T& object_at(SEXP pointer) {
  return *(*static_cast<Owner<T>*>(R_ExternalPtrAddr(pointer)))->object;
}

/// Returns a handle with the fields and the class of `handle`, and with another pointer.
SEXP descendant(SEXP handle, SEXP pointer);

/// Returns why a handle cannot be used: "freed", "half_modified", "restored", or "damaged" if something that C++ relies
/// on was changed by hand; null if the handle can be used. See rcpp_handle.cpp. Sets `pointer` to the field of this
/// name.
template <class T>
const char* trouble(SEXP handle, SEXP& pointer);

enum class For { reading, changing };

/// A call's use of the object of a handle or of an external pointer that handed_over() has made. Raises
/// gpucholmod_invalid_factor if the object cannot be used, with reason "in_use" if another call has not ended and one
/// of the two calls changes the object.
template <class T>
class Use {
 public:
  explicit Use(SEXP of, For purpose = For::reading) : changes_(purpose == For::changing) {
    const bool bare = TYPEOF(of) == EXTPTRSXP;
    SEXP pointer = of;
    if (const char* const why = bare ? (is_ours<T>(of) ? nullptr : "damaged") : trouble<T>(of, pointer)) refuse(why);
    if (R_ExternalPtrAddr(pointer) == nullptr) refuse("freed");
    kept_ = *static_cast<Owner<T>*>(R_ExternalPtrAddr(pointer));
    if (kept_->changing || (changes_ && kept_->readers > 0)) refuse("in_use");
    if (changes_) kept_->changing = true;
    else ++kept_->readers;
  }
  ~Use() {
    if (changes_) kept_->changing = false;
    else --kept_->readers;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  T& operator*() const { return *kept_->object; }
  T* operator->() const { return kept_->object.get(); }

 private:
  static void refuse(const char* why) { in_r("stop_invalid")(Kind<T>::name, why); }

  Owner<T> kept_;
  bool changes_;
};

}  // namespace gpucholmod
