#pragma once

#include "mpi/leader.h"

namespace gpucholmod::mpi_cuda {

/// Returns the leader of process `local_rank` of a machine. The leader is process 0, for which open() works.
mpi::Leader leader_on_gpus(int local_rank);

}  // namespace gpucholmod::mpi_cuda
