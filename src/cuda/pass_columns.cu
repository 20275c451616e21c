#include <algorithm>

#include "cuda/callers_memory.h"
#include "cuda/kernels/layout.cuh"
#include "cuda/kernels/look.cuh"
#include "cuda/kernels/sides.cuh"
#include "cuda/pass.h"
#include "cuda/transfer.cuh"

/// Copies of the columns of V of a pass to the device, which looks at them, and back.
namespace gpucholmod::cuda {
namespace {

/// Queues to <- from (m x count), converted to the scalar of `to`. Without rows, as in a process that has no columns of
/// the factor, there is nothing to launch.
template <class S, class U>
void convert_columns(const S* from, index_t from_ld, U* to, index_t to_ld, index_t m, index_t count,
                     cudaStream_t stream) {
  if (m == 0) return;
  const dim3 grid(unsigned((m + convert_tile - 1) / convert_tile), unsigned((count + convert_tile - 1) / convert_tile));
  convert<false><<<grid, dim3(convert_tile, convert_rows), 0, stream>>>(MatrixView<const S>{from, m, count, from_ld},
                                                                       MatrixView<U>{to, m, count, to_ld});
  check(cudaGetLastError(), "convert columns");
}

/// Returns the grid for right-hand sides: a row of thread blocks for each column, and one more for Y, as far as a grid
/// can have as many.
dim3 grid_of_sides(index_t rows, index_t columns) {
  constexpr index_t most = 64, most_high = 65535;
  return {unsigned(std::clamp<index_t>(rows / side_threads, 1, most)),
          unsigned(std::min<index_t>(columns + 1, most_high))};
}

}  // namespace

/// Clears the words that the pass computes with. Floats take the first half of the memory; the second half, which holds
/// nothing else, has room for V in double.
template <class T>
void Pass<T>::clear_columns(index_t m, index_t rows, cudaStream_t stream) const {
  if (m < rows || columns_.count < size_.columns)
    check(cudaMemsetAsync(memory(), 0, (single_ ? sizeof(float) : sizeof(double)) * rows * size_.columns, stream),
          "clear columns");
}

template <class T>
void Pass<T>::send(const double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const {
  columns_.each([&](index_t own, index_t from, index_t count) {
    const index_t at = own * rows + first;
    copy_matrix<double>({V + from * ldv, m, count, ldv}, {place_in_double() + at, m, count, rows}, cudaMemcpyDefault,
                        stream);
    if (single_)
      convert_columns(place_in_double() + at, rows, reinterpret_cast<float*>(memory()) + at, rows, m, count, stream);
  });
}

/// Copies V to this device first if V is elsewhere, neighbouring columns at once.
template <class T>
void Pass<T>::send_unseen(const double* V, index_t n, index_t ldv, const std::vector<ScaledColumn>* scaled,
                          cudaStream_t stream) {
  const bool here = device_of(V) == current_device();
  const auto column = [&](index_t q) { return scaled ? (*scaled)[q] : ScaledColumn{q, 1}; };
  UnseenColumns unseen{};
  int number = 0;
  columns_.each([&](index_t own, index_t first, index_t count) {
    double* const place = place_in_double() + own * rows();
    for (index_t q = 0, run = 1; q < count && !here; q += run, run = 1) {
      const index_t from = column(first + q).from;
      while (q + run < count && column(first + q + run).from == from + run) ++run;
      copy_matrix<double>({V + from * ldv, n, run, ldv}, {place + q * rows(), n, run, rows()}, cudaMemcpyDefault,
                          stream);
    }
    for (index_t q = 0; q < count; ++q) {
      const auto [from, by] = column(first + q);
      unseen.of[own + q] = {here ? V + from * ldv : place + q * rows(), by, number++};
    }
  });
  constexpr index_t rows_of_piece = 8 * look_threads;
  pieces_ = int(std::clamp<index_t>((n + rows_of_piece - 1) / rows_of_piece, 1, block_columns::most_pieces / number));
  const dim3 grid(unsigned(pieces_), unsigned(size_.columns));
  if (single_)
    take_columns<<<grid, look_threads, 0, stream>>>(unseen, n, reinterpret_cast<float*>(memory()), rows(), looks());
  else take_columns<<<grid, look_threads, 0, stream>>>(unseen, n, memory(), rows(), looks());
  check(cudaGetLastError(), "take columns");
}

template <class T>
void Pass<T>::fetch(double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const {
  double* const from = place_in_double();
  columns_.each([&](index_t own, index_t to, index_t count) {
    const index_t at = own * rows + first;
    if (single_)
      convert_columns(reinterpret_cast<const float*>(memory()) + at, rows, from + at, rows, m, count, stream);
    check(cudaMemcpy2DAsync(V + to * ldv, sizeof(double) * ldv, from + at, sizeof(double) * rows, sizeof(double) * m,
                            count, cudaMemcpyDeviceToHost, stream),
          "fetch columns");
  });
}

template <class T>
void Pass<T>::prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream) {
  clear_columns(n, rows(), stream);
  send(V, ldv, n, rows(), 0, stream);
}

template <class T>
block_columns::Looked Pass<T>::looked(const void* fetched, bool removed) const {
  const auto* const looks = static_cast<const block_columns::Looked*>(fetched);
  const index_t added = pieces_ * columns_.added(), all = pieces_ * columns_.count;
  block_columns::Looked sum{0, 0};
  for (index_t i = removed ? added : 0; i < (removed ? all : added); ++i) {
    sum.largest = std::max(sum.largest, looks[i].largest);
    sum.squares += looks[i].squares;
  }
  return sum;
}

template <class T>
template <class F>
void Pass<T>::with_sides(const SidesOnTheWay<T>& sides, index_t first, F&& f) const {
  const auto as = [&](auto* columns) {
    SidesOfColumns<std::remove_pointer_t<decltype(columns)>> part{columns + first, rows(), sides.Y, sides.z.cols};
    int run = 0;
    columns_.each([&](index_t own, index_t from, index_t count) {
      part.own[run] = own, part.first[run] = from, part.count[run] = count;
      ++run;
    });
    f(part);
  };
  if constexpr (std::is_same_v<T, float>)
    if (single_) return as(reinterpret_cast<float*>(memory()));
  as(memory());
}

template <class T>
void Pass<T>::take_sides(const SidesOnTheWay<T>& sides, index_t first, bool all, cudaStream_t stream) const {
  MatrixView<T> to = sides.dz;
  if (!all) to.cols = 0;
  const MatrixView<const double> from{sides.z.data, sides.z.rows, sides.z.cols, sides.z.ld};
  with_sides(sides, first, [&](const auto& columns) {
    cuda::take_sides<<<grid_of_sides(to.rows, to.cols), side_threads, 0, stream>>>(from, to, columns);
  });
  check(cudaGetLastError(), "send right-hand sides");
}

template <class T>
void Pass<T>::give_sides(const SidesOnTheWay<T>& sides, index_t first, bool all, cudaStream_t stream) const {
  MatrixView<double> to = sides.z;
  if (!all) to.cols = 0;
  const MatrixView<const T> from{sides.dz.data, sides.dz.rows, sides.dz.cols, sides.dz.ld};
  with_sides(sides, first, [&](const auto& columns) {
    cuda::give_sides<<<grid_of_sides(to.rows, to.cols), side_threads, 0, stream>>>(from, to, columns);
  });
  check(cudaGetLastError(), "fetch right-hand sides");
}

#define GPUCHOLMOD_FOR(T)                                                                                              \
  template void Pass<T>::prepare(const double*, index_t, index_t, cudaStream_t);                                       \
  template void Pass<T>::send_unseen(const double*, index_t, index_t, const std::vector<ScaledColumn>*, cudaStream_t); \
  template block_columns::Looked Pass<T>::looked(const void*, bool) const;                                             \
  template void Pass<T>::clear_columns(index_t, index_t, cudaStream_t) const;                                          \
  template void Pass<T>::take_sides(const SidesOnTheWay<T>&, index_t, bool, cudaStream_t) const;                       \
  template void Pass<T>::give_sides(const SidesOnTheWay<T>&, index_t, bool, cudaStream_t) const;                       \
  template void Pass<T>::send(const double*, index_t, index_t, index_t, index_t, cudaStream_t) const;                  \
  template void Pass<T>::fetch(double*, index_t, index_t, index_t, index_t, cudaStream_t) const;
GPUCHOLMOD_FOR(float)
GPUCHOLMOD_FOR(double)
#undef GPUCHOLMOD_FOR

}  // namespace gpucholmod::cuda
