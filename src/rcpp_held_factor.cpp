#include <Rcpp.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/factor_io.h"
#include "base/threads.h"
#include "cpu/host_factor.h"
#include "cuda/device_factor.h"
#include "modify/carried.h"
#include "modify/choice.h"
#include "rcpp_guard.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

/// What an R handle holds. The finaliser does not run when R quits: CUDA may be gone by then, and frees everything.
using Pointer = Rcpp::XPtr<HeldFactor, Rcpp::PreserveStorage, Rcpp::standard_delete_finalizer<HeldFactor>, false>;

HeldFactor& factor(SEXP pointer) { return *Pointer(pointer).checked_get(); }

/// For inst/bench.
DeviceFactor& on_device(SEXP pointer) {
  if (auto* const found = dynamic_cast<DeviceFactor*>(&factor(pointer))) return *found;
  throw Error(ErrorCode::bad_argument, "the factor is not on a GPU", {{"argument", "pointer"}});
}

/// A new factor belongs to the external pointer from now on.
Pointer handed_over(std::unique_ptr<HeldFactor> made) { return Pointer(made.release()); }

/// Memory that R knows of, so that it collects its garbage before the machine is full.
std::shared_ptr<void> of_r(std::size_t bytes) {
  const SEXP memory = Rcpp::unwindProtect([&] {
    const SEXP made = PROTECT(Rf_allocVector(RAWSXP, R_xlen_t(bytes)));
    R_PreserveObject(made);
    UNPROTECT(1);
    return made;
  });
  return {RAW(memory), [memory](void*) { R_ReleaseObject(memory); }};
}

/// Whether a factor itself has begun to change, told to a logical of R's.
struct Begun {
  int* told;
  std::atomic<bool> flag{false};
  ~Begun() { *told = flag; }
};

/// The R side of a new factor.
Rcpp::List described(std::unique_ptr<HeldFactor> made) {
  using Rcpp::_;
  const auto* const there = dynamic_cast<const DeviceFactor*>(made.get());
  Rcpp::List handle = Rcpp::List::create(
      _["pointer"] = R_NilValue, _["n"] = int(made->order()), _["precision"] = int(made->precision()),
      _["device"] = there ? there->device() : NA_INTEGER, _["device_name"] = there ? there->device_name() : "", _["bytes"] = made->bytes(),
      _["capacity"] = int(made->capacity()));
  handle["pointer"] = handed_over(std::move(made));
  return handle;
}

/// Of a handle, which is an environment: R/chol_factor_handle.R.
SEXP field(SEXP handle, const char* name) { return Rf_findVarInFrame(handle, Rf_install(name)); }
void set_field(SEXP handle, const char* name, SEXP value) {
  const Rcpp::Shield<SEXP> kept(value);
  Rf_defineVar(Rf_install(name), kept, handle);
}

/// The factor of a handle; where that cannot be used, R's error.
HeldFactor& live(SEXP handle) {
  const SEXP pointer = field(handle, "pointer");
  if (R_ExternalPtrAddr(pointer) == nullptr) in_r("live")(handle);
  return factor(pointer);
}

/// Enters a modification of `scale` A into the handle of the modified factor. `added`, `removed`: the traces of what is added and taken away;
/// where too few digits of their sum with that of A would be right, the factor is looked at. What it adds to the error: drift() in R.
void count_modification(SEXP handle, double added, double removed, double scale) {
  const HeldFactor& R = factor(field(handle, "pointer"));
  const double eps = R.precision() == Precision::single ? 0x1p-23 : 0x1p-52;
  const double most = scale * Rf_asReal(field(handle, "trace")) + added;
  double after = most - removed;
  if (!(std::isfinite(after) && after > std::sqrt(eps) * most)) after = R.trace();
  const double error = scale * Rf_asReal(field(handle, "error")) + 4 * eps * std::max(most, after);
  set_field(handle, "trace", Rcpp::wrap(after));
  set_field(handle, "error", Rcpp::wrap(error));
  set_field(handle, "modifications", Rcpp::wrap(Rf_asInteger(field(handle, "modifications")) + 1));
}

/// R has looked at what it was given beside the order of the factor; what is evaluated since may have changed that.
void require_rows(const char* argument, index_t rows, index_t expected) {
  if (rows != expected)
    throw Error(ErrorCode::bad_argument, std::string("'") + argument + "' does not fit the factor, which has changed since it was looked at",
                {{"argument", argument}, {"expected", double(expected)}, {"actual", double(rows)}});
}
index_t rows_of(SEXP x) { return Rf_isMatrix(x) ? Rf_nrows(x) : Rf_xlength(x); }

