#define GPUCHOLMOD_CUDA_CONFIGURED "on Windows the package is built for the CPU only"
#define GPUCHOLMOD_MPI_CONFIGURED "on Windows the package is built for one process"
