#define GPUCHOLMOD_CUDA_CONFIGURED "on Windows the package is built for the CPU only"
