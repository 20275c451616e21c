#include "mpi_cuda/backend.h"

#include "base/error.h"
#include "cuda/backend.h"

namespace gpucholmod::mpi_cuda {

mpi::MakePanels panels_on_gpus(int, bool) {
  const cuda::Status why = cuda::status(false);
  throw Error(ErrorCode::backend_unavailable, why.built ? "this package was built without MPI" : why.message,
              {{"backend", "cuda"}, {"reason", std::string("not_built")}});
}

}  // namespace gpucholmod::mpi_cuda
