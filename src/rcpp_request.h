#pragma once

#include <Rcpp.h>

#include <optional>

#include "modify/modify.h"
#include "rcpp_progress.h"

namespace gpucholmod {

bool is_flag(SEXP value);
/// TRUE or FALSE; anything else is R's error.
bool flag(SEXP value, const char* argument);

/// Returns what new_request() in R/request.R has made, for an n x n factor and n x k V.
Request to_request(SEXP list, index_t n, index_t k);

/// Arguments as the user gave them.
struct UsualArguments {
  SEXP downdate, weights, scale, z, y, rss;
};
/// Returns the request of a usual call, in which nothing else is given than R, V and these; nothing where R/ has to
/// look at them. `kept`: of a factor that is kept, whose place is the backend. Throws not_finite for z and y.
std::optional<Request> usual_request(const UsualArguments& given, index_t n, index_t k, bool kept);

/// Is true for doubles with n rows, a matrix or a vector, which R/ would not change.
bool are_plain_columns(SEXP V, index_t n);
inline index_t columns_of(SEXP V) { return Rf_isMatrix(V) ? Rf_ncols(V) : 1; }

/// The list that a modification returns to R: list(pivot, factor, z, rss). `pivot` is the failing pivot, counted from
/// 1, or 0 for success. `factor` is the modified matrix, or NULL if the factor is in a handle, a file or a variable. z
/// and rss are the modified right-hand sides, or NULL if there are none. If the pivot fails, the other three are NULL.
/// The memory of all of them is allocated before anything is changed.
class Result {
 public:
  /// `what`: R's `request`, read; `order`: of the new factor.
  Result(SEXP request, const Request& what, index_t order) : Result(request, what, order, NILSXP, R_NilValue) {}
  /// With a matrix of that type for the new factor, which is not filled.
  Result(SEXP request, const Request& what, index_t order, SEXPTYPE type, SEXP dimnames);
  /// Of a usual call: z~ has the attributes of z.
  Result(const UsualArguments& given, const Request& what, index_t order, SEXPTYPE type, SEXP dimnames);
  SEXP factor() const;
  SEXP failed(index_t pivot) const;
  SEXP done() const;
  /// done() with another matrix as the factor, for which there is memory.
  SEXP done(SEXP factor) const;

 private:
  /// make_z(m) allocates z~.
  template <class F>
  Result(const Request& what, index_t order, SEXPTYPE type, SEXP dimnames, F&& make_z);

  std::shared_ptr<const OwnedRightHandSides> sides_;
  const Rcpp::Shield<SEXP> done_;  ///< where the call does not fail
};

/// What a usual call returns to R if the pivot fails: its number, counted from 1.
SEXP failing_pivot(index_t pivot);

/// What last_cholupdate() tells of.
struct LastCall {
  bool any = false, in_place = false;
  Request request;
  Outcome outcome;
  index_t members = 0;  ///< of a batch; 0: one factor
};
LastCall& last_call();

/// Whether a call that takes long is to show a bar.
bool wants_bar();

/// Takes note, for last_cholupdate(), of a request that has been carried out.
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

/// Is true of a modification that is done before a bar would be shown. R/ has nothing to take away then.
inline bool is_brief(index_t n, index_t k, bool on_gpu) {
  return double(n) * double(n) * double(k + 1) < (on_gpu ? 1e10 : 1e7);
}

/// The one way from R into the core: carries out a request, V being stored as doubles or floats, heeds the user
/// meanwhile, and takes note of what was done. Returns the failing pivot, counted from 0; -1: success. `brief`: see
/// is_brief().
template <class S>
index_t carry_out(const Place<S>& place, const S* V, const Request& request, bool brief = false) {
  Progress progress(wants_bar() && !brief);
  take_note(place, request, modify(place, V, request, progress.poll()));
  return last_call().outcome.pivot;
}

}  // namespace gpucholmod
