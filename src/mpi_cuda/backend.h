#pragma once

#include "mpi/panels.h"

/// Panels of a factor on the GPUs of several processes. src/mpi_cuda/ implements panels_on_gpus(); src/mpi_cuda_absent/
/// has the same symbol for a build without CUDA or without MPI.
namespace gpucholmod::mpi_cuda {

/// Returns a maker of panels on a GPU for the columns of a process. Process `local_rank` of a machine takes the usable
/// GPU of that number, counted from the first GPU again if there are too few. The maker throws backend_unavailable,
/// out_of_memory, cuda_failure. If `led` is true, process 0 holds the factor on the GPUs of all where it can.
mpi::MakePanels panels_on_gpus(int local_rank, bool led);

}  // namespace gpucholmod::mpi_cuda
