#include <Rcpp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "modify/batch.h"
#include "rcpp_fields.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"

using namespace gpucholmod;

namespace {

/// The fields of a batch's handle that change when its members get or lose rows. Their memory is there before the
/// batch changes.
class NewSize {
 public:
  explicit NewSize(SEXP handle)
      : handle_(handle), n_(new_vector(INTSXP, 1)), capacity_(new_vector(INTSXP, 1)), bytes_(new_vector(REALSXP, 1)) {
    require_settable<HeldBatch>(handle, {Field::n, Field::capacity, Field::bytes, Field::dimnames});
  }
  void set(const HeldBatch& R, SEXP dimnames) {
    INTEGER(n_)[0] = int(R.order());
    INTEGER(capacity_)[0] = int(R.capacity());
    REAL(bytes_)[0] = R.bytes();
    Rf_defineVar(symbol(Field::n), n_, handle_);
    Rf_defineVar(symbol(Field::capacity), capacity_, handle_);
    Rf_defineVar(symbol(Field::bytes), bytes_, handle_);
    Rf_defineVar(symbol(Field::dimnames), dimnames, handle_);
  }

 private:
  SEXP handle_;
  const Rcpp::Shield<SEXP> n_, capacity_, bytes_;
};

/// Numbers of R's, counted from 0.
std::vector<index_t> from_zero(SEXP numbers) {
  std::vector<index_t> out(INTEGER(numbers), INTEGER(numbers) + Rf_xlength(numbers));
  for (index_t& number : out) --number;
  return out;
}

/// Gives the handle what has become of its batch: `made`, or `R` itself where that is null.
void settle(SEXP modified, HeldBatch& R, std::unique_ptr<HeldBatch> made, NewSize& size, SEXP dimnames) {
  size.set(made ? *made : R, dimnames);
  if (made) Rf_defineVar(symbol(Field::pointer), handed_over(std::move(made)), modified);
}

}  // namespace

// The orders of the members.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_orders(SEXP handle) {
  return guarded([&]() -> SEXP {
    const Use<HeldBatch> R(handle);
    const std::vector<index_t> orders = R->orders();
    const Rcpp::Shield<SEXP> out(new_vector(INTSXP, index_t(orders.size())));
    std::transform(orders.begin(), orders.end(), INTEGER(out), [](index_t n) { return int(n); });
    return out;
  });
}

// modified: the handle itself, or one that is to refer to a new batch. X: n + p x p of each member, or of all where
// `common`; at: integers from 1, one or one for each member, or none: the end. dimnames: of the new batch, the second
// where members fail. Returns the pivots, from 1; 0: success. A handle that is half modified then: see Begun.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_insert(SEXP handle, SEXP modified, SEXP X, int p, bool common, SEXP at, Rcpp::List dimnames,
                       bool check) {
  return guarded([&]() -> SEXP {
    const bool in_place = modified == handle;
    const Use<HeldBatch> R(handle, in_place ? For::changing : For::reading);
    require_rows("X", Rf_xlength(X), (R->order() + p) * p * (common ? 1 : R->count()));
    BatchInsertion what;
    what.p = p;
    what.X = REAL(X);
    what.common_X = common;
    what.at = from_zero(at);
    what.all_or_none = check;
    const Rcpp::Shield<SEXP> told(new_vector(INTSXP, R->count()));
    NewSize size(modified);
    Begun<HeldBatch> changed(modified);
    std::unique_ptr<HeldBatch> made;
    std::vector<index_t> pivots;
    naming_members([&] { R->insert(what, in_place ? nullptr : &made, pivots, changed.flag); });
    changed.flag = false;
    std::transform(pivots.begin(), pivots.end(), INTEGER(told), [](index_t pivot) { return int(pivot + 1); });
    const bool failed = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
    const bool all = std::all_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
    const SEXP names = failed && all ? field(modified, Field::dimnames) : SEXP(dimnames[failed]);
    if (!failed || !check) settle(modified, *R, std::move(made), size, names);
    return told;
  });
}

// gone: integers from 1, ascending: p for all, or p x b. dimnames: of the new batch.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_delete(SEXP handle, SEXP modified, SEXP gone, int p, SEXP dimnames) {
  return guarded([&]() -> SEXP {
    const bool in_place = modified == handle;
    const Use<HeldBatch> R(handle, in_place ? For::changing : For::reading);
    BatchRemoval what{p, from_zero(gone)};
    const std::vector<index_t> orders = R->orders();
    require_rows("index", std::max<index_t>(p, R->order()), R->order());
    if (what.gone.size() != std::size_t(p)) require_rows("index", Rf_xlength(gone), p * R->count());
    for (index_t m = 0; m < R->count() && p > 0; ++m)
      require_rows("index", std::max(what.of(m)[p - 1] + 1, orders[m]), orders[m]);
    NewSize size(modified);
    Begun<HeldBatch> changed(modified);
    std::unique_ptr<HeldBatch> made;
    naming_members([&] { R->remove(what, in_place ? nullptr : &made, changed.flag); });
    changed.flag = false;
    settle(modified, *R, std::move(made), size, dimnames);
    return R_NilValue;
  });
}
