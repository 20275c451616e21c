#include <Rcpp.h>

#include <memory>
#include <numeric>

#include "cuda/device_factor.h"
#include "rcpp_choice.h"
#include "rcpp_guard.h"

using namespace gpucholmod;

namespace {

/// What an R handle holds. The finaliser does not run when R quits: CUDA may be gone by then, and frees everything.
using Pointer = Rcpp::XPtr<DeviceFactor, Rcpp::PreserveStorage, Rcpp::standard_delete_finalizer<DeviceFactor>, false>;

DeviceFactor& factor(SEXP pointer) { return *Pointer(pointer).checked_get(); }

const auto resident_methods = {std::pair("auto", ResidentMethod::automatic), {"persistent", ResidentMethod::persistent},
                               {"stepwise", ResidentMethod::stepwise}};
const auto solves = {std::pair("both", TriangularSolve::both), {"forward", TriangularSolve::forward},
                     {"back", TriangularSolve::back}};

/// The R side of a new factor; it belongs to the external pointer from now on.
Rcpp::List handed_over(std::unique_ptr<DeviceFactor> made) {
  using Rcpp::_;
  Rcpp::List handle = Rcpp::List::create(
      _["pointer"] = R_NilValue, _["n"] = int(made->order()), _["precision"] = text(made->precision(), precisions),
      _["device"] = made->device(), _["device_name"] = made->device_name(), _["bytes"] = made->bytes());
  handle["pointer"] = Pointer(made.release());
  return handle;
}

template <class S>
std::unique_ptr<DeviceFactor> upload(const S* R, index_t n, const Rcpp::List& request) {
  return cuda::upload<S>(R, n, choice(request, "uplo", uplos), choice(request, "precision", precisions),
                         Rcpp::as<int>(request["device"]));
}

template <class S>
std::unique_ptr<DeviceFactor> factorise(const S* A, index_t n, const Rcpp::List& request, index_t& pivot) {
  return cuda::factorise<S>(A, n, choice(request, "uplo", uplos), choice(request, "precision", precisions),
                            Rcpp::as<int>(request["device"]), pivot);
}

const float* floats(SEXP bits) { return reinterpret_cast<const float*>(INTEGER(bits)); }

/// An n x n matrix that is not filled. Its names are set here: from R, that would copy it.
Rcpp::RObject square_matrix(index_t n, SEXP dimnames) {
  Rcpp::RObject matrix(Rcpp::unwindProtect([&] { return Rf_allocMatrix(REALSXP, int(n), int(n)); }));
  matrix.attr("dimnames") = dimnames;
  return matrix;
}

}  // namespace

// R: n x n double matrix, or integer matrix that holds the bits of floats; request: uplo, precision, device (-1: the
// first that can be used).
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_upload(SEXP R, Rcpp::List request) {
  return guarded([&] {
    const index_t n = Rf_nrows(R);
    return handed_over(TYPEOF(R) == INTSXP ? upload(floats(R), n, request) : upload<double>(REAL(R), n, request));
  });
}

