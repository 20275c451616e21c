#pragma once

#include <Rcpp.h>

#include "modify/modify.h"
#include "rcpp_progress.h"

namespace gpucholmod {

/// TRUE or FALSE; anything else is R's error.
bool flag(SEXP value, const char* argument);

/// A request of R's, which R/request.R describes, for an n x n factor and n x k V.
Request to_request(SEXP given, index_t n, index_t k);

/// What has become of right-hand sides, for R: list(z, rss), NULL for either where there is none.
Rcpp::List to_list(const Sides* sides);

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

/// The one way from R into the core: carries out a request, V being stored as doubles or floats, heeds the user meanwhile,
/// and takes note of what was done. Returns the pivot, counted from 1; 0: success.
template <class S>
int carry_out(const Place<S>& place, const S* V, const Request& request) {
  Progress progress(wants_bar());
  LastCall& last = last_call();
  last.outcome = modify(place, V, request, progress.poll());
  last.request = request;
  last.request.right = {};
  last.any = true;
  last.members = 0;
  last.in_place = place.factor && !place.made;
  return int(last.outcome.pivot + 1);
}

}  // namespace gpucholmod
