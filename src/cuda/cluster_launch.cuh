#pragma once

#include <map>

#include "cuda/engine.h"
#include "cuda/memory.h"
#include "cuda/kernels/segment.cuh"

namespace gpucholmod::cuda {

/// Bytes of shared memory that a block of threads asks for: all there is on the GPUs that have such kernels.
constexpr int segment_shared = 227 * 1024;

/// How a kernel is launched whose blocks of threads wait for each other, in clusters: all of them at once, each with all the
/// shared memory of a multiprocessor. On the current device.
template <auto kernel>
struct ClusterLaunch {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};

  explicit ClusterLaunch(int blocks = block_columns::CLUSTER, cudaStream_t stream = nullptr) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {block_columns::CLUSTER, 1, 1};
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 1;
    config.blockDim = segment_threads;
    config.gridDim = unsigned(blocks);
    config.dynamicSmemBytes = segment_shared;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
  }

  /// Blocks of threads that run at once; 0 where the kernel does not run.
  static int most_blocks() {
    static std::map<int, int> known;
    int device = 0;
    check(cudaGetDevice(&device), "ask for the current device");
    const auto found = known.find(device);
    if (found != known.end()) return found->second;
    return known[device] = ask();
  }

 private:
  static int ask() {
    if (attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) < segment_shared) return 0;
    cudaFuncAttributes of_kernel;
    check(cudaFuncGetAttributes(&of_kernel, kernel), "ask about a kernel");
    if (!GPUCHOLMOD_SEGMENTS(10 * of_kernel.ptxVersion)) return 0;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, segment_shared), "set up a kernel");
    const ClusterLaunch launch;
    int clusters = 0;
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config), "ask about clusters");
    return clusters * block_columns::CLUSTER;
  }
};

constexpr int in_clusters(int blocks) { return (blocks + block_columns::CLUSTER - 1) / block_columns::CLUSTER * block_columns::CLUSTER; }

}  // namespace gpucholmod::cuda
