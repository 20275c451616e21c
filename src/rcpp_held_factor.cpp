#include <Rcpp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/factor_io.h"
#include "base/file.h"
#include "base/semidefinite.h"
#include "cpu/host_factor.h"
#include "cuda/device_factor.h"
#include "rcpp_fields.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

/// Returns the factor on a GPU, for inst/bench. Throws bad_argument if the factor is not on a GPU.
const DeviceFactor& on_device(const Use<HeldFactor>& R) {
  if (auto* const found = dynamic_cast<const DeviceFactor*>(&R->plain())) return *found;
  throw Error(ErrorCode::bad_argument, "the factor is not on a GPU", {{"argument", "pointer"}});
}

/// Returns the fields of the handle of a new factor.
Rcpp::List described(std::unique_ptr<HeldFactor> made) {
  using Rcpp::_;
  const auto* const there = dynamic_cast<const DeviceFactor*>(&made->plain());
  const std::vector<DeviceFactor::Share> shares = there ? there->shares() : std::vector<DeviceFactor::Share>{};
  std::vector<int> devices;
  for (const DeviceFactor::Share& share : shares) devices.push_back(share.device);
  Rcpp::List handle = Rcpp::List::create(
      _["pointer"] = R_NilValue, _["n"] = int(made->order()), _["precision"] = int(made->precision()),
      _["device"] = there ? there->device() : NA_INTEGER, _["device_name"] = there ? there->device_name() : "",
      _["bytes"] = made->bytes(), _["capacity"] = int(made->capacity()), _["devices"] = devices);
  handle["pointer"] = handed_over(std::move(made));
  return handle;
}

/// Returns make(numbers) for a matrix R of doubles or of floats. If R has zeros on its diagonal, the new factor has
/// them, too.
template <class F>
std::unique_ptr<HeldFactor> kept(SEXP R, int uplo, int precision, F&& make) {
  const index_t n = Rf_nrows(R);
  return TYPEOF(R) == INTSXP ? keep_with_zeros(floats(R), n, Uplo(uplo), Precision(precision), make)
                             : keep_with_zeros(REAL(R), n, Uplo(uplo), Precision(precision), make);
}

/// Returns the traces of V|W|V' for the columns that the last call has added and for those that it has taken away.
std::array<double, 2> traces_of(const double* V, index_t n, index_t k, const Request& what) {
  const double* const squares = last_call().outcome.squares;  // of V as the backend read it, divided by the scale
  if (!std::isnan(squares[0])) return {squares[0] * what.scale * what.scale, squares[1] * what.scale * what.scale};
  std::array<double, 2> traces{};
  for (index_t q = 0; q < k; ++q) {
    const double w = !what.weights.empty() ? what.weights[q] : q < what.added() ? 1 : -1;
    traces[w < 0] += std::abs(w) * sum_of_squares(V + q * n, n);
  }
  return traces;
}

}  // namespace

// Copies R to a factor in ordinary memory. R: n x n double matrix, or integer matrix that holds the bits of floats;
// uplo, precision: numbers from 0 (R/request.R); capacity: n is taken if this is less.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_hold(SEXP R, int uplo, int precision, int capacity) {
  return guarded([&] {
    const index_t n = Rf_nrows(R);
    return described(kept(R, uplo, precision, [&](const auto* numbers) {
      return cpu::hold(numbers, n, Uplo(uplo), Precision(precision), capacity, of_r);
    }));
  });
}

// Copies R to a factor on GPUs. devices: their ids, or -1 for the first that can be used; the rest as above.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_upload(SEXP R, int uplo, int precision, int capacity, std::vector<int> devices) {
  return guarded([&] {
    const index_t n = Rf_nrows(R);
    return described(kept(R, uplo, precision, [&](const auto* numbers) -> std::unique_ptr<HeldFactor> {
      return cuda::upload(numbers, n, Uplo(uplo), Precision(precision), capacity, devices);
    }));
  });
}

// Copies a factor of order n from a file of doubles to GPUs; the factor is never whole in memory. The rest as above.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_upload_file(std::string path, int n, int precision, int capacity, std::vector<int> devices) {
  return guarded([&] {
    const FactorFile R(path);
    R.require_order(n);
    std::unique_ptr<HeldFactor> made;
    R.read([&] {
      made = keep_with_zeros(R, n, Precision(precision), [&](const Source<double>& rows) {
        return std::unique_ptr<HeldFactor>(
            cuda::upload(rows, n, Precision(precision), capacity, devices, [](double) { heed_user(); }));
      });
    });
    return described(std::move(made));
  });
}

