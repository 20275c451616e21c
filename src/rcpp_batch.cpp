#include <Rcpp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "base/huge_pages.h"
#include "cpu/host_batch.h"
#include "cuda/device_batch.h"
#include "modify/batch.h"
#include "rcpp_batch.h"
#include "rcpp_fields.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"

using namespace gpucholmod;

namespace {

/// Returns list(R, pivots, z, rss); R is NULL if `check` is true and a member fails.
Rcpp::List with_pivots(SEXP R, const std::vector<index_t>& pivots, bool check, SEXP z = R_NilValue,
                       SEXP rss = R_NilValue) {
  const bool failed = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
  const Rcpp::Shield<SEXP> told(new_vector(INTSXP, index_t(pivots.size())));
  tell(pivots, told);
  return Rcpp::List::create(Rcpp::_["R"] = !check || !failed ? R : R_NilValue, Rcpp::_["pivots"] = SEXP(told),
                            Rcpp::_["z"] = z, Rcpp::_["rss"] = rss);
}

BatchRoom to_room(const Rcpp::IntegerVector& orders, int capacity) {
  return {capacity, {orders.begin(), orders.end()}};
}

Rcpp::List described(std::unique_ptr<HeldBatch> made) {
  using Rcpp::_;
  const auto* const there = dynamic_cast<const DeviceBatch*>(made.get());
  Rcpp::List handle = Rcpp::List::create(
      _["pointer"] = R_NilValue, _["n"] = int(made->order()), _["precision"] = int(made->precision()),
      _["device"] = there ? there->device() : NA_INTEGER, _["device_name"] = there ? there->device_name() : "",
      _["bytes"] = made->bytes(), _["count"] = int(made->count()), _["capacity"] = int(made->capacity()));
  handle["pointer"] = handed_over(std::move(made));
  return handle;
}

/// Notes, for last_cholupdate(), what was done with members of order n, or of several orders if n < 0, and the pivot of
/// the first member that fails.
void take_note(const Request& request, const BatchTask& task, index_t n, const Work& work,
               const std::vector<index_t>& pivots, bool in_place) {
  LastCall& last = last_call();
  last = {};
  last.any = true;
  last.in_place = in_place;
  last.members = index_t(pivots.size());
  last.request.n = n;
  last.request.k = n < 0 ? -1 : task.k;
  last.request.downdate = request.downdate;
  for (index_t q = 0; q < task.k && task.common_weights; ++q) last.request.removed += task.weight(q, 0) < 0;
  if (!task.common_weights) last.request.removed = -1;
  last.request.scale = task.common_scale ? std::sqrt(task.scale_of(0)) : NA_REAL;
  static_cast<Work&>(last.outcome) = work;
  last.outcome.backend = work.device.empty() ? Backend::cpu : Backend::cuda;
  last.outcome.precision = request.precision;
  const auto failed = std::find_if(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
  last.outcome.pivot = failed == pivots.end() ? -1 : *failed;
}

/// Modifies members that each lie in memory of their own, and notes the work for last_cholupdate().
std::vector<index_t> modify_members(const std::vector<BatchMember>& members, const Request& what, const BatchTask& task,
                                    index_t n) {
  std::vector<index_t> pivots;
  Progress progress(false);
  const Work work = modify_batch(members, what.uplo, what.precision, task, what.backend, pivots, progress.poll());
  take_note(what, task, n, work, pivots, false);
  return pivots;
}

}  // namespace

// Copies factors to a batch in ordinary memory. R: n x n x b doubles; orders: of the members, or none: n; uplo,
// precision: numbers from 0 (R/request.R).
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_hold(SEXP R, int n, int b, Rcpp::IntegerVector orders, int capacity, int uplo, int precision) {
  return guarded([&] {
    std::unique_ptr<HeldBatch> made;
    naming_members([&] {
      made = cpu::hold_batch(REAL(R), n, b, Uplo(uplo), Precision(precision), of_r, to_room(orders, capacity));
    });
    return described(std::move(made));
  });
}

// Copies factors to a batch on a GPU. device: its id, or -1 for the first GPU that can be used; the rest as above.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_upload(SEXP R, int n, int b, Rcpp::IntegerVector orders, int capacity, int uplo, int precision,
                             int device) {
  return guarded([&] {
    std::unique_ptr<HeldBatch> made;
    naming_members([&] {
      made = cuda::upload_batch(REAL(R), n, b, Uplo(uplo), Precision(precision), device, to_room(orders, capacity));
    });
    return described(std::move(made));
  });
}

// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_copy(SEXP handle) {
  return guarded([&] { return handed_over(Use<HeldBatch>(handle)->copy()); });
}

// Returns the factor of a member, which counts from 1; for member 0 those of all members, n x n x b.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_download(SEXP handle, int member, int uplo) {
  return guarded([&]() -> SEXP {
    const Use<HeldBatch> R(handle);
    const index_t n = R->order();
    const index_t own = member == 0 ? n : R->orders()[member - 1];
    const Rcpp::Shield<SEXP> out(member == 0 ? new_array(n, n, R->count()) : new_matrix(REALSXP, own, own));
    if (member == 0) R->download(Uplo(uplo), REAL(out));
    else R->download(member - 1, Uplo(uplo), REAL(out));
    return out;
  });
}

// Returns the diagonals, n x b.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_diagonals(SEXP handle) {
  return guarded([&]() -> SEXP {
    const Use<HeldBatch> R(handle);
    const Rcpp::Shield<SEXP> out(new_matrix(REALSXP, R->order(), R->count()));
    R->diagonals(REAL(out));
    return out;
  });
}

// Solves with every member. B: n x m x b doubles; which: as for rcpp_factor_solve().
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_solve(SEXP handle, SEXP B, int m, int which) {
  return guarded([&]() -> SEXP {
    const Use<HeldBatch> R(handle);
    require_rows("b", Rf_xlength(B), R->order() * m * R->count());
    const Rcpp::Shield<SEXP> X(new_array(R->order(), m, R->count()));
    std::copy_n(REAL(B), Rf_xlength(X), REAL(X));
    if (Rf_xlength(X) > 0) R->solve(TriangularSolve(which), REAL(X), m);
    return X;
  });
}

// Modifies a batch. modified: the handle itself, or a handle that is to refer to a new batch; change: ChangeOfBatch.
// Returns list(pivots, z, rss), pivots from 1; 0: success. Half modified handles: see Begun.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_batch_modify(SEXP handle, SEXP modified, SEXP change, SEXP request) {
  return guarded([&] {
    const bool in_place = modified == handle;
    const Use<HeldBatch> R(handle, in_place ? For::changing : For::reading);
    const ChangeOfBatch asked(change);
    const ColumnsOfBatch& given = asked.V;
    require_rows("V", given.numbers, R->order() * given.k * (given.common ? 1 : R->count()));
    Request what = to_request(request, R->order(), given.k);
    BatchTask task = to_task(what, asked.weights, asked.scale, given.k, given.common, asked.check);
    const Rcpp::Shield<SEXP> told(new_vector(INTSXP, R->count()));
    const SidesOfCall along(asked.sides, R->order(), given.k, R->count(), R->order());
    Rcpp::List value = pivots_and_sides(told, along);
    std::optional<CarriedSides> carried;
    if (along.is_there()) carried.emplace(along.given(), R->order(), R->count(), R->precision(), task);
    Begun<HeldBatch> changed(modified);
    Progress progress(false);
    std::vector<index_t> pivots;
    std::unique_ptr<HeldBatch> made;
    Work work;
    naming_members([&] {
      work = R->modify(given.V, task, in_place ? nullptr : &made, pivots, progress.poll(), changed.flag);
    });
    changed.flag = false;
    const bool failed = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
    if (carried && !(failed && asked.check)) {
      changed.flag = in_place;  // until the right-hand sides match the members
      carried->settle(task, pivots, R->orders());
      changed.flag = false;
    }
    what.precision = R->precision();
    take_note(what, task, R->order(), work, pivots, in_place);
    if (made) Rf_defineVar(Rf_install("pointer"), handed_over(std::move(made)), modified);
    tell(pivots, told);
    return value;
  });
}

