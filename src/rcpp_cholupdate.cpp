#include <Rcpp.h>

#include <cstring>

#include "cuda/backend.h"
#include "modify/choice.h"
#include "modify/modify.h"
#include "base/other_triangle.h"
#include "rcpp_guard.h"
#include "rcpp_progress.h"
#include "rcpp_request.h"
#include "base/threads.h"
#include "cpu/blocked.h"
#include "stream/plan.h"

using namespace gpucholmod;

// R: n x n double matrix, or integer matrix that holds the bits of floats; V: n x k, the same type.
// Returns list(R =, pivot =, report =): R is NULL when the downdate fails, pivot counts from 1, 0 means success.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate(SEXP R, SEXP V, Rcpp::List request) {
  return guarded([&] {
    const index_t n = Rf_nrows(R), k = Rf_ncols(V);
    const Request what = to_request(request, n, k);
    SEXP allocated = R_NilValue;
    Rcpp::unwindProtect([&] {  // whose own result would keep a reference, see rcpp_move_factor()
      allocated = Rf_allocMatrix(TYPEOF(R), int(n), int(n));
      return R_NilValue;
    });
    const Rcpp::Shield<SEXP> out(allocated);
    Progress progress(request);
    const Poll poll = progress.poll();
    const Outcome done =
        TYPEOF(R) == INTSXP
            ? modify(reinterpret_cast<const float*>(INTEGER(R)), reinterpret_cast<const float*>(INTEGER(V)),
                     reinterpret_cast<float*>(INTEGER(out)), what, poll)
            : modify<double>(REAL(R), REAL(V), REAL(out), what, poll);
    Rcpp::unwindProtect([&] {  // here, where it takes no copy
      Rf_setAttrib(out, R_DimNamesSymbol, Rf_getAttrib(R, R_DimNamesSymbol));
      return R_NilValue;
    });
    using Rcpp::_;
    Rcpp::List result = Rcpp::List::create(_["R"] = R_NilValue, _["pivot"] = int(done.pivot + 1),
                                           _["report"] = to_report(what, done));
    if (done.pivot < 0) SET_VECTOR_ELT(result, 0, out);  // _["R"] = out would leave a reference too
    return result;
  });
}

// Moves the matrix in what rcpp_cholupdate() has returned to variable `name` of `env`, so that nothing else refers to it:
// a list that is garbage still counts, and rcpp_cholupdate_overwrite() refuses what is shared. Returning it would leave a
// reference of Rcpp's.
// [[Rcpp::export(rng = false)]]
void rcpp_move_factor(SEXP result, SEXP name, SEXP env) {
  Rcpp::unwindProtect([&] {
    Rf_defineVar(name, VECTOR_ELT(result, 0), env);
    SET_VECTOR_ELT(result, 0, R_NilValue);
    return R_NilValue;
  });
}

// What rcpp_cholupdate() would do with an n x n factor and k columns: list(backend =, method =, why =, expected =,
// panels =, device_bytes =, threads =, instructions =).
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_cholupdate_plan(double n, double k, Rcpp::List request) {
  return guarded([&] {
    const Request what = to_request(request, index_t(n), index_t(k));
    const Decision decision = decide(what);
    const Expected time = expected(what);
    const bool streams = decision.method == Method::stream || decision.method == Method::resident;
    const bool computes = decision.backend == Backend::cpu && (streams || decision.method == Method::blocked);
    double panels = 0, bytes = 0;
    if (streams && n > 0) {
      const stream::Plan plan(what.n, what.k, what.precision == Precision::single ? 4 : 8, what.device_memory,
                              decision.method == Method::resident);
      panels = double(plan.panels().size());
      bytes = plan.device_bytes();
    }
    using Rcpp::_;
    return Rcpp::List::create(
        _["backend"] = text(decision.backend, backends), _["method"] = text(decision.method, methods),
        _["why"] = decision.why,
        _["expected"] = Rcpp::NumericVector::create(_["cpu"] = time.cpu, _["gpu"] = cuda::built() ? time.gpu : NA_REAL, _["start"] = time.start),
        _["panels"] = panels, _["device_bytes"] = bytes, _["threads"] = decision.method == Method::blocked
                           ? cpu::useful_threads(what.n, what.k, threads_for(what.threads))
                           : streams ? threads_for(what.threads) : 1,
        _["instructions"] = computes ? text(cpu::resolve(what.instructions), instruction_sets) : "");
  });
}

// What the triangle of R that is not read looks like: "zero", "filled", "transposed" or "symmetric"
// (base/other_triangle.h). R as in rcpp_cholupdate().
// [[Rcpp::export(rng = false)]]
std::string rcpp_other_triangle(SEXP R, std::string uplo) {
  const char* const looks[] = {"zero", "filled", "transposed", "symmetric"};
  const index_t n = Rf_nrows(R);
  const Uplo own = uplo == "lower" ? Uplo::lower : Uplo::upper;
  return looks[int(TYPEOF(R) == INTSXP
                       ? look_at_other_triangle<float>({reinterpret_cast<const float*>(INTEGER(R)), n, n, n}, own)
                       : look_at_other_triangle<double>({REAL(R), n, n, n}, own))];
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
