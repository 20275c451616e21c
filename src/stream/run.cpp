#include "stream/run.h"

#include <chrono>
#include <cstdlib>

#include "cuda/backend.h"
#include "base/threads.h"
#include "stream/host_device.h"
#include "stream/pipeline.h"

namespace gpucholmod::stream {
namespace {

/// What a run that only finds out whether it can be done writes to.
template <class S>
class Nowhere : public Sink<S> {
 public:
  void put(index_t, index_t, index_t, const S*) override {}
  void clear(index_t, index_t, index_t) override {}
};

/// check_triangle() by several threads. `poll` is called meanwhile.
template <class S>
S check_factor(const Source<S>& R, index_t n, Uplo uplo, int threads, const Poll& poll) {
  constexpr index_t columns = 64;
  const index_t tasks = (n + columns - 1) / columns;
  std::atomic<index_t> done{0};
  std::mutex mutex;
  Seen<S> seen;
  std::vector<std::vector<S>> scratch;
  {
    Workers workers(threads);
    scratch.assign(workers.count(), std::vector<S>(n));
    for (index_t task = 0; task < tasks; ++task)
      workers.submit([&, task](int worker) {
        Seen<S> here;
        for (index_t j = task * columns; j < std::min((task + 1) * columns, n); ++j) {
          const auto [first, last] = rows_of(j, n, uplo);
          const S* values = R.column(j, first, last, scratch[worker].data());
          for (index_t i = 0; i < last - first; ++i) here.largest = std::max(here.largest, magnitude_bits(values[i]));
          here.bad_diagonal = here.bad_diagonal || !(values[j - first] > 0);
        }
        const std::lock_guard<std::mutex> lock(mutex);
        seen.add(here);
        ++done;
      });
    while (done < tasks) {
      poll(0);
      workers.help();
    }
  }
  if (seen.bad_diagonal || !std::isfinite(seen.value())) check_triangle(R, n, uplo);
  return seen.value();
}

template <class T, class S>
class Runner {
 public:
  Runner(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll, Outcome& outcome)
      : R_(R), V_(V), out_(out), request_(request), outcome_(outcome), n_(request.n), k_(request.k),
        threads_(threads_for(request.threads)) {
    outcome.threads = threads_;
    poll_ = [&poll, told = 0.0](double done) mutable { poll(told = std::max(told, done)); };  // never back
  }

