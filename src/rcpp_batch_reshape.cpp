#include <Rcpp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "modify/batch.h"
#include "rcpp_batch.h"
#include "rcpp_fields.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"

using namespace gpucholmod;

namespace {

/// Holds the fields of a batch's handle that change when members gain or lose rows. Allocates their memory before the
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

/// Returns numbers of R's, which count from 1, as numbers that count from 0.
std::vector<index_t> from_zero(SEXP numbers) {
  std::vector<index_t> out(INTEGER(numbers), INTEGER(numbers) + Rf_xlength(numbers));
  for (index_t& number : out) --number;
  return out;
}

/// Describes the moves of rows that members of these orders make one after the other: numbers from 1, p for all members
/// or p x b.
class MovesOfCall {
 public:
  MovesOfCall(SEXP from, SEXP to, const std::vector<index_t>& orders) : from_(from_zero(from)), to_(from_zero(to)) {
    const index_t b = index_t(orders.size());
    count_ = Rf_isMatrix(from) ? Rf_nrows(from) : index_t(from_.size());
    members_ = Rf_isMatrix(from) ? b : 1;
    require_rows("from", index_t(from_.size()), count_ * members_);
    require_rows("to", index_t(to_.size()), count_ * members_);
    for (index_t m = 0; m < b; ++m)
      for (index_t q = 0; q < count_; ++q) {
        const index_t at = q + (members_ == 1 ? 0 : m * count_), last = std::max(from_[at], to_[at]);
        if (from_[at] != to_[at]) require_rows("from", std::max(last + 1, orders[m]), orders[m]);
      }
  }
  index_t count() const { return count_; }
  /// Stores move q in `what`.
  void set(index_t q, BatchShift& what) const {
    what.from.resize(members_);
    what.to.resize(members_);
    for (index_t m = 0; m < members_; ++m) {
      what.from[m] = from_[q + m * count_];
      what.to[m] = to_[q + m * count_];
    }
  }

 private:
  std::vector<index_t> from_, to_;
  index_t count_ = 0, members_ = 0;
};

/// Sets the handle to the changed batch: `made`, or `R` itself if `made` is null.
void settle(SEXP modified, HeldBatch& R, std::unique_ptr<HeldBatch> made, NewSize& size, SEXP dimnames) {
  size.set(made ? *made : R, dimnames);
  if (made) Rf_defineVar(symbol(Field::pointer), handed_over(std::move(made)), modified);
}

}  // namespace

// Returns the orders of the members.
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

// Inserts rows and columns into every member. modified: the handle itself, or a handle that is to refer to a new batch.
// rows: list(X, at, sides, check): X from open_members(), n + p x p for each member or for all; at: integers from 1,
// one for all members or one for each, or none: at the end; sides: from batch_sides(), y being the new rows of b.
// dimnames: a list of those of the new batch, the second for a batch in which members fail. Returns list(pivots, z,
// rss), pivots from 1; 0: success; z: n + p x m x b. Half modified handles: see Begun.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_insert(SEXP handle, SEXP modified, Rcpp::List rows, Rcpp::List dimnames) {
  return guarded([&] {
    const bool in_place = modified == handle, check = Rf_asLogical(rows[3]);
    const Use<HeldBatch> R(handle, in_place ? For::changing : For::reading);
    const ColumnsOfBatch X(rows[0]);
    const index_t n = R->order(), b = R->count();
    require_rows("X", X.numbers, (n + X.k) * X.k * (X.common ? 1 : b));
    BatchInsertion what;
    what.p = X.k;
    what.X = X.V;
    what.common_X = X.common;
    what.at = from_zero(rows[1]);
    what.all_or_none = check;
    const Rcpp::Shield<SEXP> told(new_vector(INTSXP, b));
    const SidesOfCall along(rows[2], n, X.k, b, n + X.k);
    Rcpp::List value = pivots_and_sides(told, along);
    std::optional<ReshapedSides> carried;
    if (along.is_there()) carried.emplace(along.given(), *R, what);
    NewSize size(modified);
    Begun<HeldBatch> changed(modified);
    std::unique_ptr<HeldBatch> made;
    std::vector<index_t> pivots;
    naming_members([&] { R->insert(what, in_place ? nullptr : &made, pivots, changed.flag); });
    changed.flag = false;
    tell(pivots, told);
    const auto fails = [](index_t pivot) { return pivot >= 0; };
    const bool failed = std::any_of(pivots.begin(), pivots.end(), fails);
    const bool all = std::all_of(pivots.begin(), pivots.end(), fails);
    if (failed && check) return value;
    changed.flag = in_place && carried;  // until the right-hand sides match the members
    if (carried) carried->settle(pivots);
    changed.flag = false;
    const SEXP names = failed && all ? field(modified, Field::dimnames) : SEXP(dimnames[failed]);
    settle(modified, *R, std::move(made), size, names);
    return value;
  });
}

