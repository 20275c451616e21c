#include "modify/modify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "cuda/backend.h"
#include "modify/choice.h"
#include "base/factor_io.h"
#include "base/huge_pages.h"
#include "base/threads.h"
#include "cpu/blocked.h"
#include "cpu/refactor.h"
#include "cpu/reference.h"
#include "paper/drive.h"
#include "paper/host_executor.h"
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
  paper::Ledger ledger(request.device_memory);
  paper::HostExecutor<T> executor(R.rows, V.cols, request.sign, request.panel, ledger);
  outcome.pivot = paper::drive(R, V, request.sign, request.panel, executor, poll, &outcome.panels);
  outcome.device_bytes_peak = ledger.peak();
}

/// Run the resolved method on the upper factor W in place; V is n x k.
template <class T>
void run(MatrixView<T> W, MatrixView<const T> V, const Request& request, const Poll& poll, Outcome& outcome) {
  if (outcome.method == Method::panel) {
    if (outcome.backend == Backend::cuda) cuda::panel<T>(W, V, request, poll, outcome);
    else panel_on_host<T>(W, V, request, poll, outcome);
  } else if (outcome.method == Method::blocked) {
    outcome.pivot = cpu::blocked<T>(W, V, request.sign, outcome.instructions, outcome.threads, poll);
  } else {
    std::vector<T> transposed(V.rows * V.cols);
    const MatrixView<T> Vt{transposed.data(), V.cols, V.rows, V.cols};
    for (index_t j = 0; j < V.rows; ++j)
      for (index_t q = 0; q < V.cols; ++q) Vt(q, j) = V(j, q);
    outcome.pivot = cpu::reference(W, Vt, request.sign, request.loop_order, poll);
  }
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
    constexpr std::size_t line = 64;  // of a cache: columns that begin within one are slower
    std::size_t space = sizeof(T) * n * n + line;
    own.reset(new T[space / sizeof(T)]);
    void* begin = own.get();
    work = static_cast<T*>(std::align(line, sizeof(T) * n * n, begin, space));
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

/// Whether a sum of squares tells that no number is too large or too small to be squared, hence that none needs scaling.
template <class T>
bool in_range(T squares) {
  constexpr bool wide = sizeof(T) == 8;
  return squares > (wide ? T(1e-270) : T(1e-12)) && squares < (wide ? T(1e280) : T(1e20));
}

/// Of `count` values; by several sums side by side, as each waits for its last addition.
template <class T>
T sum_of_squares(const T* values, index_t count) {
  constexpr index_t sums = 16;
  T part[sums] = {}, sum = 0;
  index_t i = 0;
  for (; i + sums <= count; i += sums)
    for (index_t l = 0; l < sums; ++l) part[l] += values[i + l] * values[i + l];
  for (; i < count; ++i) sum += values[i] * values[i];
  for (const T x : part) sum += x;
  return sum;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Method blocked from R to `out` (or to R itself, or, where `out` is null, to nowhere) in one pass, with numbers that need
/// no scaling. Sets the pivot of `outcome`; returns the sum of the squares of R.
template <class S>
S modify_in_one_pass(const S* R, const S* V, S* out, const Request& request, const Poll& poll, Outcome& outcome) {
  const index_t n = request.n, k = request.k;
  const auto start = std::chrono::steady_clock::now();
  cpu::BlockedSweep<S> sweep({V, n, k, n}, request.sign, request.uplo, outcome.instructions, outcome.threads);
  outcome.pivot = sweep.advance({R, n, n, n}, {out, n, n, n}, out != nullptr && out != R, poll);
  outcome.seconds = seconds_since(start);
  return sweep.squares();
}

/// Method refactor, for numbers that need no scaling. False if it cannot be done so.
bool modify_by_refactoring(const double* R, const double* V, double* out, const Request& request, const Poll& poll,
                           Outcome& outcome) {
  const index_t n = request.n, k = request.k;
  const MatrixView<const double> stored{R, n, n, n}, columns{V, n, k, n};
  if (scale_exponent<double>(check_input(stored, columns, request.uplo)) != 0) return false;
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> upper;
  if (request.uplo == Uplo::lower) {
    upper.resize(n * n);
    load_factor(stored, Uplo::lower, 0, MatrixView<double>{upper.data(), n, n, n});
  }
  const MatrixView<double> result{out, n, n, n};
  const MatrixView<const double> from{upper.empty() ? R : upper.data(), n, n, n};
  if (!cpu::refactor(from, columns, result, request.sign, poll)) return false;
  for (index_t j = 0; j < n; ++j) std::fill(result.col(j) + j + 1, result.col(j) + n, 0.0);
  outcome.seconds = seconds_since(start);
  store_factor(result, request.uplo, 0, result);
  return true;
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
  if (decision.backend == Backend::cpu && (decision.method == Method::blocked || decision.method == Method::stream))
    outcome.instructions = cpu::resolve(request.instructions);
  return outcome;
}

void take_blocked(const Request& request, Outcome& outcome) {
  outcome.method = Method::blocked;
  outcome.instructions = cpu::resolve(request.instructions);
  outcome.threads = cpu::useful_threads(request.n, request.k, threads_for(request.threads));
}

/// Methods blocked and refactor, from storage to storage, where it holds the scalars that are computed with and nothing
/// needs scaling. False if it does not, or R cannot be used; the method is then blocked.
template <class S>
bool modify_directly(const S* R, const S* V, S* out, const Request& request, const Poll& poll, Outcome& outcome) {
  constexpr Precision stored = std::is_same_v<S, float> ? Precision::single : Precision::double_;
  const index_t n = request.n, k = request.k;
  const bool direct = request.precision == stored && n > 0 && k > 0;
  if constexpr (stored == Precision::double_)
    if (outcome.method == Method::refactor && direct && modify_by_refactoring(R, V, out, request, poll, outcome)) return true;
  take_blocked(request, outcome);
  if (!direct) return false;
  const S squares_of_V = sum_of_squares(V, n * k);
  if (!(squares_of_V == 0 || in_range(squares_of_V))) return false;
  const S squares = modify_in_one_pass(R, V, out, request, poll, outcome);
  if (outcome.pivot < 0 && in_range(squares)) return true;
  // A factor that cannot be used is an error, also where a downdate of its leading part fails.
  const MatrixView<const S> factor{R, n, n, n}, columns{V, n, k, n};
  if (scale_exponent<S>(check_input(factor, columns, request.uplo)) == 0 && request.sign == Sign::downdate) return true;
  outcome.pivot = -1;
  return false;
}

/// Knows whether anything has been written, and leaves the other triangle as it is.
template <class S>
class Overwriting : public MemorySink<S> {
 public:
  Overwriting(S* data, index_t n, std::atomic<bool>& begun) : MemorySink<S>(data, n, false), begun_(begun) {}
  void put(index_t j, index_t first, index_t last, const S* values) override {
    begun_ = true;
    MemorySink<S>::put(j, first, last, values);
  }
  void clear(index_t, index_t, index_t) override {}

 private:
  std::atomic<bool>& begun_;
};

template <class S>
Outcome stream_in_place(S* R, const S* V, const Request& request, const Poll& poll, std::atomic<bool>& begun, Outcome outcome) {
  const MemorySource<S> from(R, request.n);
  Overwriting<S> to(R, request.n, begun);
  modify_stored_by(from, V, to, request, poll, true, outcome);
  return outcome;
}

}  // namespace

template <class S>
Outcome modify(const S* R, const S* V, S* out, const Request& request, const Poll& poll) {
  check_panel_shape(request.panel);
  Request fitted = request;
  fitted.panel.panel_rows = int(std::min<index_t>(request.panel.panel_rows, std::max<index_t>(request.n, 1)));
  Outcome outcome = decided(fitted);
  prefer_huge_pages(out, sizeof(S) * request.n * request.n);
  if (outcome.method == Method::stream || outcome.method == Method::resident) {
    const MemorySource<S> from(R, request.n);
    MemorySink<S> to(out, request.n, false);
    modify_stored_by(from, V, to, fitted, poll, false, outcome);
    return outcome;
  }
  if (outcome.method == Method::blocked || outcome.method == Method::refactor)
    if (modify_directly(R, V, out, fitted, poll, outcome)) return outcome;
  if (fitted.precision == Precision::single) modify_in<float>(R, V, out, fitted, poll, outcome);
  else modify_in<double>(R, V, out, fitted, poll, outcome);
  return outcome;
}

template <class S>
Outcome modify_in_place(S* R, const S* V, const Request& request, const Poll& poll, std::atomic<bool>& begun) {
  const index_t n = request.n, k = request.k;
  Outcome outcome = decided(request);
  if (outcome.method == Method::blocked || outcome.method == Method::refactor) {
    const MatrixView<const S> factor{R, n, n, n}, columns{V, n, k, n};
    const bool unscaled = n > 0 && k > 0 && scale_exponent<S>(check_input(factor, columns, request.uplo)) == 0;
    const bool stored = (request.precision == Precision::single) == std::is_same_v<S, float>;
    take_blocked(request, outcome);
    if (unscaled && stored) {
      // Whether a downdate can be done is found out by a run that writes nothing.
      if (request.sign == Sign::downdate) modify_in_one_pass<S>(R, V, nullptr, request, poll, outcome);
      if (outcome.pivot >= 0) return outcome;
      begun = true;
      modify_in_one_pass(R, V, R, request, poll, outcome);
      if (outcome.pivot < 0) return outcome;
      throw Error(ErrorCode::bad_argument, "'R' has changed while it was read", {{"argument", std::string("R")}});
    }
    outcome.method = Method::stream;
    Request on_host = request;  // a limit on device memory is for those who asked for that method
    on_host.device_memory = std::numeric_limits<double>::infinity();
    outcome = stream_in_place(R, V, on_host, poll, begun, outcome);
    outcome.device_bytes_peak = 0;
    return outcome;
  }
  return stream_in_place(R, V, request, poll, begun, outcome);
}

template <class S>
Outcome modify_stored(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll,
                      bool overwrites) {
  Outcome outcome = decided(request);
  if (outcome.method == Method::refactor) take_blocked(request, outcome);
  if (outcome.method == Method::blocked) outcome.method = Method::stream;
  modify_stored_by(R, V, out, request, poll, overwrites, outcome);
  return outcome;
}

template Outcome modify_stored(const Source<float>&, const float*, Sink<float>&, const Request&, const Poll&, bool);
template Outcome modify_stored(const Source<double>&, const double*, Sink<double>&, const Request&, const Poll&, bool);
template Outcome modify_in_place(float*, const float*, const Request&, const Poll&, std::atomic<bool>&);
template Outcome modify_in_place(double*, const double*, const Request&, const Poll&, std::atomic<bool>&);
template Outcome modify(const float*, const float*, float*, const Request&, const Poll&);
template Outcome modify(const double*, const double*, double*, const Request&, const Poll&);

}  // namespace gpucholmod
