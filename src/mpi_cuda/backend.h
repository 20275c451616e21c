#pragma once

#include "mpi/panels.h"

/// A factor whose panels lie on the GPUs of several processes. src/mpi_cuda/ implements it; src/mpi_cuda_absent/ has
/// the same symbol for a build without CUDA or without MPI.
namespace gpucholmod::mpi_cuda {

/// Makes panels on a GPU for the columns of a process: process `local_rank` of a machine takes that of its usable GPUs,
/// and begins with the first again where there are too few. Throws what they throw: backend_unavailable,
/// out_of_memory, cuda_failure.
mpi::MakePanels panels_on_gpus(int local_rank);

}  // namespace gpucholmod::mpi_cuda
