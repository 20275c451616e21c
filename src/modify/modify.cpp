#include "modify/modify.h"

#include <type_traits>
#include <vector>

#include "base/check_column.h"
#include "base/clock.h"
#include "base/factor_io.h"
#include "base/huge_pages.h"
#include "base/range.h"
#include "base/threads.h"
#include "cpu/in_memory.h"
#include "cpu/refactor.h"
#include "cpu/reference.h"
#include "cuda/backend.h"
#include "modify/mended_place.h"
#include "modify/weights.h"
#include "paper/host_executor.h"
#include "stream/run.h"

namespace gpucholmod {
namespace {

/// Writes to R's own memory, and leaves the other triangle as it is.
template <class S>
class Overwriting : public MemorySink<S> {
 public:
  Overwriting(S* data, index_t n, std::atomic<bool>& begun) : MemorySink<S>(data, n), begun_(begun) {}
  void put(index_t j, index_t first, index_t last, const S* values) override {
    begun_ = true;
    MemorySink<S>::put(j, first, last, values);
  }
  void clear(index_t, index_t, index_t) override {}

 private:
  std::atomic<bool>& begun_;
};

/// Returns f(source, sink) for a place in memory or a file.
template <class S, class F>
Work with_storage(const Place<S>& place, index_t n, F&& f) {
  if (place.where == Where::file) return f(*place.source, *place.sink);
  const MemorySource<S> source(place.R, n);
  if (place.where == Where::in_place) {
    Overwriting<S> sink(place.out, n, *place.begun);
    return f(source, sink);
  }
  MemorySink<S> sink(place.out, n);
  return f(source, sink);
}

/// Copies R, times task.scale, to `out`, in the precision T that is asked for, if there is nothing to add. Writes
/// nothing before all of R has been checked.
template <class T, class S>
Work copy(const Source<S>& R, Sink<S>& out, const Task& task) {
  const index_t n = task.n;
  const S largest = check_triangle(R, n, task.uplo, threads_for(task.threads), [] {});
  const int e = std::is_same_v<S, T> ? 0 : scale_exponent<T>(largest);
  const S down = std::scalbn(S(1), -e);
  const double up = std::scalbn(task.scale, e);
  std::vector<S> column(n);
  for (index_t j = 0; j < n; ++j) {
    const S value = *R.column(j, j, j + 1, column.data());
    require_not_vanished(T(value * down), value, j);
    require_normal(S(T(value * down) * up), j);
  }
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, task.uplo);
    const S* from = R.column(j, first, last, column.data());
    for (index_t i = 0; i < last - first; ++i) {
      column[i] = S(T(from[i] * down) * up);
      if (!std::isfinite(column[i])) throw overflow(first + i, j);
    }
    out.put(j, first, last, column.data());
    if (task.uplo == Uplo::upper) out.clear(j, last, n);
    else out.clear(j, 0, first);
  }
  return {};
}

/// Runs work(W, V) on an upper factor W of scalars T, scaled if necessary, and stores W in `out` unless a pivot fails.
/// Returns the result of work().
template <class T, class S, class F>
Work with_working_copy_of(const Place<S>& place, const S* V_data, const Task& task, F&& work) {
  const index_t n = task.n, k = task.k;
  const MatrixView<const S> R{place.R, n, n, n}, V{V_data, n, k, n};
  const MatrixView<S> out{place.out, n, n, n};
  const int threads = std::max(task.threads, 1), e = scale_exponent<T>(check_input(R, V, task.uplo, threads));
  std::unique_ptr<T[]> own;
  T* memory;
  if constexpr (std::is_same_v<S, T>) {
    memory = place.out;
  } else {
    own.reset(new T[n * n]);
    memory = own.get();
    prefer_huge_pages(memory, sizeof(T) * n * n);
  }
  const MatrixView<T> W{memory, n, n, n};
  load_factor(R, task.uplo, e, W, threads);
  std::vector<T> scaled(n * k);
  const S scale = std::scalbn(S(1), -e);
  for (index_t i = 0; i < n * k; ++i) scaled[i] = T(V_data[i] * scale);
  const Clock clock;
  Work done = work(W, MatrixView<const T>{scaled.data(), n, k, n});
  done.seconds = clock.seconds();
  if (done.pivot < 0)
    store_factor(MatrixView<const T>{memory, n, n, n}, task.uplo, std::scalbn(task.scale, e), out, threads);
  return done;
}
template <class S, class F>
Work with_working_copy(const Place<S>& place, const S* V, const Task& task, F&& work) {
  return task.precision == Precision::single ? with_working_copy_of<float>(place, V, task, work)
                                             : with_working_copy_of<double>(place, V, task, work);
}

