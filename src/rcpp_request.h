#pragma once

#include <Rcpp.h>

#include <optional>

#include "modify/modify.h"
#include "rcpp_progress.h"

namespace gpucholmod {

bool is_flag(SEXP value);
/// Returns whether a flag is TRUE. Raises R's error unless the flag is TRUE or FALSE.
bool flag(SEXP value, const char* argument);

/// Returns the request that new_request() in R/request.R has made, for an n x n factor and n x k V.
Request to_request(SEXP list, index_t n, index_t k);

/// Holds arguments as the user gave them.
struct UsualArguments {
  SEXP downdate, weights, scale, z, y, rss;
};
/// Returns the request of a usual call, in which nothing but R, V and these arguments is given. Returns nothing if R/
/// has to look at the arguments. `kept`: true for a factor that is kept, whose place is the backend. Throws not_finite
/// for z and y.
std::optional<Request> usual_request(const UsualArguments& given, index_t n, index_t k, bool kept);

/// Returns whether V consists of doubles with n rows, a matrix or a vector, which R/ would not change.
bool are_plain_columns(SEXP V, index_t n);
/// Returns whether the rows of plain columns V have the names number `which` of the dimnames of a factor, in their
/// order, or one of the two has no names.
bool are_named_alike(SEXP V, SEXP dimnames, int which);
inline index_t columns_of(SEXP V) { return Rf_isMatrix(V) ? Rf_ncols(V) : 1; }

/// The list that a modification returns to R: list(pivot, factor, z, rss). `pivot` is the failing pivot, counted from
/// 1, or 0 for success. `factor` is the modified matrix, or NULL if the factor is in a handle, a file or a variable. z
/// and rss are the modified right-hand sides, or NULL if there are none. If the pivot fails, the other three are NULL.
/// The memory of all of them is allocated before anything is changed.
class Result {
 public:
  /// Allocates a result without a matrix. `what`: R's `request`, as to_request() returns it; `order`: of the new
  /// factor.
  Result(SEXP request, const Request& what, index_t order) : Result(request, what, order, NILSXP, R_NilValue) {}
  /// Allocates also a matrix of this type for the new factor, which is not filled.
  Result(SEXP request, const Request& what, index_t order, SEXPTYPE type, SEXP dimnames);
  /// Allocates the result of a usual call: z~ has the attributes of z.
  Result(const UsualArguments& given, const Request& what, index_t order, SEXPTYPE type, SEXP dimnames);
  SEXP factor() const;
  SEXP failed(index_t pivot) const;
  SEXP done() const;
  /// Returns done() with `factor`, a matrix or a handle, in the place of the factor.
  SEXP done(SEXP factor) const;

 private:
  /// Allocates the result; make_z(m) allocates z~.
  template <class F>
  Result(const Request& what, index_t order, SEXPTYPE type, SEXP dimnames, F&& make_z);

  std::shared_ptr<const OwnedRightHandSides> sides_;
  const Rcpp::Shield<SEXP> done_;  ///< result of a call that does not fail
};

/// Returns what a usual call returns to R if the pivot fails: the number of the pivot, counted from 1.
SEXP failing_pivot(index_t pivot);

/// Holds what last_cholupdate() tells of the last call.
struct LastCall {
  bool any = false, in_place = false;
  Request request;
  Outcome outcome;
  index_t members = 0;  ///< number of members of a batch; 0: one factor
};
LastCall& last_call();

/// Returns whether a call that takes long is to show a bar.
bool wants_bar();

/// Notes, for last_cholupdate(), a request that has been carried out.
template <class S>
void take_note(const Place<S>& place, const Request& request, const Outcome& outcome) {
  LastCall& last = last_call();
  last.outcome = outcome;
  last.request = request;
  last.request.right = {};
  last.request.sides.reset();
  last.any = true;
  last.members = 0;
  last.in_place = place.factor && !place.made;
}

/// Returns whether a modification ends before a bar would be shown, so that R/ has no bar to remove.
inline bool is_brief(index_t n, index_t k, bool on_gpu) {
  return double(n) * double(n) * double(k + 1) < (on_gpu ? 1e10 : 1e7);
}

/// Carries out a request, V being stored as doubles or floats: the one way from R into the core. Heeds the user
/// meanwhile, and notes what was done. Returns the failing pivot, counted from 0; -1: success. `brief`: see is_brief().
template <class S>
index_t carry_out(const Place<S>& place, const S* V, const Request& request, bool brief = false) {
  Progress progress(wants_bar() && !brief);
  take_note(place, request, modify(place, V, request, progress.poll()));
  return last_call().outcome.pivot;
}

}  // namespace gpucholmod