// Removes rows and columns of every member. rows: list(gone, p, sides): gone: integers from 1, ascending, p for all
// members or p x b. dimnames: of the new batch. Returns list(pivots, z, rss) as above, without failures;
// z: n - p x m x b.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_delete(SEXP handle, SEXP modified, Rcpp::List rows, SEXP dimnames) {
  return guarded([&] {
    const bool in_place = modified == handle;
    const Use<HeldBatch> R(handle, in_place ? For::changing : For::reading);
    const index_t p = Rf_asInteger(rows[1]), n = R->order(), b = R->count();
    BatchRemoval what{p, from_zero(rows[0])};
    const std::vector<index_t> orders = R->orders();
    require_rows("index", std::max(p, n), n);
    if (what.gone.size() != std::size_t(p)) require_rows("index", index_t(what.gone.size()), p * b);
    for (index_t m = 0; m < b && p > 0; ++m)
      require_rows("index", std::max(what.of(m)[p - 1] + 1, orders[m]), orders[m]);
    const Rcpp::Shield<SEXP> told(new_vector(INTSXP, b));
    const SidesOfCall along(rows[2], n, p, b, n - p);
    Rcpp::List value = pivots_and_sides(told, along);
    std::optional<ReshapedSides> carried;
    if (along.is_there()) carried.emplace(along.given(), *R, what);
    NewSize size(modified);
    Begun<HeldBatch> changed(modified);
    std::unique_ptr<HeldBatch> made;
    naming_members([&] { R->remove(what, in_place ? nullptr : &made, changed.flag); });
    changed.flag = in_place && carried;
    if (carried) carried->settle({});
    changed.flag = false;
    tell(std::vector<index_t>(b, -1), told);
    settle(modified, *R, std::move(made), size, dimnames);
    return value;
  });
}

// Moves rows and columns of every member. moves: list(from, to, sides): from, to: integers from 1, p moves for all
// members or p x b, one after the other; sides: from batch_sides(). With several moves, `modified` must not be the
// handle itself. Returns list(pivots, z, rss) as above.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_shift(SEXP handle, SEXP modified, Rcpp::List moves, SEXP dimnames) {
  return guarded([&] {
    const bool in_place = modified == handle;
    const Use<HeldBatch> R(handle, in_place ? For::changing : For::reading);
    const index_t n = R->order(), b = R->count();
    const MovesOfCall steps(moves[0], moves[1], R->orders());
    const Rcpp::Shield<SEXP> told(new_vector(INTSXP, b));
    const SidesOfCall along(moves[2], n, 0, b, n);
    const index_t words = n * along.given().m * b;
    Rcpp::List value = pivots_and_sides(told, along);
    BatchShift what;
    std::optional<ReshapedSides> carried;
    if (along.is_there()) carried.emplace(along.given(), *R, what);
    std::vector<double> z(what.sides.first.z, what.sides.first.z + words);
    what.sides.first.z = z.data();
    NewSize size(modified);
    Begun<HeldBatch> changed(modified);
    std::unique_ptr<HeldBatch> made;
    if (!in_place && steps.count() == 0) made = R->copy();
    std::atomic<bool> of_copy{false};
    for (index_t q = 0; q < steps.count(); ++q) {
      steps.set(q, what);
      naming_members([&] {
        if (made) made->shift(what, nullptr, of_copy);
        else R->shift(what, in_place ? nullptr : &made, changed.flag);
      });
      std::copy_n(what.sides.first.out, words, z.data());
    }
    changed.flag = in_place && carried;
    std::copy_n(z.data(), words, what.sides.first.out);
    if (carried) carried->settle({});
    changed.flag = false;
    tell(std::vector<index_t>(b, -1), told);
    settle(modified, *R, std::move(made), size, dimnames);
    return value;
  });
}