  void run(bool overwrites) {
    const auto start = std::chrono::steady_clock::now();
    for (index_t q = 0; q < k_; ++q)
      largest_of_V_ = std::max(largest_of_V_, largest_in_column("V", V_ + q * n_, 0, n_, q));
    int e = std::max(0, scale_exponent<T>(largest_of_V_));
    if (overwrites) {
      e = right_exponent();
      Nowhere<S> nowhere;
      if (request_.sign == Sign::update || modify(nowhere, e, true)) modify(out_, e, true);
    } else {
      modify(out_, e);
    }
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  /// With 2^-e R, or, unless that is `settled`, whatever scaling turns out to be right on the way; where `out` takes the place
  /// of R, there is no looking at R again. False: failing pivot.
  bool modify(Sink<S>& out, int e, bool settled = false) {
    for (;;) {
      const Run<S> done = attempt(out, e, n_);
      // A factor that cannot be used is an error, also where a downdate of its leading part fails.
      const int right = settled                     ? e
                        : done.end == End::complete ? scale_exponent<T>(std::max(done.largest, largest_of_V_))
                                                    : right_exponent();
      if (right != e) {
        e = right;
        continue;
      }
      if (done.end == End::overflow)
        throw Error(ErrorCode::overflow, "the modified factor has entries too large to represent",
                    {{"row", double(done.row + 1)}, {"col", double(done.col + 1)}});
      if (done.end == End::refused || done.end == End::rescale)
        throw Error(ErrorCode::bad_argument, "'R' has changed while it was read", {{"argument", std::string("R")}});
      if (done.pivot >= 0 && request_.sign == Sign::update)  // it has no pivot to fail at but one that is too large
        throw Error(ErrorCode::overflow, "the modified factor has entries too large to represent",
                    {{"row", double(done.pivot + 1)}, {"col", double(done.pivot + 1)}});
      outcome_.pivot = done.pivot;
      const bool passes = outcome_.backend == Backend::cuda && k_ > block_columns::most_columns;
      if (done.pivot >= 0 && passes) outcome_.pivot = first_pivot(e);
      return done.pivot < 0;
    }
  }

  /// A pass of some of V's columns has failed at outcome.pivot, so the downdate fails there at the latest. Where
  /// passes fail in turn, which one is seen first depends on the panels; the leading part of the factor tells whether
  /// it fails earlier.
  index_t first_pivot(int e) {
    const Outcome before = outcome_;
    Nowhere<S> nowhere;
    index_t pivot = before.pivot;
    while (pivot > 0) {
      const Run<S> leading = attempt(nowhere, e, pivot);
      if (leading.end != End::failing_pivot) break;
      pivot = leading.pivot;
    }
    outcome_ = before;
    return pivot;
  }

  /// Reads all of R for it. Throws not_finite, bad_diagonal.
  int right_exponent() const {
    const S largest = check_factor(R_, n_, request_.uplo, threads_, poll_);
    const int e = scale_exponent<T>(std::max(largest, largest_of_V_));
    const S scale = std::scalbn(S(1), -e);
    S scratch;
    for (index_t j = 0; j < n_; ++j) {
      const S value = *R_.column(j, j, j + 1, &scratch);
      require_not_vanished(T(value * scale), value, j);
    }
    return e;
  }

  /// Of the leading n columns.
  Run<S> attempt(Sink<S>& out, int e, index_t n) {
    std::vector<double> V(n * k_);
    const double scale = std::scalbn(1.0, -e);
    for (index_t q = 0; q < k_; ++q)
      for (index_t i = 0; i < n; ++i) V[i + q * n] = double(V_[i + q * n_]) * scale;
    const Plan plan(n, k_, int(sizeof(T)), request_.device_memory, outcome_.method == Method::resident);
    Timeline timeline;
    Timeline* const wanted = request_.timeline ? &timeline : nullptr;
    const std::unique_ptr<Device<T>> device =
        outcome_.backend == Backend::cuda
            ? cuda::stream_device<T>(plan, V.data(), request_.sign, wanted, outcome_)
            : std::unique_ptr<Device<T>>(new HostDevice<T>(plan, V.data(), request_.sign, outcome_.instructions,
                                                          cpu::useful_threads(n, k_, threads_), poll_));
    Run<S> done;
    {
      const int useful = std::min(threads_, int(plan.chunks().size()) + 1);
      Pipeline<S, T> pipeline(plan, R_, out, request_.uplo, e, *device, useful, poll_, wanted);
      done = pipeline.run();
    }
    outcome_.panels = index_t(plan.panels().size());
    outcome_.device_bytes_peak = plan.device_bytes();
    device->report(outcome_);
    outcome_.timeline = timeline.entries();
    return done;
  }

  const Source<S>& R_;
  const S* V_;
  Sink<S>& out_;
  const Request& request_;
  Poll poll_;
  Outcome& outcome_;
  index_t n_, k_;
  int threads_;
  S largest_of_V_ = 0;
};

}  // namespace

template <class S>
void run(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll, bool overwrites,
         Outcome& outcome) {
  if (request.precision == Precision::single) Runner<float, S>(R, V, out, request, poll, outcome).run(overwrites);
  else Runner<double, S>(R, V, out, request, poll, outcome).run(overwrites);
}

template void run(const Source<float>&, const float*, Sink<float>&, const Request&, const Poll&, bool, Outcome&);
template void run(const Source<double>&, const double*, Sink<double>&, const Request&, const Poll&, bool, Outcome&);

}  // namespace gpucholmod::stream
