# An image with R, OpenBLAS and gpucholmod, for the CPU or for GPUs:
#
#   docker build -t gpucholmod .
#   docker build -t gpucholmod-cuda --build-arg BASE=nvidia/cuda:12.8.1-devel-ubuntu24.04 .
#
# With a base that has nvcc, configure builds the package with CUDA. ARCH names the GPUs to compile for, such as 80,90;
# without it the package is compiled for all that it knows.
ARG BASE=debian:12
FROM ${BASE}
ARG ARCH=
ENV DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
RUN apt-get update && \
    apt-get install -y --no-install-recommends r-base-dev libopenblas0-pthread r-cran-rcpp \
      r-cran-rcppeigen r-cran-matrix && \
    rm -rf /var/lib/apt/lists/*
COPY . /tmp/gpucholmod
RUN GPUCHOLMOD_CUDA_ARCH="${ARCH}" MAKEFLAGS="-j$(nproc)" R CMD INSTALL --strip /tmp/gpucholmod && \
    rm -rf /tmp/gpucholmod && \
    Rscript -e 'gpucholmod::gpu_info()'
CMD ["R"]
