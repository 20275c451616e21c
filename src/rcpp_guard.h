#pragma once

#include <Rcpp.h>

#include <new>
#include <optional>
#include <stdexcept>

#include "base/error.h"

namespace gpucholmod {

/// Heeds Ctrl-C and R's time limits (setTimeLimit()): throws what Rcpp turns back into the interrupt or the error of R.
/// Rcpp::checkUserInterrupt() would turn both into an interrupt, which no handler of errors sees.
inline void heed_user() {
  Rcpp::unwindProtect([] {
    R_CheckUserInterrupt();
    return R_NilValue;
  });
}

/// Returns the floats whose bits an integer vector holds.
inline float* floats(SEXP bits) { return reinterpret_cast<float*>(INTEGER(bits)); }

/// Returns a function of this package's own, from R/.
inline Rcpp::Function in_r(const char* name) { return Rcpp::Environment::namespace_env("gpucholmod")[name]; }

/// Signals `error` as an R condition (R/conditions.R); does not return.
inline void raise(const Error& error) {
  Rcpp::List fields;
  for (const auto& [key, value] : error.fields()) {
    if (const double* number = std::get_if<double>(&value)) fields[key] = *number;
    else fields[key] = std::get<std::string>(value);
  }
  in_r("stop_gpucholmod")(std::string(name(error.code())), std::string(error.what()), fields);
}

/// Runs `body`. Is the one place where an error of the core becomes an R condition, which happens after every
/// destructor has run. Exceptions of heed_user() pass through to R.
template <class F>
auto guarded(F&& body) -> decltype(body()) {
  std::optional<Error> failure;
  try {
    return body();
  } catch (const Error& error) {
    failure.emplace(error);
  } catch (const std::bad_alloc&) {
    failure.emplace(ErrorCode::out_of_memory, "the host is out of memory");
  } catch (const std::length_error&) {  // more bytes than the size of a vector can count
    failure.emplace(ErrorCode::out_of_memory, "the host is out of memory");
  }
  raise(*failure);
  return decltype(body())();
}

}  // namespace gpucholmod