/// An n x n matrix that is not filled. Its names are set here: from R, that would copy it.
Rcpp::RObject square_matrix(index_t n, SEXP dimnames) {
  Rcpp::RObject matrix(Rcpp::unwindProtect([&] { return Rf_allocMatrix(REALSXP, int(n), int(n)); }));
  matrix.attr("dimnames") = dimnames;
  return matrix;
}

}  // namespace

// R: n x n double matrix, or integer matrix that holds the bits of floats; uplo, precision: numbers from 0 (R/request.R); capacity: less than
// n for n.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_hold(SEXP R, int uplo, int precision, int capacity) {
  return guarded([&] {
    const index_t n = Rf_nrows(R);
    return described(TYPEOF(R) == INTSXP ? cpu::hold(floats(R), n, Uplo(uplo), Precision(precision), capacity, of_r)
                                         : cpu::hold(REAL(R), n, Uplo(uplo), Precision(precision), capacity, of_r));
  });
}

// The same on a GPU; device: its id, or -1 for the first that can be used.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_upload(SEXP R, int uplo, int precision, int capacity, int device) {
  return guarded([&] {
    const index_t n = Rf_nrows(R);
    return described(TYPEOF(R) == INTSXP ? cuda::upload(floats(R), n, Uplo(uplo), Precision(precision), capacity, device)
                                         : cuda::upload(REAL(R), n, Uplo(uplo), Precision(precision), capacity, device));
  });
}

