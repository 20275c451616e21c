#include "cuda/callers_memory.h"

#include <algorithm>
#include <climits>
#include <type_traits>

#include "base/factor_io.h"
#include "cuda/context.h"
#include "cuda/kernels/too_large.cuh"
#include "cuda/transfer.cuh"

namespace gpucholmod::cuda {
namespace {

template <class S>
constexpr bool is_double = std::is_same_v<S, double>;

template <class S>
bool has_no_gaps(MatrixView<S> A) {
  return A.ld == A.rows || A.cols <= 1;
}

/// Throws overflow of the first number of A, which has no gaps, that is too large for a float. Waits for the device.
void require_floats(MatrixView<const double> A, Context& context) {
  const PoolBuffer<unsigned long long> dfirst(context.workspace(), 1);
  check(cudaMemsetAsync(dfirst.data(), 0xff, dfirst.bytes(), context.stream()), "prepare to look at numbers");
  const index_t count = A.rows * A.cols, blocks = std::min<index_t>((count + look_threads - 1) / look_threads, 4096);
  find_too_large<<<unsigned(blocks), look_threads, 0, context.stream()>>>(A.data, count, dfirst.data());
  check(cudaGetLastError(), "start to look at numbers");
  unsigned long long first = 0;
  check(cudaMemcpyAsync(&first, dfirst.data(), sizeof first, cudaMemcpyDeviceToHost, context.stream()),
        "look at numbers");
  check(cudaStreamSynchronize(context.stream()), "look at numbers");
  if (first != ULLONG_MAX) throw overflow(index_t(first) % A.rows, index_t(first) / A.rows);
}

}  // namespace

int device_of(const void* data) {
  note_start();
  cudaPointerAttributes found{};
  if (!data || cudaPointerGetAttributes(&found, data) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  return found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged ? found.device : -1;
}

void follow(int device, void* stream) {
  Context& context = Context::of(device);
  const CurrentDevice current(device);
  const auto queued = static_cast<cudaStream_t>(stream);
  cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(queued, &captured), "ask whether a stream is captured");
  if (captured != cudaStreamCaptureStatusNone)
    throw Error(ErrorCode::bad_argument, "'options->stream' is being captured, which calls of gpucholmod cannot be",
                {{"argument", "options->stream"}});
  Event& until = context.marks().ready;
  until.record(queued);
  check(cudaStreamWaitEvent(context.stream(), until, 0), "order two streams");
}

template <class S>
void copy_to_host(int device, MatrixView<const S> A, S* out) {
  const Session session(Context::of(device));
  copy_matrix<S>(A, {out, A.rows, A.cols, A.rows}, cudaMemcpyDeviceToHost, Context::of(device).stream());
  session.finish();
}

void fetch_many(int device, MatrixView<const double> A, double* out) {
  if (A.rows == 0 || A.cols == 0) return;
  Context& context = Context::of(device);
  const Session session(context);
  fetch_columns(A, {out, A.rows, A.cols, A.rows}, context, [] { return true; });
}

template <class S>
void copy_to_device(int device, const S* from, MatrixView<S> A) {
  const Session session(Context::of(device));
  copy_matrix<S>({from, A.rows, A.cols, A.rows}, A, cudaMemcpyHostToDevice, Context::of(device).stream());
  session.finish();
}

template <class S>
void copy_triangle_to_device(int device, const S* from, Uplo uplo, MatrixView<S> A) {
  const Session session(Context::of(device));
  for (index_t j = 0; j < A.cols; ++j) {
    const auto [first, last] = rows_of(j, A.cols, uplo);
    check(cudaMemcpyAsync(A.col(j) + first, from + j * A.cols + first, sizeof(S) * std::size_t(last - first),
                          cudaMemcpyHostToDevice, Context::of(device).stream()),
          "copy a triangle");
  }
  session.finish();
}

struct ColumnsOnDevice::Copy {
  PoolBuffer<double> memory;
};

template <class S>
ColumnsOnDevice::ColumnsOnDevice(int device, MatrixView<const S> V) {
  if constexpr (is_double<S>) {
    data_ = V.data;
    if (has_no_gaps(V)) return;
  }
  Context& context = Context::of(device);
  const CurrentDevice current(device);
  copy_ = new Copy{{context.workspace(), V.rows * V.cols}};
  data_ = copy_->memory.data();
  if (V.rows > 0 && V.cols > 0)
    convert_matrix<S, double>(false, V, {copy_->memory.data(), V.rows, V.cols, V.rows}, context.stream());
}

ColumnsOnDevice::~ColumnsOnDevice() { delete copy_; }

template <class S>
void change_on_device(int device, MatrixView<S> A, const std::function<void(double*)>& f) {
  if constexpr (is_double<S>)
    if (has_no_gaps(A)) return f(A.data);
  if (A.rows == 0 || A.cols == 0) return;
  Context& context = Context::of(device);
  const Session session(context);
  const PoolBuffer<double> numbers(context.workspace(), A.rows * A.cols);
  const MatrixView<double> packed{numbers.data(), A.rows, A.cols, A.rows};
  convert_matrix<S, double>(false, A, packed, context.stream());
  f(packed.data);
  if constexpr (!is_double<S>) require_floats(packed, context);
  convert_matrix<double, S>(false, packed, A, context.stream());
  session.finish();
}

#define GPUCHOLMOD_FOR(S)                                                     \
  template void copy_to_host(int, MatrixView<const S>, S*);                   \
  template void copy_to_device(int, const S*, MatrixView<S>);                 \
  template void copy_triangle_to_device(int, const S*, Uplo, MatrixView<S>);  \
  template void change_on_device(int, MatrixView<S>, const std::function<void(double*)>&);                    \
  template ColumnsOnDevice::ColumnsOnDevice(int, MatrixView<const S>);
GPUCHOLMOD_FOR(float)
GPUCHOLMOD_FOR(double)
#undef GPUCHOLMOD_FOR

}  // namespace gpucholmod::cuda
