#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/factor_io.h"
#include "base/storage.h"
#include "base/threads.h"
#include "base/types.h"
#include "cuda/context.h"
#include "cuda/kernels/layout.cuh"

/// Transfers of a matrix between the host (scalars S, pageable) and the device (scalars T), queued in the stream of a
/// Context whose device is current. Panels of columns pass through a staging buffer, O(n), where scalars are converted
/// and a lower triangle is turned into an upper one. Only the triangle is transferred.
namespace gpucholmod::cuda {

constexpr index_t transfer_columns = 512;  ///< most columns of a panel: enough to hide the cost of starting a copy
constexpr std::size_t staged_bytes = std::size_t(16) << 20;  ///< page-locked memory, half of which is filled at a time
constexpr index_t source_bytes = 32 << 20;  ///< bytes of a panel of several columns, of a matrix that is not in memory

/// Describes columns [begin, end) of a triangle of order n on the host, and their rows [top, bottom).
struct TrianglePanel {
  index_t begin, end, top, bottom;

  TrianglePanel(index_t first, index_t width, index_t n, Uplo uplo)
      : begin(first), end(std::min(first + width, n)),
        top(uplo == Uplo::upper ? 0 : begin), bottom(uplo == Uplo::upper ? end : n) {}
  index_t rows() const { return bottom - top; }
  index_t cols() const { return end - begin; }
  /// Returns the place of the panel in R on the device, which stores triangle `to`; a transposed place if the panel
  /// belongs to the other triangle.
  template <class T>
  MatrixView<T> in(MatrixView<T> R, Uplo uplo, Uplo to = Uplo::upper) const {
    return uplo == to ? R.block(top, begin, rows(), cols()) : R.block(begin, top, cols(), rows());
  }
};

template <class S>
void copy_matrix(MatrixView<const S> from, MatrixView<S> to, cudaMemcpyKind kind, cudaStream_t stream) {
  check(cudaMemcpy2DAsync(to.data, sizeof(S) * to.ld, from.data, sizeof(S) * from.ld, sizeof(S) * to.rows, to.cols,
                          kind, stream),
        "copy a matrix");
}

/// Queues dto <- dfrom, or dfrom' if `transposed`. A launch takes no more columns than a grid has thread blocks for.
template <class S, class T>
void convert_matrix(bool transposed, MatrixView<const S> dfrom, MatrixView<T> dto, cudaStream_t stream) {
  constexpr index_t most = index_t(65535) * convert_tile;
  const auto tiles = [](index_t size) { return unsigned((size + convert_tile - 1) / convert_tile); };
  for (index_t first = 0; first < dto.cols; first += most) {
    const index_t cols = std::min(most, dto.cols - first);
    const MatrixView<T> to = dto.block(0, first, dto.rows, cols);
    const dim3 grid(tiles(to.rows), tiles(cols)), block(convert_tile, convert_rows);
    if (transposed) convert<true><<<grid, block, 0, stream>>>(dfrom.block(first, 0, cols, dfrom.cols), to);
    else convert<false><<<grid, block, 0, stream>>>(dfrom.block(0, first, dfrom.rows, cols), to);
    check(cudaGetLastError(), "start the conversion of a matrix");
  }
}

/// Queues dto <- dfrom, of factors. If they lie on several devices, a kernel copies them, as no CUDA copy is known to
/// cross devices there.
template <class T>
void copy_on_device(MatrixView<const T> dfrom, MatrixView<T> dto, Context& context) {
  if (context.spread()) convert_matrix<T, T>(false, dfrom, dto, context.stream());
  else copy_matrix(dfrom, dto, cudaMemcpyDeviceToDevice, context.stream());
}

/// Queues a copy of `count` entries of a factor's column to the host or from the host, as `kind` says. The copy passes
/// through memory of one device if the factor lies on several.
template <class T>
void move_column(const T* from, T* to, index_t count, cudaMemcpyKind kind, Context& context) {
  if (count == 0) return;
  const bool spread = context.spread() != nullptr, fetching = kind == cudaMemcpyDeviceToHost;
  const PoolBuffer<T> beside(context.pool(), spread ? count : 0);
  const auto column = [&](T* data) { return MatrixView<T>{data, count, 1, count}; };
  const auto read = [&](const T* data) { return MatrixView<const T>{data, count, 1, count}; };
  if (spread && fetching) copy_on_device(read(from), column(beside.data()), context);
  check(cudaMemcpyAsync(spread && !fetching ? beside.data() : to, spread && fetching ? beside.data() : from,
                        sizeof(T) * count, kind, context.stream()),
        "copy a column");
  if (spread && !fetching) copy_on_device(read(beside.data()), column(to), context);
}

/// Returns the number of columns, of n rows, of a panel that fills half of staged_bytes.
template <class S>
index_t staged_columns(index_t n) {
  return std::clamp<index_t>(index_t(staged_bytes / 2 / sizeof(S)) / n, 1, std::min(n, transfer_columns));
}
/// Returns the number of threads that move `count` numbers in the host's memory: to wake several takes as long as to
/// move 100,000 numbers.
inline int threads_to_move(index_t count) { return count < 100000 ? 1 : threads_for(0); }

/// Queues the triangle `to` of dR (n x n) <- the triangle `uplo` of A (n x n), or its transpose. Several threads fill
/// page-locked memory, half of which is sent meanwhile; a small matrix passes through page-locked memory of the driver.
/// Somebody has to wait for the stream before Context::staging() is used again.
template <class S, class T>
void send_triangle(MatrixView<const S> A, Uplo uplo, Uplo to, MatrixView<T> dR, Context& context) {
  const index_t n = A.cols;
  if (n == 0) return;
  const index_t width = staged_columns<S>(n), half = n * width;
  const int threads = threads_to_move(n * n);
  const PoolBuffer<S> staging(context.pool(), 2 * half);
  S* const locked = threads > 1 ? static_cast<S*>(context.staging(2 * sizeof(S) * std::size_t(half))) : nullptr;
  Event sent[2];
  for (index_t first = 0, i = 0; first < n; first += width, ++i) {
    const TrianglePanel panel(first, width, n, uplo);
    const index_t rows = panel.rows(), which = i % 2;
    MatrixView<const S> from = A.block(panel.top, panel.begin, rows, panel.cols());
    if (threads > 1) {
      S* const at = locked + which * half;
      if (i >= 2) sent[which].synchronize();
      for_columns(panel.cols(), threads, [&](index_t begin, index_t end) {
        for (index_t j = begin; j < end; ++j) std::copy_n(from.col(j), rows, at + j * rows);
      }, [] {}, 8);
      from = {at, rows, panel.cols(), rows};
    }
    const MatrixView<S> dpanel{staging.data() + which * half, rows, panel.cols(), rows};
    copy_matrix(from, dpanel, cudaMemcpyHostToDevice, context.stream());
    sent[which].record(context.stream());
    convert_matrix<S, T>(uplo != to, dpanel, panel.in(dR, uplo, to), context.stream());
  }
}

/// Queues to <- from (`count` numbers in the host's memory) by way of `locked`, page-locked memory for as many numbers.
/// Several threads fill `locked`; the calling thread sends the blocks that are full. Returns when `from` has been read.
inline void fill_and_send(const double* from, index_t count, double* locked, double* to, Context& context) {
  constexpr index_t block = index_t(1) << 14, most_threads = 8;  // threads that read as fast as the bus transfers
  const index_t blocks = (count + block - 1) / block, together = std::max<index_t>(4, blocks / 4);
  std::vector<std::atomic<bool>> filled(blocks);
  index_t sent = 0;
  const auto send = [&](index_t least) {
    index_t ready = sent;
    while (ready < blocks && filled[ready].load(std::memory_order_acquire)) ++ready;
    if (ready - sent < least) return;
    const index_t first = sent * block, numbers = std::min(ready * block, count) - first;
    check(cudaMemcpyAsync(to + first, locked + first, sizeof(double) * numbers, cudaMemcpyHostToDevice,
                          context.stream()),
          "send numbers");
    sent = ready;
  };
  const int threads = std::min(threads_to_move(count), int(most_threads));
  for_columns(count, threads, [&](index_t begin, index_t end) {
    std::copy(from + begin, from + end, locked + begin);
    filled[begin / block].store(true, std::memory_order_release);
  }, [&] { send(together); }, block);
  send(1);
}

/// Queues to <- from as fill_and_send() does, by way of Context::staging(). Somebody has to wait for the stream before
/// Context::staging() is used again.
inline void send_staged(const double* from, index_t count, double* to, Context& context) {
  constexpr index_t room = index_t(staged_bytes / sizeof(double));
  const index_t most = count > room ? room / 2 : count;
  double* const locked = static_cast<double*>(context.staging(sizeof(double) * std::size_t(std::min(room, count))));
  Event sent[2];
  for (index_t first = 0, i = 0; first < count; first += most, ++i) {
    if (i >= 2) sent[i % 2].synchronize();
    fill_and_send(from + first, std::min(most, count - first), locked + i % 2 * most, to + first, context);
    if (count > room) sent[i % 2].record(context.stream());
  }
}

/// Returns the number of columns, of n numbers each, that pass through half of the page-locked memory, while the other
/// half is filled or emptied.
inline index_t columns_at_a_time(index_t n, index_t columns) {
  return std::clamp<index_t>(index_t(staged_bytes / 2 / sizeof(double)) / std::max<index_t>(n, 1), 1, columns);
}
/// Returns page-locked memory for two pieces of columns_at_a_time() columns, or for all columns if that is less.
inline double* staging_of_columns(index_t n, index_t columns, Context& context) {
  const index_t numbers = n * std::min(columns, 2 * columns_at_a_time(n, columns));
  return static_cast<double*>(context.staging(sizeof(double) * std::size_t(numbers)));
}

/// Queues to (on the device) <- from (in the host's memory) by way of page-locked memory, as send_staged() does.
inline void send_columns(MatrixView<const double> from, MatrixView<double> to, Context& context) {
  const index_t n = from.rows, most = columns_at_a_time(n, from.cols);
  double* const locked = staging_of_columns(n, from.cols, context);
  Event sent[2];
  for (index_t first = 0, i = 0; first < from.cols; first += most, ++i) {
    const index_t cols = std::min(most, from.cols - first);
    double* const at = locked + i % 2 * n * most;
    if (i >= 2) sent[i % 2].synchronize();
    for_columns(cols, threads_to_move(n * cols), [&](index_t begin, index_t end) {
      for (index_t j = begin; j < end; ++j) std::copy_n(from.col(first + j), n, at + j * n);
    }, [] {}, 2);
    copy_matrix<double>({at, n, cols, n}, to.block(0, first, n, cols), cudaMemcpyHostToDevice, context.stream());
    sent[i % 2].record(context.stream());
  }
}

/// Copies `from` (on the device) to `to` (in the host's memory) by way of page-locked memory, if accept() returns true.
/// accept() is called when the first columns have arrived. Returns its result. No copy is under way afterwards.
template <class F>
bool fetch_columns(MatrixView<const double> from, MatrixView<double> to, Context& context, F&& accept) {
  const index_t n = to.rows, most = columns_at_a_time(n, to.cols);
  double* const locked = staging_of_columns(n, to.cols, context);
  Event came[2];
  const auto begin = [&](index_t first, index_t i) {
    if (first >= to.cols) return;
    const index_t cols = std::min(most, to.cols - first);
    copy_matrix<double>(from.block(0, first, n, cols), {locked + i % 2 * n * most, n, cols, n}, cudaMemcpyDeviceToHost,
                        context.stream());
    came[i % 2].record(context.stream());
  };
  begin(0, 0);
  for (index_t first = 0, i = 0; first < to.cols; first += most, ++i) {
    begin(first + most, i + 1);
    came[i % 2].synchronize();
    if (i == 0 && !accept()) {
      check(cudaStreamSynchronize(context.stream()), "fetch columns");
      return false;
    }
    const index_t cols = std::min(most, to.cols - first);
    const double* const at = locked + i % 2 * n * most;
    for_columns(cols, threads_to_move(n * cols), [&](index_t begin, index_t end) {
      for (index_t j = begin; j < end; ++j) std::copy_n(at + j * n, n, to.col(first + j));
    }, [] {}, 2);
  }
  return true;
}

/// Queues the upper triangle of dR (n x n) <- that of a matrix R that is never whole in the host's memory. Two panels
/// are page-locked there: R is read into one panel while the other is sent. Calls look(j, column) for column j, rows 0
/// .. j, before the column is sent, and `poll` between panels.
template <class T, class F>
void send_source(const Source<double>& R, MatrixView<T> dR, Context& context, const Poll& poll, F&& look) {
  const index_t n = dR.cols, widest = std::clamp<index_t>(source_bytes / index_t(sizeof(double) * n), 1,
                                                          std::min(n, transfer_columns));
  const PoolBuffer<double> staging(context.pool(), n * widest);
  double* const locked = static_cast<double*>(context.staging(2 * sizeof(double) * std::size_t(n * widest)));
  Event sent[2];
  for (index_t first = 0, panels = 0; first < n; first += widest, ++panels) {
    const index_t end = std::min(first + widest, n);
    const MatrixView<double> panel{locked + panels % 2 * n * widest, end, end - first, end},
        dpanel{staging.data(), end, end - first, end};
    if (panels >= 2) sent[panels % 2].synchronize();
    for (index_t j = first; j < end; ++j) {
      double* const to = panel.col(j - first);
      if (const double* const column = R.column(j, 0, j + 1, to); column != to) std::copy(column, column + j + 1, to);
      std::fill(to + j + 1, to + end, 0.0);
      look(j, static_cast<const double*>(to));
    }
    copy_matrix<double>({panel.data, end, end - first, end}, dpanel, cudaMemcpyHostToDevice, context.stream());
    sent[panels % 2].record(context.stream());
    convert_matrix<double, T>(false, {dpanel.data, end, end - first, end}, dR.block(0, first, end, end - first),
                              context.stream());
    poll(double(end) / double(n));
  }
}

/// Copies dR (n x n, upper), or dR', to the triangle of out (n x n) that uplo names; the other triangle becomes zero.
/// Several threads empty one half of page-locked memory while the other half is filled. Returns when all is copied.
template <class S, class T>
void fetch_triangle(MatrixView<const T> dR, Uplo uplo, MatrixView<S> out, Context& context) {
  const index_t n = out.cols;
  if (n == 0) return;
  const index_t width = staged_columns<S>(n), half = n * width;
  const PoolBuffer<S> staging(context.pool(), 2 * half);
  S* const locked = static_cast<S*>(context.staging(2 * sizeof(S) * std::size_t(half)));
  Event came[2];
  const auto empty = [&](index_t first, index_t which) {
    const TrianglePanel panel(first, width, n, uplo);
    const S* const at = locked + which * half;
    came[which].synchronize();
    for_columns(panel.cols(), threads_to_move(n * panel.cols()), [&](index_t begin, index_t end) {
      for (index_t j = begin; j < end; ++j) {
        const auto [top, bottom] = rows_of(panel.begin + j, n, uplo);
        S* const column = out.col(panel.begin + j);
        std::fill(column, column + top, S(0));
        std::copy_n(at + j * panel.rows() + top - panel.top, bottom - top, column + top);
        std::fill(column + bottom, column + n, S(0));
      }
    }, [] {}, 8);
  };
  for (index_t first = 0, i = 0; first < n; first += width, ++i) {
    const TrianglePanel panel(first, width, n, uplo);
    const index_t which = i % 2;
    const MatrixView<S> dpanel{staging.data() + which * half, panel.rows(), panel.cols(), panel.rows()};
    convert_matrix(uplo == Uplo::lower, panel.in(dR, uplo), dpanel, context.stream());
    check(cudaMemcpyAsync(locked + which * half, dpanel.data, sizeof(S) * std::size_t(panel.rows() * panel.cols()),
                          cudaMemcpyDeviceToHost, context.stream()),
          "fetch a panel");
    came[which].record(context.stream());
    if (i > 0) empty(first - width, 1 - which);
    if (first + width >= n) empty(first, which);
  }
}

}  // namespace gpucholmod::cuda