template <class S>
Work by_rotations(const Place<S>& place, const S* V, const Request& task, const Poll& poll) {
  return with_working_copy(place, V, task, [&](auto W, auto V) {
    using T = std::remove_reference_t<decltype(W(0, 0))>;
    std::vector<T> transposed(V.rows * V.cols);
    const MatrixView<T> Vt{transposed.data(), V.cols, V.rows, V.cols};
    for (index_t j = 0; j < V.rows; ++j)
      for (index_t q = 0; q < V.cols; ++q) Vt(q, j) = V(j, q);
    Work done;
    task.each_sign([&](Sign sign, index_t first, index_t count) {
      if (done.pivot < 0)
        done.pivot = cpu::reference<T>(W, Vt.block(first, 0, count, Vt.cols), sign, task.loop_order, poll);
    });
    return done;
  });
}

template <class S>
Work in_paper_panels(const Place<S>& place, const S* V, const Request& task, const Poll& poll) {
  paper::Shape shape = task.shape.value_or(paper::Shape());
  require_possible(shape);
  shape.panel_rows = int(std::min<index_t>(shape.panel_rows, task.n));
  return with_working_copy(place, V, task, [&](auto W, auto V) {
    using T = std::remove_reference_t<decltype(W(0, 0))>;
    paper::Footprint<T>(task.n, std::max(task.added(), task.removed), shape).require_within(task.device_memory);
    Work done;
    task.each_sign([&](Sign sign, index_t first, index_t count) {
      if (done.pivot >= 0) return;
      const MatrixView<const T> columns = V.block(0, first, V.rows, count);
      const index_t panels = done.panels;
      done = task.backend == Backend::cuda ? cuda::paper_panels<T>(W, columns, sign, task.device_memory, shape, poll)
                                           : paper::on_host<T>(W, columns, sign, task.device_memory, shape, poll);
      done.panels += panels;
    });
    return done;
  });
}

template <class T, class S>
Work in_column_panels_of(const Place<S>& place, const S* V, const Request& task, const Poll& poll) {
  stream::MakeDevice<T> make_device;
  if (task.backend == Backend::cuda)
    make_device = [&](const stream::Plan& plan, const double* scaled, Timeline* timeline) {
      return cuda::stream_device<T>(plan, scaled, task, timeline);
    };
  return with_storage(place, task.n, [&](const Source<S>& R, Sink<S>& out) {
    return stream::run<T>(R, V, out, task, place.where == Where::in_place, make_device, poll);
  });
}

template <class S>
Work in_column_panels(const Place<S>& place, const S* V, const Request& task, const Poll& poll) {
  return task.precision == Precision::single ? in_column_panels_of<float>(place, V, task, poll)
                                             : in_column_panels_of<double>(place, V, task, poll);
}

template <class S>
Work by_householder(const Place<S>& place, const S* V, Request task, const Poll& poll) {
  const index_t n = task.n;
  if (task.precision == precision_of<S> && is_moderate(task.scale)) {
    const MatrixView<const S> R{place.R, n, n, n}, columns{V, n, task.k, n};
    const Clock clock;
    if (const std::optional<index_t> pivot = cpu::modify_in_memory<S>(
            {R, {place.out, n, n, n}, columns, task.removed, task.scale, task.uplo, task.instructions, task.threads,
             &task.right, place.begun}, poll)) {
      Work done;
      done.pivot = *pivot;
      done.seconds = clock.seconds();
      return done;
    }
    if (place.where == Where::in_place) check_input(R, columns, task.uplo);
  }
  if (place.where == Where::memory)
    return with_working_copy(place, V, task, [&](auto W, auto V) {
      using T = std::remove_reference_t<decltype(W(0, 0))>;
      Work done;
      cpu::BlockedSweep<T> sweep(V, task.removed, T(1), Uplo::upper, task.instructions, task.threads);
      done.pivot = sweep.run(W, W, false, &task.right, poll);
      done.unscaled_z = true;
      return done;
    });
  task.device_memory = std::numeric_limits<double>::infinity();  // there is no device
  task.timeline = false;
  Work done = in_column_panels(place, V, task, poll);
  done.panels = 0;
  done.device_bytes = 0;
  return done;
}

/// Forms the modified matrix and factorises it. Returns nothing if LAPACK does not find the matrix positive definite,
/// or if numbers need scaling.
std::optional<Work> by_refactoring(const Place<double>& place, const double* V, const Task& task, const Poll& poll) {
  const index_t n = task.n, k = task.k;
  const MatrixView<const double> R{place.R, n, n, n}, columns{V, n, k, n};
  const MatrixView<double> out{place.out, n, n, n};
  if (scale_exponent<double>(check_input(R, columns, task.uplo)) != 0) return {};
  const Clock clock;
  std::vector<double> upper;
  if (task.uplo == Uplo::lower) {
    upper.resize(n * n);
    load_factor(R, Uplo::lower, 0, MatrixView<double>{upper.data(), n, n, n});
  }
  const MatrixView<const double> from{upper.empty() ? R.data : upper.data(), n, n, n};
  if (!cpu::refactor(from, columns, task.removed, out, poll)) return {};
  for (index_t j = 0; j < n; ++j) std::fill(out.col(j) + j + 1, out.col(j) + n, 0.0);
  Work done;
  done.seconds = clock.seconds();
  store_factor(MatrixView<const double>{place.out, n, n, n}, task.uplo, task.scale, out);
  return done;
}

