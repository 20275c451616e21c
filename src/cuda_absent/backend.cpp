#include "core/backend.h"

#include "core/error.h"
#include "cuda_build.h"

namespace gpucholmod::cuda {

Status status(bool) {
  Status status;
  status.reason = "not_built";
  status.configured = GPUCHOLMOD_CUDA_CONFIGURED;
  status.message = "this package was built without CUDA; " + status.configured;
  return status;
}

template <class T>
void panel(MatrixView<T>, MatrixView<const T>, const Request&, const Poll&, Outcome&) {
  const Status why = status(false);
  throw Error(ErrorCode::backend_unavailable, why.message, {{"backend", "cuda"}, {"reason", why.reason}});
}

template void panel(MatrixView<float>, MatrixView<const float>, const Request&, const Poll&, Outcome&);
template void panel(MatrixView<double>, MatrixView<const double>, const Request&, const Poll&, Outcome&);

}  // namespace gpucholmod::cuda
