#include "cuda/backend.h"

#include "base/error.h"
#include "cuda/callers_memory.h"
#include "cuda/device_batch.h"
#include "cuda/device_factor.h"
#include "cuda_build.h"
#include "paper/shape.h"
#include "stream/device.h"

namespace gpucholmod::cuda {
namespace {

[[noreturn]] void refuse() {
  const Status why = status(false);
  throw Error(ErrorCode::backend_unavailable, why.message, {{"backend", "cuda"}, {"reason", why.reason}});
}

}  // namespace

int device_of(const void*) { refuse(); }
void follow(int, void*) { refuse(); }
void fetch_many(int, MatrixView<const double>, double*) { refuse(); }
template <class S>
void copy_to_host(int, MatrixView<const S>, S*) { refuse(); }
template <class S>
void copy_to_device(int, const S*, MatrixView<S>) { refuse(); }
template <class S>
void copy_triangle_to_device(int, const S*, Uplo, MatrixView<S>) { refuse(); }
template <class S>
void change_on_device(int, MatrixView<S>, const std::function<void(double*)>&) { refuse(); }
template <class S>
ColumnsOnDevice::ColumnsOnDevice(int, MatrixView<const S>) { refuse(); }
ColumnsOnDevice::~ColumnsOnDevice() {}
template <class S>
std::unique_ptr<DeviceFactor> take(MatrixView<const S>, Uplo, index_t, int) { refuse(); }

template <class S>
std::optional<Work> modify_where_it_is(const CallersFactor<S>&, const ColumnsOfV&, const Task&, const Poll&,
                                       std::atomic<bool>&) {
  refuse();
}
template <class S>
bool queue_where_it_is(const CallersFactor<S>&, const ColumnsOfV&, const Task&, const Queued&) { refuse(); }

#define GPUCHOLMOD_FOR(S)                                                     \
  template void copy_to_host(int, MatrixView<const S>, S*);                   \
  template void copy_to_device(int, const S*, MatrixView<S>);                 \
  template void copy_triangle_to_device(int, const S*, Uplo, MatrixView<S>);  \
  template void change_on_device(int, MatrixView<S>, const std::function<void(double*)>&);                    \
  template ColumnsOnDevice::ColumnsOnDevice(int, MatrixView<const S>);        \
  template std::unique_ptr<DeviceFactor> take(MatrixView<const S>, Uplo, index_t, int);        \
  template bool queue_where_it_is(const CallersFactor<S>&, const ColumnsOfV&, const Task&, const Queued&);     \
  template std::optional<Work> modify_where_it_is(const CallersFactor<S>&, const ColumnsOfV&, const Task&,     \
                                                  const Poll&, std::atomic<bool>&);
GPUCHOLMOD_FOR(float)
GPUCHOLMOD_FOR(double)
#undef GPUCHOLMOD_FOR

bool built() { return false; }
bool started() { return false; }
double release() { return 0; }

Status status(bool) {
  Status status;
  status.reason = "not_built";
  status.configured = GPUCHOLMOD_CUDA_CONFIGURED;
  status.message = "this package was built without CUDA; " + status.configured;
  return status;
}

std::unique_ptr<DeviceBatch> upload_batch(const double*, index_t, index_t, Uplo, Precision, int, const BatchRoom&) {
  refuse();
}

template <class T>
Work paper_panels(MatrixView<T>, MatrixView<const T>, Sign, double, const paper::Shape&, const Poll&) { refuse(); }

template <class S>
std::unique_ptr<DeviceFactor> upload(const S*, index_t, Uplo, Precision, index_t, const Devices&) { refuse(); }

std::unique_ptr<DeviceFactor> upload(const Source<double>&, index_t, Precision, index_t, const Devices&, const Poll&) {
  refuse();
}

template <class S>
std::unique_ptr<DeviceFactor> factorise(const S*, index_t, Uplo, Precision, const Devices&, index_t&) { refuse(); }

template Work paper_panels(MatrixView<float>, MatrixView<const float>, Sign, double, const paper::Shape&, const Poll&);
template Work paper_panels(MatrixView<double>, MatrixView<const double>, Sign, double, const paper::Shape&,
                           const Poll&);

template <class T>
std::unique_ptr<stream::Device<T>> stream_device(const stream::Plan&, const double*, const Task&, Timeline*) {
  refuse();
}

template std::unique_ptr<stream::Device<float>> stream_device(const stream::Plan&, const double*, const Task&,
                                                              Timeline*);
template std::unique_ptr<stream::Device<double>> stream_device(const stream::Plan&, const double*, const Task&,
                                                               Timeline*);

using Pointer = std::unique_ptr<DeviceFactor>;
template Pointer upload(const double*, index_t, Uplo, Precision, index_t, const Devices&);
template Pointer upload(const float*, index_t, Uplo, Precision, index_t, const Devices&);
template Pointer factorise(const double*, index_t, Uplo, Precision, const Devices&, index_t&);
template Pointer factorise(const float*, index_t, Uplo, Precision, const Devices&, index_t&);

}  // namespace gpucholmod::cuda