/// Runs Route::whole. If factorising afresh is not possible, as for a matrix that is not `definite`, makes `task` a
/// task of method blocked.
template <class S>
Work whole(const Place<S>& place, const S* V, const Request& request, Request& task, bool definite,
           const Poll& poll) {
  if (task.algorithm == Algorithm::rotations) return by_rotations(place, V, task, poll);
  if (task.algorithm == Algorithm::refactor) {
    std::optional<Work> done;
    if constexpr (std::is_same_v<S, double>)
      if (definite) done = by_refactoring(place, V, task, poll);
    if (done) return *std::move(done);
    Choice instead;
    instead.method = Method::blocked;
    task = resolved(request, instead);
  }
  return by_householder(place, V, task, poll);
}

}  // namespace

template <class S>
Outcome modify(const Place<S>& place, const typename Place<S>::Columns& V_given, const Request& asked,
               const Poll& poll) {
  WeightedColumns<S> columns(V_given, asked);
  const Request& request = columns.request();
  if (!place.factor) columns.V();  // throws before a method is chosen
  const Choice choice = choose(request, place.where);
  Request task = resolved(request, choice);
  OwnedRightHandSides* const sides = request.sides.get();
  if (sides) task.right = sides->view(request, columns.Y(), request.n);
  remember(choice);
  if (place.where == Where::memory) prefer_huge_pages(place.out, sizeof(S) * task.n * task.n);
  const auto run_held = [&]() -> Work {
    if constexpr (std::is_same_v<S, double>)
      return place.factor->modify(columns.columns(), task, place.made, poll, *place.begun);
    throw Error(ErrorCode::bad_argument, "for a factor that is held, 'V' is given as doubles", {{"argument", "V"}});
  };
  const auto run = [&](const Place<S>& place, bool definite) -> Work {
    const S* const V = columns.V();
    if (task.n == 0 || task.k == 0)
      return with_storage(place, task.n, [&](const Source<S>& R, Sink<S>& out) {
        return task.precision == Precision::single ? copy<float>(R, out, task) : copy<double>(R, out, task);
      });
    switch (choice.route()) {
      case Route::whole: return whole(place, V, request, task, definite, poll);
      case Route::paper_panels: return in_paper_panels(place, V, task, poll);
      case Route::column_panels: return in_column_panels(place, V, task, poll);
      case Route::on_gpu: break;  // handled by run_held()
    }
    return {};
  };
  Outcome outcome{place.factor ? run_held() : mending_diagonal(place, columns.V(), task, sides, run)};
  if (outcome.pivot < 0 && sides) {
    const bool untouched = task.n == 0 || task.k == 0;
    if (untouched) task.right.pass_through();
    sides->settle(request, untouched || outcome.unscaled_z);
  }
  outcome.backend = task.backend;
  outcome.method =
      outcome.launch == Launch::stepwise && task.method == Method::persistent ? Method::stepwise : task.method;
  outcome.precision = task.precision;
  outcome.threads = task.threads;
  if (task.backend == Backend::cpu && task.algorithm == Algorithm::householder)
    outcome.instructions = task.instructions;
  return outcome;
}

Plan plan(const Request& asked, Where where) {
  Request request = asked;
  if (!asked.weights.empty()) {
    const auto count = [&](auto&& f) { return index_t(std::count_if(asked.weights.begin(), asked.weights.end(), f)); };
    request.k = count([](double w) { return w != 0; });
    request.removed = count([](double w) { return w < 0; });
  }
  const Choice choice = choose(request, where);
  const Request task = resolved(request, choice);
  Plan found{choice};
  if (choice.route() == Route::column_panels && task.n > 0) {
    const stream::Plan panels(task.n, task.k, task.removed, task.precision == Precision::single ? 4 : 8,
                              task.device_memory, task.at_once);
    found.panels = index_t(panels.panels().size());
    found.device_bytes = panels.device_bytes();
  }
  found.threads = std::max(task.threads, 1);
  if (task.backend == Backend::cpu && task.algorithm == Algorithm::householder) found.instructions = task.instructions;
  return found;
}

template Outcome modify(const Place<float>&, const Place<float>::Columns&, const Request&, const Poll&);
template Outcome modify(const Place<double>&, const Place<double>::Columns&, const Request&, const Poll&);

}  // namespace gpucholmod
