#include "base/error.h"
#include "cuda/backend.h"
#include "mpi/panels.h"

/// Also where there is CUDA, but no MPI: no process has others then.
namespace gpucholmod::cuda {

mpi::MakePanels panels_beside(int) {
  const Status why = status(false);
  throw Error(ErrorCode::backend_unavailable, why.built ? "this package was built without MPI" : why.message,
              {{"backend", "cuda"}, {"reason", std::string("not_built")}});
}

}  // namespace gpucholmod::cuda