// A as R above, its upper triangle. Returns list(pivot, made): made is NULL when A is not positive definite; pivot counts
// from 1, 0 means success.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_factorise(SEXP A, int precision, int device) {
  return guarded([&] {
    const index_t n = Rf_nrows(A);
    index_t pivot = -1;
    std::unique_ptr<HeldFactor> made =
        TYPEOF(A) == INTSXP ? cuda::factorise(floats(A), n, Uplo::upper, Precision(precision), device, pivot)
                            : cuda::factorise(REAL(A), n, Uplo::upper, Precision(precision), device, pivot);
    Rcpp::List result = Rcpp::List::create(Rcpp::_["pivot"] = made ? 0 : int(pivot + 1));
    if (made) result["made"] = described(std::move(made));
    return result;
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::RObject rcpp_factor_copy(SEXP pointer) {
  return guarded([&] { return Rcpp::RObject(handed_over(factor(pointer).copy())); });
}

// Gives the memory back now; the pointer is null from then on.
// [[Rcpp::export(rng = false)]]
void rcpp_factor_free(SEXP pointer) {
  guarded([&] { Pointer(pointer).release(); });
}

// [[Rcpp::export(rng = false)]]
bool rcpp_factor_is_null(SEXP pointer) { return R_ExternalPtrAddr(pointer) == nullptr; }

// [[Rcpp::export(rng = false)]]
Rcpp::RObject rcpp_factor_download(SEXP pointer, int uplo, SEXP dimnames) {
  return guarded([&] {
    const HeldFactor& R = factor(pointer);
    const Rcpp::RObject out = square_matrix(R.order(), dimnames);
    R.download(Uplo(uplo), REAL(out));
    return out;
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector rcpp_factor_diagonal(SEXP pointer) {
  return guarded([&] {
    const HeldFactor& R = factor(pointer);
    Rcpp::NumericVector out(R.order());
    R.diagonal(out.begin());
    return out;
  });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_trace(SEXP pointer) {
  return guarded([&] { return factor(pointer).trace(); });
}

// B: n x m double matrix, or n; which: 0 for both substitutions, 1 forward, 2 back; dimnames: of the result.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector rcpp_factor_solve(SEXP pointer, Rcpp::NumericVector B, int which, SEXP dimnames) {
  return guarded([&] {
    const HeldFactor& R = factor(pointer);
    Rcpp::NumericVector X = Rcpp::clone(B);
    X.attr("dimnames") = dimnames;
    if (X.size() > 0) R.solve(TriangularSolve(which), X.begin(), Rf_ncols(X));
    return X;
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::RObject rcpp_factor_inverse(SEXP pointer, SEXP dimnames) {
  return guarded([&] {
    const HeldFactor& R = factor(pointer);
    const Rcpp::RObject out = square_matrix(R.order(), dimnames);
    R.inverse(REAL(out));
    return out;
  });
}

// V: n x k double matrix, or n; modified: the handle itself, to be modified in place, or one that is to refer to a new factor. Returns the pivot,
// counted from 1; 0 means success. half_modified: a logical that is TRUE while the factor itself is changed, and stays so where that fails or
// breaks off.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_modify(SEXP handle, SEXP modified, SEXP V, SEXP request, SEXP keep_intact, SEXP half_modified) {
  return guarded([&] {
    const index_t n = Rf_asInteger(field(handle, "n")), k = Rf_isMatrix(V) ? Rf_ncols(V) : 1;
    Request what = to_request(request, n, k);
    what.keep_intact = flag(keep_intact, "keep_intact");
    HeldFactor& R = live(handle);
    require_rows("V", rows_of(V), R.order());
    Begun changed{LOGICAL(half_modified)};
    std::unique_ptr<HeldFactor> made;
    const int pivot = carry_out(Place<double>::held(R, modified == handle ? nullptr : &made, changed.flag), REAL(V), what);
    if (pivot > 0) return pivot;
    changed.flag = false;
    if (made) set_field(modified, "pointer", handed_over(std::move(made)));
    double traces[2] = {0, 0};
    for (index_t q = 0; q < k; ++q) {
      const double* const v = REAL(V) + q * n;
      const double w = !what.weights.empty() ? what.weights[q] : q < what.added() ? 1 : -1;
      traces[w < 0] += std::abs(w) * sum_of_squares(v, n);
    }
    if (k > 0 || what.scale != 1) count_modification(modified, traces[0], traces[1], what.scale * what.scale);
    return 0;
  });
}

// For tests: enters a modification into a handle, as count_modification() does.
// [[Rcpp::export(rng = false)]]
void rcpp_factor_count(SEXP handle, double added, double removed, double scale) {
  guarded([&] { count_modification(handle, added, removed, scale); });
}

namespace {

/// A matrix of R's that becomes a new factor.
struct MatrixOfR {
  Rcpp::RObject numbers;  ///< the last that was asked for

  cpu::Allocate allocate() {
    return [this](std::size_t bytes) -> std::shared_ptr<void> {
      numbers = Rcpp::RObject(Rcpp::unwindProtect([&] { return Rf_allocVector(REALSXP, R_xlen_t(bytes / sizeof(double))); }));
      return {REAL(numbers), [kept = numbers](void*) {}};
    };
  }
  /// That of `made`, whose own memory it is, or, where numbers had to be scaled, a copy.
  Rcpp::RObject filled(const HeldFactor& made, SEXP dimnames) {
    const index_t n = made.order();
    if (numbers.isNULL() || Rf_xlength(numbers) != n * n) {
      numbers = square_matrix(n, R_NilValue);
      made.download(Uplo::upper, REAL(numbers));
    }
    for (index_t j = 0; j < n; ++j) std::fill(REAL(numbers) + j + 1 + j * n, REAL(numbers) + n + j * n, 0.0);
    numbers.attr("dim") = Rcpp::IntegerVector::create(int(n), int(n));
    numbers.attr("dimnames") = dimnames;
    return numbers;
  }
};

/// f(factor, task, made, poll, begun, traces), one of the calls by which rows and columns come, go and move. `held`: a handle, or an environment
/// with an upper `matrix` of doubles. `modified`: `held` itself, to be changed in place, or an environment that gets the new factor: all fields of
/// a handle that change, or `matrix`. dimnames: of the new factor. half_modified: as in rcpp_factor_modify(). traces: of what comes and of what goes. k: how
/// many come or go; `coming`: they come; `changes`: there is something to be done. Right-hand sides: rcpp_take_sides(). Returns the pivot, counted
/// from 1; 0 means success.
template <class F>
int reshaped(SEXP held, SEXP modified, SEXP dimnames, SEXP request, SEXP half_modified, index_t k, bool coming, bool changes, F&& f) {
  return guarded([&] {
    const SEXP numbers = field(held, "matrix");
    MatrixOfR matrix;
    const std::unique_ptr<HeldFactor> borrowed =
        numbers != R_UnboundValue ? cpu::borrow(REAL(numbers), Rf_nrows(numbers), matrix.allocate()) : nullptr;
    HeldFactor& R = borrowed ? *borrowed : live(held);
    const index_t n = R.order();
    Request what = resolved(to_request(request, n, k), Choice{});
    what.threads = threads_for(what.threads);
    what.removed = coming ? k : 0;  // of the sum of squares, as of a modification
    Carried carried(what, what.sides ? what.sides->Y.data() : nullptr, n + (coming ? k : -k));
    what.right = carried.task();
    Begun changed{LOGICAL(half_modified)};
    std::unique_ptr<HeldFactor> made;
    Progress progress(wants_bar());
    const Poll poll = progress.poll();
    double traces[2] = {0, 0};
    const index_t pivot = f(R, what, modified == held ? nullptr : &made, poll, changed.flag, traces);
    if (pivot >= 0) return int(pivot + 1);
    changed.flag = false;
    carried.settle(false);
    last_call().request.sides = what.sides;
    if (borrowed) {
      set_field(modified, "matrix", matrix.filled(*made, dimnames));
      return 0;
    }
    const HeldFactor& now = made ? *made : R;
    set_field(modified, "dimnames", dimnames);
    set_field(modified, "n", Rcpp::wrap(int(now.order())));
    set_field(modified, "bytes", Rcpp::wrap(now.bytes()));
    set_field(modified, "capacity", Rcpp::wrap(int(now.capacity())));
    if (made) set_field(modified, "pointer", handed_over(std::move(made)));
    if (changes) count_modification(modified, traces[0], traces[1], 1);
    return 0;
  });
}

}  // namespace

// gone: from 1, each once.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_delete(SEXP held, SEXP modified, Rcpp::IntegerVector gone, SEXP dimnames, SEXP request, SEXP half_modified) {
  return reshaped(held, modified, dimnames, request, half_modified, gone.size(), false, gone.size() > 0,
                  [&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, std::atomic<bool>& changed, double* traces) {
    std::vector<index_t> numbers(gone.begin(), gone.end());
    for (index_t& j : numbers) --j;
    std::sort(numbers.begin(), numbers.end());
    if (!numbers.empty()) require_rows("index", std::max(numbers.back() + 1, R.order()), R.order());
    traces[1] = R.remove(numbers, task, made, poll, changed);
    return index_t(-1);
  });
}

// at: from 1; X: n + p x p doubles, or n + 1.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_insert(SEXP held, SEXP modified, int at, SEXP X, SEXP dimnames, SEXP request, SEXP half_modified) {
  const index_t p = Rf_ncols(X), first = at - 1;
  return reshaped(held, modified, dimnames, request, half_modified, p, true, p > 0,
                  [&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, std::atomic<bool>& changed, double* traces) {
    require_rows("X", rows_of(X), R.order() + p);
    for (index_t q = 0; q < p; ++q) traces[0] += REAL(X)[first + q + q * (R.order() + p)];
    return R.insert(first, REAL(X), p, task, made, poll, changed);
  });
}

// from, to: from 1.
// [[Rcpp::export(rng = false)]]
int rcpp_factor_shift(SEXP held, SEXP modified, int from, int to, SEXP dimnames, SEXP request, SEXP half_modified) {
  return reshaped(held, modified, dimnames, request, half_modified, 0, false, from != to,
                  [&](HeldFactor& R, const Task& task, auto* made, const Poll& poll, std::atomic<bool>& changed, double*) {
    require_rows("from", std::max<index_t>({from, to, R.order()}), R.order());
    R.shift(from - 1, to - 1, task, made, poll, changed);
    return index_t(-1);
  });
}

// The rest is for inst/bench: see cuda/device_factor.h. X: n x m double matrix; returns AX.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix rcpp_factor_multiply(SEXP pointer, Rcpp::NumericMatrix X) {
  return guarded([&] {
    Rcpp::NumericMatrix Y(X.nrow(), X.ncol());
    on_device(pointer).multiply(X.begin(), Y.begin(), X.ncol());
    return Y;
  });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_sweep_seconds(SEXP pointer, int repeats) {
  return guarded([&] { return on_device(pointer).sweep_seconds(repeats); });
}

// B: n x m double matrix.
// [[Rcpp::export(rng = false)]]
double rcpp_factor_solve_seconds(SEXP pointer, Rcpp::NumericMatrix B, bool by_cublas, int repeats) {
  return guarded([&] { return on_device(pointer).solve_seconds(B.begin(), B.ncol(), by_cublas, repeats); });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_refactor_seconds(SEXP pointer, int repeats) {
  return guarded([&] { return on_device(pointer).refactor_seconds(repeats); });
}
