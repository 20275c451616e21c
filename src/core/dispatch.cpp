#include "core/dispatch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/backend.h"
#include "core/cost.h"
#include "core/factor_io.h"
#include "core/huge_pages.h"
#include "cpu/blocked.h"
#include "cpu/reference.h"
#include "panel/drive.h"
#include "panel/host_executor.h"
#include "stream/run.h"

namespace gpucholmod {
namespace {

void check_panel_shape(const PanelShape& shape) {
  const auto refuse = [](const char* argument, const char* rule, double value) {
    throw Error(ErrorCode::bad_argument, std::string("'") + argument + "' must be " + rule,
                {{"argument", argument}, {"value", value}});
  };
  if (shape.blocks_per_kernel < 1) refuse("blocks_per_kernel", "at least 1", shape.blocks_per_kernel);
  if (shape.threads_per_block < 32 || shape.threads_per_block > tuning::max_threads_per_block ||
      shape.threads_per_block % 32 != 0)
    refuse("threads_per_block", "a multiple of 32, at most 256", shape.threads_per_block);
  const int e = shape.elements_per_thread;
  if (e != 1 && e != 4 && e != 8 && e != 16 && e != 32) refuse("elements_per_thread", "1, 4, 8, 16 or 32", e);
  if (shape.panel_rows < 1) refuse("panel_rows", "at least 1", shape.panel_rows);
}

template <class T>
void panel_on_host(MatrixView<T> R, MatrixView<const T> V, const Request& request, const Poll& poll,
                   Outcome& outcome) {
  panel::Ledger ledger(request.device_memory);
  panel::HostExecutor<T> executor(R.rows, V.cols, request.sign, request.panel, ledger);
  outcome.pivot = panel::drive(R, V, request.sign, request.panel, executor, poll, &outcome.panels);
  outcome.device_bytes_peak = ledger.peak();
}

/// Run the resolved method on the upper factor W in place; V is n x k.
template <class T>
void run(MatrixView<T> W, MatrixView<const T> V, const Request& request, const Poll& poll, Outcome& outcome) {
  if (outcome.method == Method::panel) {
    if (outcome.backend == Backend::cuda) cuda::panel<T>(W, V, request, poll, outcome);
    else panel_on_host<T>(W, V, request, poll, outcome);
    return;
  }
  std::vector<T> transposed(V.rows * V.cols);
  const MatrixView<T> Vt{transposed.data(), V.cols, V.rows, V.cols};
  for (index_t j = 0; j < V.rows; ++j)
    for (index_t q = 0; q < V.cols; ++q) Vt(q, j) = V(j, q);
  outcome.pivot = outcome.method == Method::reference
                      ? cpu::reference(W, Vt, request.sign, request.loop_order, poll)
                      : cpu::blocked<T>(W, {Vt.data, Vt.rows, Vt.cols, Vt.ld}, request.sign, poll);
}

/// out <- R, for k = 0. Nothing is written before all of R has been looked at.
template <class S>
void copy_stored(const Source<S>& R, index_t n, Uplo uplo, Sink<S>& out) {
  check_triangle(R, n, uplo);
  std::vector<S> scratch(n);
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, uplo);
    out.put(j, first, last, R.column(j, first, last, scratch.data()));
    if (uplo == Uplo::upper) out.clear(j, last, n);
    else out.clear(j, 0, first);
  }
}

template <class T, class S>
void modify_in(const S* R_data, const S* V_data, S* out_data, const Request& request, const Poll& poll,
               Outcome& outcome) {
  const index_t n = request.n, k = request.k;
  const MatrixView<const S> R{R_data, n, n, n}, V{V_data, n, k, n};
  const MatrixView<S> out{out_data, n, n, n};
  prefer_huge_pages(out_data, sizeof(S) * n * n);
  const int e = scale_exponent<T>(check_input(R, V, request.uplo));

  std::unique_ptr<T[]> own;
  T* work;
  if constexpr (std::is_same_v<S, T>) {
    work = out_data;
  } else {
    own.reset(new T[n * n]);
    work = own.get();
    prefer_huge_pages(work, sizeof(T) * n * n);
  }
  const MatrixView<T> W{work, n, n, n};
  load_factor(R, request.uplo, e, W);

  if (k > 0 && n > 0) {
    std::vector<T> scaled(n * k);
    const S scale = std::scalbn(S(1), -e);
    for (index_t i = 0; i < n * k; ++i) scaled[i] = T(V_data[i] * scale);
    const auto start = std::chrono::steady_clock::now();
    run<T>(W, MatrixView<const T>{scaled.data(), n, k, n}, request, poll, outcome);
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (outcome.pivot < 0) store_factor(W, request.uplo, e, out);
}

template <class S>
void modify_stored_by(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll,
                      bool overwrites, Outcome& outcome) {
  if (request.n == 0 || request.k == 0) copy_stored(R, request.n, request.uplo, out);
  else stream::run(R, V, out, request, poll, overwrites, outcome);
}

Outcome decided(const Request& request) {
  const Decision decision = decide(request);
  remember(request, decision);
  Outcome outcome;
  outcome.backend = decision.backend;
  outcome.method = decision.method;
  outcome.precision = request.precision;
  return outcome;
}

}  // namespace

template <class S>
Outcome modify(const S* R, const S* V, S* out, const Request& request, const Poll& poll) {
  check_panel_shape(request.panel);
  Request fitted = request;
  fitted.panel.panel_rows = int(std::min<index_t>(request.panel.panel_rows, std::max<index_t>(request.n, 1)));
  Outcome outcome = decided(fitted);
  if (outcome.method == Method::stream || outcome.method == Method::resident) {
    prefer_huge_pages(out, sizeof(S) * request.n * request.n);
    const MemorySource<S> from(R, request.n);
    MemorySink<S> to(out, request.n, false);
    modify_stored_by(from, V, to, fitted, poll, false, outcome);
    return outcome;
  }
  if (fitted.precision == Precision::single) modify_in<float>(R, V, out, fitted, poll, outcome);
  else modify_in<double>(R, V, out, fitted, poll, outcome);
  return outcome;
}

template <class S>
Outcome modify_stored(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll,
                      bool overwrites) {
  Outcome outcome = decided(request);
  if (outcome.method == Method::blocked) outcome.method = Method::stream;
  modify_stored_by(R, V, out, request, poll, overwrites, outcome);
  return outcome;
}

template Outcome modify_stored(const Source<float>&, const float*, Sink<float>&, const Request&, const Poll&, bool);
template Outcome modify_stored(const Source<double>&, const double*, Sink<double>&, const Request&, const Poll&, bool);
template Outcome modify(const float*, const float*, float*, const Request&, const Poll&);
template Outcome modify(const double*, const double*, double*, const Request&, const Poll&);

}  // namespace gpucholmod
