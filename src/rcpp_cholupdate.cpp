#include <Rcpp.h>

#include <cstring>

#include "core/dispatch.h"
#include "rcpp_choice.h"
#include "rcpp_guard.h"

using namespace gpucholmod;

namespace {

const auto backends = {std::pair("auto", Backend::automatic), {"cpu", Backend::cpu}, {"cuda", Backend::cuda}};
const auto methods = {std::pair("auto", Method::automatic), {"reference", Method::reference},
                      {"blocked", Method::blocked}, {"panel", Method::panel}};

Request to_request(const Rcpp::List& given, index_t n, index_t k) {
  Request request;
  request.n = n;
  request.k = k;
  request.sign = Rcpp::as<bool>(given["downdate"]) ? Sign::downdate : Sign::update;
  request.uplo = choice(given, "uplo", uplos);
  request.precision = choice(given, "precision", precisions);
  request.backend = choice(given, "backend", backends);
  request.method = choice(given, "method", methods);
  const Rcpp::List control = given["control"];
  request.loop_order = choice(control, "loop_order", {std::pair("A", LoopOrder::a), {"B", LoopOrder::b}});
  request.panel.blocks_per_kernel = Rcpp::as<int>(control["blocks_per_kernel"]);
  request.panel.threads_per_block = Rcpp::as<int>(control["threads_per_block"]);
  request.panel.elements_per_thread = Rcpp::as<int>(control["elements_per_thread"]);
  request.panel.panel_rows = Rcpp::as<int>(control["panel_rows"]);
  request.device_memory = Rcpp::as<double>(control["device_memory"]);
  return request;
}

}  // namespace

// R: n x n double matrix, or integer matrix that holds the bits of floats; V: n x k, the same type.
// Returns list(R =, pivot =, report =): R is NULL when the downdate fails, pivot counts from 1, 0 means success.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate(SEXP R, SEXP V, Rcpp::List request) {
  return guarded([&] {
    const index_t n = Rf_nrows(R), k = Rf_ncols(V);
    const Request what = to_request(request, n, k);
    const Rcpp::Shield<SEXP> out(Rcpp::unwindProtect([&] { return Rf_allocMatrix(TYPEOF(R), int(n), int(n)); }));
    const Poll poll = [] { Rcpp::checkUserInterrupt(); };
    const Outcome done =
        TYPEOF(R) == INTSXP
            ? modify(reinterpret_cast<const float*>(INTEGER(R)), reinterpret_cast<const float*>(INTEGER(V)),
                     reinterpret_cast<float*>(INTEGER(out)), what, poll)
            : modify<double>(REAL(R), REAL(V), REAL(out), what, poll);
    using Rcpp::_;
    return Rcpp::List::create(
        _["R"] = done.pivot < 0 ? SEXP(out) : R_NilValue, _["pivot"] = int(done.pivot + 1),
        _["report"] = Rcpp::List::create(
            _["n"] = double(n), _["k"] = double(k), _["downdate"] = what.sign == Sign::downdate,
            _["backend"] = text(done.backend, backends), _["method"] = text(done.method, methods),
            _["precision"] = text(done.precision, precisions), _["device"] = done.device,
            _["seconds"] = done.seconds, _["panels"] = double(done.panels),
            _["device_bytes_peak"] = done.device_bytes_peak, _["pinned"] = done.pinned,
            _["pivot"] = int(done.pivot + 1)));
  });
}

// The defaults of the panel method's tunables.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_panel_shape() {
  const PanelShape shape;
  using Rcpp::_;
  return Rcpp::List::create(_["blocks_per_kernel"] = shape.blocks_per_kernel,
                            _["threads_per_block"] = shape.threads_per_block,
                            _["elements_per_thread"] = shape.elements_per_thread,
                            _["panel_rows"] = shape.panel_rows);
}

// The bits of floats, as package float keeps them in an integer vector, to doubles and back.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector rcpp_from_float(Rcpp::IntegerVector bits) {
  Rcpp::NumericVector x(bits.size());
  for (R_xlen_t i = 0; i < bits.size(); ++i) {
    float value;
    std::memcpy(&value, &bits[i], sizeof value);
    x[i] = value;
  }
  return x;
}

// [[Rcpp::export(rng = false)]]
Rcpp::IntegerVector rcpp_to_float(Rcpp::NumericVector x) {
  Rcpp::IntegerVector bits(x.size());
  for (R_xlen_t i = 0; i < x.size(); ++i) {
    const float value = float(x[i]);
    std::memcpy(&bits[i], &value, sizeof value);
  }
  return bits;
}
