#include "cuda/backend.h"

#include "cuda/device_factor.h"
#include "base/error.h"
#include "cuda_build.h"

namespace gpucholmod::cuda {
namespace {

[[noreturn]] void refuse() {
  const Status why = status(false);
  throw Error(ErrorCode::backend_unavailable, why.message, {{"backend", "cuda"}, {"reason", why.reason}});
}

}  // namespace

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

template <class T>
void panel(MatrixView<T>, MatrixView<const T>, const Request&, const Poll&, Outcome&) {
  refuse();
}

template <class S>
std::unique_ptr<DeviceFactor> upload(const S*, index_t, Uplo, Precision, int) {
  refuse();
}

template <class S>
std::unique_ptr<DeviceFactor> factorise(const S*, index_t, Uplo, Precision, int, index_t&) {
  refuse();
}

template void panel(MatrixView<float>, MatrixView<const float>, const Request&, const Poll&, Outcome&);
template void panel(MatrixView<double>, MatrixView<const double>, const Request&, const Poll&, Outcome&);

template <class T>
std::unique_ptr<stream::Device<T>> stream_device(const stream::Plan&, const double*, Sign, Timeline*, Outcome&) {
  refuse();
}

template std::unique_ptr<stream::Device<float>> stream_device(const stream::Plan&, const double*, Sign, Timeline*, Outcome&);
template std::unique_ptr<stream::Device<double>> stream_device(const stream::Plan&, const double*, Sign, Timeline*, Outcome&);

using Pointer = std::unique_ptr<DeviceFactor>;
template Pointer upload(const double*, index_t, Uplo, Precision, int);
template Pointer upload(const float*, index_t, Uplo, Precision, int);
template Pointer factorise(const double*, index_t, Uplo, Precision, int, index_t&);
template Pointer factorise(const float*, index_t, Uplo, Precision, int, index_t&);

}  // namespace gpucholmod::cuda