// Factorises A on GPUs. A: a matrix as R above, whose upper triangle is read; devices as above. Returns list(pivot,
// made): made is NULL if A is not positive definite; pivot counts from 1, 0 means success.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_factorise(SEXP A, int precision, std::vector<int> devices) {
  return guarded([&] {
    const index_t n = Rf_nrows(A);
    index_t pivot = -1;
    std::unique_ptr<HeldFactor> made =
        TYPEOF(A) == INTSXP ? cuda::factorise(floats(A), n, Uplo::upper, Precision(precision), devices, pivot)
                            : cuda::factorise(REAL(A), n, Uplo::upper, Precision(precision), devices, pivot);
    Rcpp::List result = Rcpp::List::create(Rcpp::_["pivot"] = made ? 0 : int(pivot + 1));
    if (made) result["made"] = described(std::move(made));
    return result;
  });
}

// Returns the bytes on each of the GPUs of a factor, for print().
// [[Rcpp::export(rng = false)]]
std::vector<double> rcpp_factor_shares(SEXP handle) {
  return guarded([&] {
    const Use<HeldFactor> R(handle);
    std::vector<double> bytes;
    for (const DeviceFactor::Share& share : on_device(R).shares()) bytes.push_back(share.bytes);
    return bytes;
  });
}

// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_copy(SEXP handle) {
  return guarded([&] { return handed_over(Use<HeldFactor>(handle)->copy()); });
}

// Returns the factor as a matrix with these dimnames.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_download(SEXP handle, int uplo, SEXP dimnames) {
  return guarded([&]() -> SEXP {
    const Use<HeldFactor> R(handle);
    const Rcpp::Shield<SEXP> out(new_matrix(REALSXP, R->order(), R->order(), dimnames));
    R->download(Uplo(uplo), REAL(out));
    return out;
  });
}

// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_diagonal(SEXP handle) {
  return guarded([&]() -> SEXP {
    const Use<HeldFactor> R(handle);
    const Rcpp::Shield<SEXP> out(new_vector(REALSXP, R->order()));
    R->diagonal(REAL(out));
    return out;
  });
}

// Returns the trace of A. pointer: the external pointer of a new factor, which has no handle yet.
// [[Rcpp::export(rng = false)]]
double rcpp_factor_trace(SEXP pointer) {
  return guarded([&] { return Use<HeldFactor>(pointer)->trace(); });
}

// Solves for B, an n x m double matrix, or n numbers. which: 0 for both substitutions, 1 forward, 2 back. as_vector:
// true if the result, of one column, is a vector; names: names or dimnames of the result.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_solve(SEXP handle, SEXP B, int which, bool as_vector, SEXP names) {
  return guarded([&]() -> SEXP {
    const Use<HeldFactor> R(handle);
    const index_t n = R->order(), m = Rf_isMatrix(B) ? Rf_ncols(B) : 1;
    require_rows("b", rows_of(B), n);
    const Rcpp::Shield<SEXP> X(as_vector ? new_vector(REALSXP, n, names) : new_matrix(REALSXP, n, m, names));
    if (n * m > 0) R->solve_for(TriangularSolve(which), REAL(B), REAL(X), m);
    return X;
  });
}

// Multiplies X, an n x m double matrix, or n numbers. which: 0 for AX, 1 for R'X, 2 for RX. Returns a matrix.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_multiply(SEXP handle, SEXP X, int which) {
  return guarded([&]() -> SEXP {
    const Use<HeldFactor> R(handle);
    const index_t n = R->order(), m = Rf_isMatrix(X) ? Rf_ncols(X) : 1;
    require_rows("x", rows_of(X), n);
    const Rcpp::Shield<SEXP> Y(new_matrix(REALSXP, n, m));
    std::copy_n(REAL(X), n * m, REAL(Y));
    if (n * m > 0) R->multiply(TriangularProduct(which), REAL(Y), m);
    return Y;
  });
}

// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_inverse(SEXP handle, SEXP dimnames) {
  return guarded([&]() -> SEXP {
    const Use<HeldFactor> R(handle);
    const Rcpp::Shield<SEXP> out(new_matrix(REALSXP, R->order(), R->order(), dimnames));
    R->inverse(REAL(out));
    return out;
  });
}

