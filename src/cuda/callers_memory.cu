#include "cuda/callers_memory.h"

#include <type_traits>

#include "cuda/context.h"
#include "cuda/transfer.cuh"

namespace gpucholmod::cuda {

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
  if constexpr (std::is_same_v<S, double>) {
    data_ = V.data;
    if (V.ld == V.rows || V.cols <= 1) return;
  }
  Context& context = Context::of(device);
  const CurrentDevice current(device);
  copy_ = new Copy{{context.workspace(), V.rows * V.cols}};
  data_ = copy_->memory.data();
  if (V.rows > 0 && V.cols > 0)
    convert_matrix<S, double>(false, V, {copy_->memory.data(), V.rows, V.cols, V.rows}, context.stream());
}

ColumnsOnDevice::~ColumnsOnDevice() { delete copy_; }

#define GPUCHOLMOD_FOR(S)                                                     \
  template void copy_to_host(int, MatrixView<const S>, S*);                   \
  template void copy_to_device(int, const S*, MatrixView<S>);                 \
  template void copy_triangle_to_device(int, const S*, Uplo, MatrixView<S>);  \
  template ColumnsOnDevice::ColumnsOnDevice(int, MatrixView<const S>);
GPUCHOLMOD_FOR(float)
GPUCHOLMOD_FOR(double)
#undef GPUCHOLMOD_FOR

}  // namespace gpucholmod::cuda
