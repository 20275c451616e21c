#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/held_factor.h"
#include "cuda/context.h"
#include "cuda/kernels/measure.cuh"
#include "cuda/substitution.h"
#include "cuda/transfer.cuh"

/// Products with a factor R (n x n, upper, n > 0) in the layout of a Factor, and times that a modification is compared
/// with. Needs a Session.
namespace gpucholmod::cuda {

/// Returns the median device time, in seconds, of the work that `work` queues in the stream. `prepare` queues work
/// before each run: the device is then busy while `work` queues, and the measured time contains no wait for the host.
template <class Prepare, class Work>
double median_seconds(int repeats, cudaStream_t stream, Prepare&& prepare, Work&& work) {
  std::vector<double> seconds;
  Timer begin, end;
  for (int repeat = -1; repeat < repeats; ++repeat) {
    prepare();
    begin.record(stream);
    work();
    end.record(stream);
    check(cudaStreamSynchronize(stream), "finish what is timed");
    if (repeat >= 0) seconds.push_back(end.seconds_since(begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[repeats / 2];
}

template <class T>
void sweep(MatrixView<const T> dR, T* dOut, cudaStream_t stream) {
  sweep_triangle<T><<<unsigned(dR.cols), sweep_threads, 0, stream>>>(dR, {dOut, dR.cols, dR.cols, dR.ld});
  check(cudaGetLastError(), "start a sweep over a factor");
}

template <class T>
double time_sweep(MatrixView<const T> dR, int repeats, Context& context) {
  const PoolBuffer<T> dOut(context.pool(), dR.ld * dR.cols);
  const auto run = [&] { sweep(dR, dOut.data(), context.stream()); };
  return median_seconds(repeats, context.stream(), run, run);
}

/// Returns the device time of cuSOLVER's factorisation, of the upper or the lower triangle, whichever takes less time.
/// NaN if R'R as rounded is not positive definite.
template <class T>
double time_refactoring(MatrixView<const T> dR, int repeats, Context& context) {
  const index_t n = dR.cols;
  const cudaStream_t stream = context.stream();
  const Cublas& cublas = context.cublas();
  const Cusolver& cusolver = context.cusolver();
  const PoolBuffer<T> dA(context.pool(), dR.ld * n);
  const index_t words = std::max(cusolver.workspace(Uplo::lower, n, dA.data(), dR.ld),
                                 cusolver.workspace(Uplo::upper, n, dA.data(), dR.ld));
  const PoolBuffer<T> dwork(context.pool(), words);
  const PoolBuffer<int> dinfo(context.pool(), 1);
  const auto form_A = [&] {
    check(cudaMemsetAsync(dA.data(), 0, dA.bytes(), stream), "clear a matrix");
    sweep(dR, dA.data(), stream);
    cublas.multiply_transposed(n, n, dR.data, dR.ld, dA.data(), dR.ld);
  };
  double seconds = std::numeric_limits<double>::infinity();
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    seconds = std::min(seconds, median_seconds(repeats, stream, form_A, [&] {
      cusolver.factorise(uplo, n, dA.data(), dR.ld, dwork.data(), words, dinfo.data());
    }));
  int info = 0;
  check(cudaMemcpyAsync(&info, dinfo.data(), sizeof info, cudaMemcpyDeviceToHost, stream), "fetch the failing pivot");
  check(cudaStreamSynchronize(stream), "factorise");
  return info == 0 ? seconds : std::numeric_limits<double>::quiet_NaN();
}

/// Returns the device time of solving for B (n x m) with R'R, B being on the device; NaN if this device has no kernel
/// for that. Each of several passes goes on with what the pass before has left, as the time does not depend on numbers.
template <class T>
double time_solving_by_chain(const T* dR, const Layout& layout, const double* B, index_t m, int repeats,
                             Context& context) {
  const auto at_once = Substitution<T>::at_once(context, m, layout.strips());
  const int columns = at_once.columns;
  if (columns == 0) return std::numeric_limits<double>::quiet_NaN();
  std::optional<Substitution<T>> chain;
  const auto begin = [&] {
    chain.emplace(context, at_once, layout.strips(), dR, layout.ld);
    const MatrixView<double> place = chain->place(layout.n, std::min<index_t>(m, columns), context.stream());
    copy_matrix<double>({B, place.rows, place.cols, layout.n}, place, cudaMemcpyHostToDevice, context.stream());
  };
  return median_seconds(repeats, context.stream(), begin, [&] {
    for (index_t first = 0; first < m; first += columns) chain->solve(TriangularSolve::both, context.stream());
  });
}
template <class T>
double time_solving_by_cublas(MatrixView<const T> dR, const double* B, index_t m, int repeats, Context& context) {
  const index_t n = dR.cols;
  const cudaStream_t stream = context.stream();
  const Cublas& cublas = context.cublas();
  const PoolBuffer<double> dB(context.pool(), n * m);
  const PoolBuffer<T> dX(context.pool(), n * m);
  check(cudaMemcpyAsync(dB.data(), B, dB.bytes(), cudaMemcpyHostToDevice, stream), "send right-hand sides");
  const auto begin = [&] { convert_matrix<double, T>(false, {dB.data(), n, m, n}, {dX.data(), n, m, n}, stream); };
  return median_seconds(repeats, stream, begin, [&] {
    cublas.solve(true, n, m, dR.data, dR.ld, dX.data(), n);
    cublas.solve(false, n, m, dR.data, dR.ld, dX.data(), n);
  });
}

/// Multiplies dX (n x m, m < 65536) by R, R' or both. dY is n x m too; both dX and dY are overwritten. Returns the one
/// of dX and dY that holds the product.
template <class T>
const double* multiply(MatrixView<const T> dR, TriangularProduct which, double* dX, double* dY, index_t m,
                       cudaStream_t stream) {
  const index_t n = dR.cols;
  const unsigned rows = unsigned((n + product_threads - 1) / product_threads);
  if (which != TriangularProduct::transposed) {
    multiply_upper<T><<<dim3(rows, unsigned(m)), product_threads, 0, stream>>>(dR, dX, dY);
    std::swap(dX, dY);
  }
  if (which != TriangularProduct::plain) {
    multiply_upper_transposed<T><<<dim3(unsigned(n), unsigned(m)), 32, 0, stream>>>(dR, dX, dY);
    std::swap(dX, dY);
  }
  check(cudaGetLastError(), "start a product");
  return dX;
}

}  // namespace gpucholmod::cuda