// Modifies factors in an array. R: n x n x b, or n x n if common_R is true; change: as above. Returns list(R, pivots,
// z, rss); R is NULL if a member fails and `check` of `change` is true.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate_batch(SEXP R, bool common_R, SEXP change, SEXP request) {
  return guarded([&] {
    const ChangeOfBatch asked(change);
    const ColumnsOfBatch& given = asked.V;
    const index_t n = Rf_nrows(R), k = given.k, b = given.b;
    const Request what = to_request(request, n, k);
    const Rcpp::Shield<SEXP> out(new_array(n, n, b));
    prefer_huge_pages(REAL(out), sizeof(double) * Rf_xlength(out));
    const index_t size = n * n;
    BatchTask task = to_task(what, asked.weights, asked.scale, k, false, asked.check);
    const SidesOfCall along(asked.sides, n, k, b, n);
    std::optional<CarriedSides> carried;
    if (along.is_there()) carried.emplace(along.given(), n, b, what.precision, task);
    std::vector<BatchMember> members;
    for (index_t m = 0; m < b; ++m)
      members.push_back({n, k, REAL(R) + (common_R ? 0 : m * size), given.V + (given.common ? 0 : m * n * k),
                         REAL(out) + m * size,
                         task.weights ? task.weights + (task.common_weights ? 0 : m * k) : nullptr, task.scale_of(m),
                         task.sides.of(n, k, m)});
    const std::vector<index_t> pivots = modify_members(members, what, task, n);
    if (carried) carried->settle(task, pivots, std::vector<index_t>(b, n));
    return with_pivots(out, pivots, asked.check, along.z(), along.rss());
  });
}

// Returns the rows and columns of each element of a list, if it is a matrix or vector of doubles; NA for other
// elements.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_batch_shapes(Rcpp::List of) {
  return guarded([&]() -> SEXP {
    const Rcpp::Shield<SEXP> shapes(new_matrix(INTSXP, 2, of.size()));
    int* to = INTEGER(shapes);
    for (R_xlen_t m = 0; m < of.size(); ++m) {
      const SEXP x = of[m];
      const bool matrix = Rf_isMatrix(x), vector = Rf_getAttrib(x, R_DimSymbol) == R_NilValue;
      const bool good = TYPEOF(x) == REALSXP && !Rf_isObject(x) && (matrix || vector);
      *to++ = !good ? NA_INTEGER : matrix ? Rf_nrows(x) : int(Rf_xlength(x));
      *to++ = !good ? NA_INTEGER : matrix ? Rf_ncols(x) : 1;
    }
    return shapes;
  });
}

// Modifies factors in a list. R, V: lists of matrices of doubles that fit; weights: NULL, one number, or a list with a
// number for each column of each V; scale: NULL, one or b numbers. Members of one order and one k are modified
// together. Returns the list of rcpp_cholupdate_batch(), with a list as R.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate_list(Rcpp::List R, Rcpp::List V, SEXP request, SEXP weights, SEXP scale, bool check) {
  return guarded([&] {
    const index_t b = R.size();
    Rcpp::List out(b);
    const Request what = to_request(request, 0, 0);
    std::vector<BatchMember> members;
    std::vector<double> common;  // one weight for all columns
    for (index_t m = 0; m < b; ++m) {
      const SEXP r = R[m], v = V[m];
      const index_t n = Rf_nrows(r), k = Rf_isMatrix(v) ? Rf_ncols(v) : 1;
      const SEXP made = new_matrix(REALSXP, n, n, Rf_getAttrib(r, R_DimNamesSymbol));
      out[m] = made;
      members.push_back({n, k, REAL(r), REAL(v), REAL(made)});
      if (TYPEOF(weights) == VECSXP) members.back().weights = REAL(VECTOR_ELT(weights, m));
      else if (weights != R_NilValue && index_t(common.size()) < k) common.resize(k, Rf_asReal(weights));
      if (scale != R_NilValue) members.back().scale = REAL(scale)[Rf_xlength(scale) == 1 ? 0 : m];
    }
    for (BatchMember& member : members)
      if (!common.empty()) member.weights = common.data();
    const auto one_size = [&](index_t BatchMember::*size) {
      return b > 0 && std::all_of(members.begin(), members.end(),
                                  [&](const BatchMember& member) { return member.*size == members[0].*size; });
    };
    const bool alike = one_size(&BatchMember::n) && one_size(&BatchMember::k);
    BatchTask task = to_task(what, R_NilValue, R_NilValue, alike ? members[0].k : 0, false, check);
    task.common_weights = weights == R_NilValue;
    if (Rf_xlength(scale) == 1) task.scale = REAL(scale);
    task.common_scale = scale == R_NilValue || task.scale;
    return with_pivots(out, modify_members(members, what, task, alike ? members[0].n : -1), check);
  });
}
