#include "mpi/backend.h"

#include "base/error.h"
#include "cuda_build.h"

namespace gpucholmod::mpi {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::backend_unavailable, "this package was built without MPI; " + configured(),
              {{"backend", "mpi"}, {"reason", "not_built"}});
}

}  // namespace

bool built() { return false; }
std::string configured() { return GPUCHOLMOD_MPI_CONFIGURED; }
Place start(const std::function<void()>&, double) { refuse(); }
void begin_call() { refuse(); }
void refuse(const std::string&) { refuse(); }
Bytes agree(std::string_view, const std::string&, std::optional<std::string_view>) { refuse(); }
std::unique_ptr<SharedFactor> deal_out(const double*, index_t, Uplo, Precision, const cpu::Allocate&,
                                       const MakePanels&) {
  refuse();
}
std::unique_ptr<SharedFactor> read_out(const std::string&, index_t, Precision, const cpu::Allocate&,
                                       const MakePanels&) {
  refuse();
}
void write(const HeldFactor&, const std::string&, bool) { refuse(); }
void leave() {}

}  // namespace gpucholmod::mpi
