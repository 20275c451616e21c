#pragma once

#include "grid_call.h"
#include "stream/plan.h"

/// Modifications by the stream method.
namespace gpucholmod::test {

constexpr Uplo uplos[] = {Uplo::upper, Uplo::lower};
constexpr double ample = std::numeric_limits<double>::infinity();

/// Returns a factor as it is stored, with NaN in the other triangle.
template <class S>
Stored<S> stored(const Stored<S>& R, Uplo uplo) {
  Stored<S> memory = Stored<S>::Constant(R.rows(), R.cols(), std::numeric_limits<S>::quiet_NaN());
  memory.template triangularView<Eigen::Upper>() = R;
  if (uplo == Uplo::lower) memory.transposeInPlace();
  return memory;
}
template <class S>
Problem<S> stored(Problem<S> p, Uplo uplo) {
  p.R = stored(p.R, uplo);
  return p;
}

template <class S>
Problem<S> as(const Problem<double>& p) {
  return {p.sign, p.R.cast<S>(), p.V.cast<S>()};
}

/// Returns an update, or a downdate that is possible. The problem costs little to make in any size.
inline Problem<double> quick_problem(Sign sign, index_t n, index_t k, unsigned seed = 4) {
  Random random(seed);
  const auto uniform = [&] { return double(2 * random.uniform() - 1); };
  Problem<double> p{sign, Stored<double>::Zero(n, n), Stored<double>(n, k)};
  for (index_t j = 0; j < n; ++j) {
    for (index_t i = 0; i < j; ++i) p.R(i, j) = uniform() / std::sqrt(double(n));
    p.R(j, j) = 2 + uniform();
    for (index_t q = 0; q < k; ++q) p.V(j, q) = uniform() / std::sqrt(double(2 * n * k));
  }
  return p;
}

inline double least_budget(index_t n, index_t k, int word) {
  return number(*error_of([=] { stream::Plan(n, k, 0, word, 0, false); }), "needed");
}

/// Returns budgets of device memory, in bytes, from ample to the least.
inline std::vector<double> budgets_for(index_t n, index_t k, int word) {
  const double least = least_budget(n, k, word), more = stream::Plan(n, k, 0, word, ample, true).device_bytes() - least;
  return {ample, least + 0.99 * more, least + 0.6 * more, least + 0.3 * more, least + 0.05 * more, least};
}

/// A function that is called, from any thread, when a column of a WatchedSource is read or one of a WatchedSink is
/// written.
using Watch = std::function<void(index_t column)>;
template <class S>
struct WatchedSource : MemorySource<S> {
  WatchedSource(const S* data, index_t n, Watch watch) : MemorySource<S>(data, n), watch(std::move(watch)) {}
  const S* column(index_t j, index_t first, index_t last, S* scratch) const override {
    if (watch) watch(j);
    return MemorySource<S>::column(j, first, last, scratch);
  }
  Watch watch;
};
template <class S>
struct WatchedSink : MemorySink<S> {
  WatchedSink(S* data, index_t n, Watch watch) : MemorySink<S>(data, n), watch(std::move(watch)) {}
  void put(index_t j, index_t first, index_t last, const S* values) override {
    if (watch) watch(j);
    MemorySink<S>::put(j, first, last, values);
  }
  Watch watch;
};

}  // namespace gpucholmod::test
