#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "mpi/factor.h"

/// A factor on the GPUs of several processes of one machine, which process 0 uses as if all of them were its own. So it
/// is modified by one launch on all GPUs (inst/design/several-gpus.md), and no message carries numbers of the factor.
namespace gpucholmod::mpi {

/// The factor that hold_led() is called with, in process 0: R (n x n, upper, or lower if uplo says so), or the factor
/// in the file `path` if the path is not empty.
struct GivenFactor {
  const double* R;
  std::string path;
  index_t n;
  Uplo uplo;
  Precision precision;
};

/// Makes a LedFactor if all processes have GPUs that process 0 can use together; otherwise returns null in every
/// process. An operation of the team. Throws what holding a factor on GPUs throws, and bad_file.
std::unique_ptr<SharedFactor> hold_led(Team& team, const Leader& leader, const GivenFactor& given);

}  // namespace gpucholmod::mpi
