#include "stream/run.h"

#include <chrono>

#include "base/check_column.h"
#include "base/range.h"
#include "stream/host_device.h"
#include "stream/pipeline.h"

namespace gpucholmod::stream {
namespace {

/// The sink of a dry run, which drops what is written.
template <class S>
class Nowhere : public Sink<S> {
 public:
  void put(index_t, index_t, index_t, const S*) override {}
  void clear(index_t, index_t, index_t) override {}
};

template <class T, class S>
class Runner {
 public:
  Runner(const Source<S>& R, const S* V, Sink<S>& out, const Task& task, const MakeDevice<T>& make_device,
         const Poll& poll)
      : R_(R), V_(V), out_(out), task_(task), make_device_(make_device), n_(task.n), k_(task.k) {
    poll_ = [&poll, told = 0.0](double done) mutable { poll(told = std::max(told, done)); };  // never falls
  }

  Work run(bool overwrites) {
    const auto start = std::chrono::steady_clock::now();
    largest_of_V_ = S(largest_in_V<S>(MatrixView<const S>{V_, n_, k_, n_}));
    int e = std::max(0, scale_exponent<T>(largest_of_V_));
    if (overwrites) {
      e = right_exponent();
      Nowhere<S> nowhere;
      const bool may_fail = task_.removed > 0 || may_vanish<S>(least_ * task_.scale);
      if (!may_fail || modify(nowhere, e, true)) modify(out_, e, true);
    } else {
      modify(out_, e);
    }
    work_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(work_);
  }

 private:
  /// Modifies 2^-e R into `out`. Unless e is `settled`, starts again with the right exponent if e proves wrong on the
  /// way. If `out` is the place of R, e must be settled, because R cannot be read again. Returns false if a pivot
  /// fails.
  bool modify(Sink<S>& out, int e, bool settled = false) {
    for (;;) {
      const Run<S> done = attempt(out, e, n_, work_);
      // A factor that cannot be used is an error, even if a downdate of its leading part fails.
      const int right = settled                     ? e
                        : done.end == End::complete ? scale_exponent<T>(std::max(done.largest, largest_of_V_))
                                                    : right_exponent();
      if (right != e) {
        e = right;
        continue;
      }
      if (done.end == End::unfit) throw done.unfit.error();
      if (done.end == End::refused || done.end == End::rescale)
        throw Error(ErrorCode::bad_argument, "'R' has changed while it was read", {{"argument", std::string("R")}});
      // A pivot of an update fails only if it is too large.
      if (done.pivot >= 0 && task_.removed == 0) throw overflow(done.pivot, done.pivot);
      work_.pivot = done.pivot >= 0 && in_passes_ ? first_pivot(e, done.pivot) : done.pivot;
      return done.pivot < 0;
    }
  }

  /// Returns the first pivot at which the downdate fails. A pass of some of V's columns has failed at `pivot`, so the
  /// downdate fails there at the latest. If several passes fail, the panels decide which failure is seen first; the
  /// leading part of the factor tells whether the downdate fails earlier.
  index_t first_pivot(int e, index_t pivot) {
    Nowhere<S> nowhere;
    while (pivot > 0) {
      Work unused;
      const Run<S> leading = attempt(nowhere, e, pivot, unused);
      if (leading.end != End::failing_pivot) break;
      pivot = leading.pivot;
    }
    return pivot;
  }

  /// Reads all of R, finds least_, and returns the right exponent. Throws not_finite, bad_diagonal.
  int right_exponent() {
    const S largest = check_triangle(R_, n_, task_.uplo, task_.threads, [this] { poll_(0); });
    const int e = scale_exponent<T>(std::max(largest, largest_of_V_));
    const S scale = std::scalbn(S(1), -e);
    S scratch;
    for (index_t j = 0; j < n_; ++j) {
      const S value = *R_.column(j, j, j + 1, &scratch);
      require_not_vanished(T(value * scale), value, j);
      least_ = std::min(least_, double(value));
    }
    return e;
  }

  /// Runs one pipeline on the leading n columns of 2^-e R.
  Run<S> attempt(Sink<S>& out, int e, index_t n, Work& work) {
    std::vector<double> V(n * k_);
    const double scale = std::scalbn(1.0, -e);
    for (index_t q = 0; q < k_; ++q)
      for (index_t i = 0; i < n; ++i) V[i + q * n] = double(V_[i + q * n_]) * scale;
    const Plan plan(n, k_, task_.removed, int(sizeof(T)), task_.device_memory, task_.at_once);
    Timeline timeline;
    Timeline* const wanted = task_.timeline ? &timeline : nullptr;
    const std::unique_ptr<Device<T>> device =
        make_device_ ? make_device_(plan, V.data(), wanted)
                     : std::make_unique<HostDevice<T>>(plan, V.data(), task_.removed, task_.instructions,
                                                       cpu::useful_threads(n, k_, Uplo::upper, task_.threads), poll_);
    in_passes_ = device->in_passes();
    Run<S> done;
    {
      const int useful = std::min(task_.threads, int(plan.chunks().size()) + 1);
      Pipeline<S, T> pipeline(plan, R_, out, {task_.uplo, e, task_.scale}, *device, useful, poll_, wanted);
      done = pipeline.run();
    }
    if (task_.right.m() > 0 && done.end == End::complete && n == n_) device->carry(task_.right);
    work.unscaled_z = true;
    work.panels = index_t(plan.panels().size());
    work.device_bytes = plan.device_bytes();
    device->report(work);
    work.timeline = timeline.entries();
    return done;
  }

  const Source<S>& R_;
  const S* V_;
  Sink<S>& out_;
  const Task& task_;
  const MakeDevice<T>& make_device_;
  Poll poll_;
  index_t n_, k_;
  S largest_of_V_ = 0;
  double least_ = std::numeric_limits<double>::infinity();  ///< lower bound of R's diagonal
  bool in_passes_ = false;
  Work work_;
};

}  // namespace

template <class T, class S>
Work run(const Source<S>& R, const S* V, Sink<S>& out, const Task& task, bool overwrites,
         const MakeDevice<T>& make_device, const Poll& poll) {
  return Runner<T, S>(R, V, out, task, make_device, poll).run(overwrites);
}

#define GPUCHOLMOD_INSTANTIATE(T, S) \
  template Work run<T>(const Source<S>&, const S*, Sink<S>&, const Task&, bool, const MakeDevice<T>&, const Poll&);
GPUCHOLMOD_INSTANTIATE(double, double)
GPUCHOLMOD_INSTANTIATE(double, float)
GPUCHOLMOD_INSTANTIATE(float, double)
GPUCHOLMOD_INSTANTIATE(float, float)
#undef GPUCHOLMOD_INSTANTIATE

}  // namespace gpucholmod::stream
