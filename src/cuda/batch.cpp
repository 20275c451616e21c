#include "base/error.h"
#include "cuda/device_batch.h"

namespace gpucholmod::cuda {

/// There is no code for batches on a GPU in this version: said, instead of keeping them elsewhere.
std::unique_ptr<DeviceBatch> upload_batch(const double*, index_t, index_t, Uplo, Precision, int) {
  throw Error(ErrorCode::backend_unavailable, "batches are kept in ordinary memory only: this version has no code for them on a GPU",
              {{"backend", "cuda"}, {"reason", "not_built"}});
}

}  // namespace gpucholmod::cuda
