/* Stands in for the header that configure writes. */
#define GPUCHOLMOD_CUDA_CONFIGURED "core tests"
#define GPUCHOLMOD_CUDA_ARCHITECTURES "native"
#define GPUCHOLMOD_CUDA_OLDEST 75
#define GPUCHOLMOD_CUDA_LIBRARIES "/usr/local/cuda/lib64"