// A as R above. Returns list(pivot, made): made is NULL when A is not positive definite; pivot counts from 1, 0 means
// success.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_factorise(SEXP A, Rcpp::List request) {
  return guarded([&] {
    const index_t n = Rf_nrows(A);
    index_t pivot = -1;
    std::unique_ptr<DeviceFactor> made =
        TYPEOF(A) == INTSXP ? factorise(floats(A), n, request, pivot) : factorise<double>(REAL(A), n, request, pivot);
    Rcpp::List result = Rcpp::List::create(Rcpp::_["pivot"] = made ? 0 : int(pivot + 1));
    if (made) result["made"] = handed_over(std::move(made));
    return result;
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_copy(SEXP pointer) {
  return guarded([&] { return handed_over(factor(pointer).copy()); });
}

// Gives the memory back now; the pointer is null from then on.
// [[Rcpp::export(rng = false)]]
void rcpp_factor_free(SEXP pointer) {
  guarded([&] { Pointer(pointer).release(); });
}

// [[Rcpp::export(rng = false)]]
bool rcpp_factor_is_null(SEXP pointer) { return R_ExternalPtrAddr(pointer) == nullptr; }

// request: uplo, dimnames.
// [[Rcpp::export(rng = false)]]
Rcpp::RObject rcpp_factor_download(SEXP pointer, Rcpp::List request) {
  return guarded([&] {
    const DeviceFactor& R = factor(pointer);
    const Rcpp::RObject out = square_matrix(R.order(), request["dimnames"]);
    R.download(choice(request, "uplo", uplos), REAL(out));
    return out;
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector rcpp_factor_diagonal(SEXP pointer) {
  return guarded([&] {
    const DeviceFactor& R = factor(pointer);
    Rcpp::NumericVector out(R.order());
    R.diagonal(out.begin());
    return out;
  });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_trace(SEXP pointer) {
  return guarded([&] { return factor(pointer).trace(); });
}

// B: n x m double matrix; request: which ("both", "forward" or "back"), dimnames of the result.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector rcpp_factor_solve(SEXP pointer, Rcpp::NumericVector B, Rcpp::List request) {
  return guarded([&] {
    const DeviceFactor& R = factor(pointer);
    Rcpp::NumericVector X = Rcpp::clone(B);
    X.attr("dimnames") = request["dimnames"];
    if (X.size() > 0) R.solve(choice(request, "which", solves), X.begin(), Rf_ncols(X));
    return X;
  });
}

// [[Rcpp::export(rng = false)]]
Rcpp::RObject rcpp_factor_inverse(SEXP pointer, SEXP dimnames) {
  return guarded([&] {
    const DeviceFactor& R = factor(pointer);
    const Rcpp::RObject out = square_matrix(R.order(), dimnames);
    R.inverse(REAL(out));
    return out;
  });
}

// V: n x k double matrix; request: downdate, method, in_place, keep_intact, always_fall_back.
// Returns list(pivot, changed, squares, report, made): made is the new factor, NULL when the downdate fails or is done
// in place; changed: a downdate that failed has left the factor half modified; squares: ||V||_F^2.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_factor_modify(SEXP pointer, SEXP V, Rcpp::List request) {
  return guarded([&] {
    DeviceFactor& R = factor(pointer);
    const bool in_place = Rcpp::as<bool>(request["in_place"]);
    ResidentRequest what;
    what.k = Rf_ncols(V);
    what.sign = Rcpp::as<bool>(request["downdate"]) ? Sign::downdate : Sign::update;
    what.method = choice(request, "method", resident_methods);
    what.test_first = Rcpp::as<bool>(request["keep_intact"]);
    what.always_fall_back = Rcpp::as<bool>(request["always_fall_back"]);

    ResidentOutcome done;
    std::unique_ptr<DeviceFactor> made;
    if (in_place) R.modify(REAL(V), what, done);
    else made = R.modified(REAL(V), what, done);
    const double* last = REAL(V) + R.order() * what.k;
    const double squares = std::inner_product<const double*>(REAL(V), last, REAL(V), 0.0);

    using Rcpp::_;
    Rcpp::List result = Rcpp::List::create(
        _["pivot"] = int(done.pivot + 1), _["changed"] = done.changed, _["squares"] = squares,
        _["report"] = Rcpp::List::create(
            _["n"] = double(R.order()), _["k"] = double(what.k), _["downdate"] = what.sign == Sign::downdate,
            _["backend"] = "cuda", _["method"] = text(done.method, resident_methods),
            _["precision"] = text(R.precision(), precisions), _["device"] = R.device_name(),
            _["seconds"] = done.seconds, _["pivot"] = int(done.pivot + 1), _["blocks"] = double(done.blocks),
            _["fallbacks"] = double(done.fallbacks), _["rescalings"] = double(done.rescalings),
            _["in_place"] = in_place));
    if (made) result["made"] = handed_over(std::move(made));
    return result;
  });
}

// The rest is for inst/bench: see cuda/device_factor.h. X: n x m double matrix; returns AX.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix rcpp_factor_multiply(SEXP pointer, Rcpp::NumericMatrix X) {
  return guarded([&] {
    Rcpp::NumericMatrix Y(X.nrow(), X.ncol());
    factor(pointer).multiply(X.begin(), Y.begin(), X.ncol());
    return Y;
  });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_sweep_seconds(SEXP pointer, int repeats) {
  return guarded([&] { return factor(pointer).sweep_seconds(repeats); });
}

// [[Rcpp::export(rng = false)]]
double rcpp_factor_refactor_seconds(SEXP pointer, int repeats) {
  return guarded([&] { return factor(pointer).refactor_seconds(repeats); });
}