namespace {

/// Modifies the factor `R` of `handle` as `what` says. `modified`: the handle itself, to be modified in place, or a
/// handle that is to refer to a new factor. Returns the failing pivot, counted from 0; -1: success. Half modified
/// handles: see Begun.
index_t modify_held(HeldFactor& R, SEXP handle, SEXP modified, SEXP V, Request& what, bool brief) {
  const bool in_place = modified == handle;
  require_rows("V", rows_of(V), R.order());
  require_rows("V", what.n, R.order());
  what.precision = R.precision();
  if (what.threads == 0) what.threads = R.threads();
  NewFields fields(modified, false);
  Begun<HeldFactor> changed(modified);
  std::unique_ptr<HeldFactor> made;
  const index_t pivot = with_room([&] {
    return carry_out(Place<double>::held(R, in_place ? nullptr : &made, changed.flag), REAL(V), what, brief);
  }, [&] { return R.on_gpu() && !changed.flag; });
  if (pivot >= 0) return pivot;
  changed.flag = false;
  const std::array<double, 2> traces = traces_of(REAL(V), what.n, what.k, what);
  if (what.k > 0 || what.scale != 1) fields.count(made ? *made : R, traces[0], traces[1], what.scale * what.scale);
  if (made) fields.set_pointer(handed_over(std::move(made)));
  return pivot;
}

}  // namespace

// Modifies a factor. V: n x k double matrix, or n numbers; modified: the handle itself, to be modified in place, or a
// handle that is to refer to a new factor. Returns what Result says.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_modify(SEXP handle, SEXP modified, SEXP V, SEXP request, SEXP keep_intact) {
  return guarded([&]() -> SEXP {
    const index_t n = Rf_asInteger(field(handle, Field::n));
    Request what = to_request(request, n, columns_of(V));
    what.keep_intact = flag(keep_intact, "keep_intact");
    const Use<HeldFactor> R(handle, modified == handle ? For::changing : For::reading);
    const Result result(request, what, n);
    const index_t pivot = modify_held(*R, handle, modified, V, what, false);
    return pivot < 0 ? result.done() : result.failed(pivot);
  });
}

// Makes the usual call of cholupdate_gpu() for a handle that is an environment. All arguments are as the user gave
// them, except `order`, the handle's field `n` before V was evaluated. Returns the handle of the modified factor; with
// z, what Result says, with this handle as the factor; if the pivot fails, its number, from 1. Does nothing and returns
// NULL if R/ has to look at the arguments or if the call may take long.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_modify_usual(SEXP handle, SEXP in_place, SEXP order, SEXP V, SEXP downdate, SEXP weights,
                              SEXP scale, SEXP z, SEXP y, SEXP rss) {
  return guarded([&]() -> SEXP {
    if (!is_flag(in_place) || TYPEOF(order) != INTSXP || Rf_xlength(order) != 1) return R_NilValue;
    const bool changes = LOGICAL(in_place)[0];
    const index_t n = INTEGER(order)[0], k = columns_of(V);
    if (!are_plain_columns(V, n)) return R_NilValue;
    const SEXP dimnames = field(handle, Field::dimnames);
    for (const int which : {0, 1})  // one of them has the variables' names
      if (!are_named_alike(V, dimnames, which)) return R_NilValue;
    const UsualArguments given{downdate, weights, scale, z, y, rss};
    std::optional<Request> what = usual_request(given, n, k, true);
    if (!what) return R_NilValue;
    const Use<HeldFactor> R(handle, changes ? For::changing : For::reading);
    if (!is_brief(n, k, R->on_gpu())) return R_NilValue;
    what->backend = R->on_gpu() ? Backend::cuda : Backend::cpu;
    const Rcpp::Shield<SEXP> modified(changes ? handle : descendant(handle, R_NilValue));
    const Result result(given, *what, n, NILSXP, R_NilValue);
    const index_t pivot = modify_held(*R, handle, modified, V, *what, true);
    if (pivot >= 0) return failing_pivot(pivot);
    return what->sides ? result.done(modified) : SEXP(modified);
  });
}

// Counts a modification into a handle, as NewFields does; for tests.
// [[Rcpp::export(rng = false)]]
void rcpp_factor_count(SEXP handle, double added, double removed, double scale) {
  guarded([&] {
    const Use<HeldFactor> R(handle);
    NewFields(handle, false).count(*R, added, removed, scale);
  });
}

// The functions from here on are for inst/bench: see cuda/device_factor.h.
// [[Rcpp::export(rng = false)]]
double rcpp_factor_sweep_seconds(SEXP pointer, int repeats) {
  return guarded([&] { return on_device(Use<HeldFactor>(pointer)).sweep_seconds(repeats); });
}

// B: n x m double matrix.
// [[Rcpp::export(rng = false)]]
double rcpp_factor_solve_seconds(SEXP pointer, Rcpp::NumericMatrix B, bool by_cublas, int repeats) {
  return guarded([&] {
    return on_device(Use<HeldFactor>(pointer)).solve_seconds(B.begin(), B.ncol(), by_cublas, repeats);
  });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_refactor_seconds(SEXP pointer, int repeats) {
  return guarded([&] { return on_device(Use<HeldFactor>(pointer)).refactor_seconds(repeats); });
}
