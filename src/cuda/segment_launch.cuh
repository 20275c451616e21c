#pragma once

#include <algorithm>
#include <map>
#include <mutex>

#include "cuda/pass.h"
#include "cuda/memory.h"
#include "cuda/kernels/segment.cuh"

namespace gpucholmod::cuda {

/// Launches a kernel whose thread blocks wait for each other, in clusters if the card has clusters: all thread blocks
/// run at once, each on a multiprocessor of its own, with all the shared memory that the card gives. Runs on the
/// current device.
template <auto kernel>
class SegmentLaunch {
 public:
  SegmentLaunch(int blocks, cudaStream_t stream) {
    const Code code = SegmentLaunch::code();
    with_card(code.architecture, [&](auto card) { set<decltype(card)>(blocks, stream); });
  }
  template <class... Parameters>
  void start(const char* what, const Parameters&... parameters) const {
    check(cudaLaunchKernelEx(&config_, kernel, parameters...), what);
  }

  /// Returns f(card), where the card is that of the code which the current device has loaded.
  template <class F>
  static auto with_its_card(F&& f) { return with_card(code().architecture, std::forward<F>(f)); }
  /// Returns f(card, number of thread blocks that run at once); false if the kernel does not run.
  template <class F>
  static bool if_it_runs(F&& f) {
    const Code code = SegmentLaunch::code();
    return code.most_blocks > 0 &&
           with_card(code.architecture, [&](auto card) { return bool(f(card, code.most_blocks)); });
  }

 private:
  /// Describes the code of the kernel that the device has loaded.
  struct Code {
    int architecture = 0;  ///< target that the code was compiled for, as in __CUDA_ARCH__
    int most_blocks = 0;   ///< thread blocks that run at once; 0: no kernel, or too little shared memory
  };

  static Code code() {
    static std::map<int, Code> known;
    static std::mutex mutex;
    const int device = current_device();
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find(device);
    return found != known.end() ? found->second : known[device] = ask();
  }

  static Code ask() {
    Code code;
    cudaFuncAttributes of_kernel;
    check(cudaFuncGetAttributes(&of_kernel, kernel), "ask about a kernel");
    code.architecture = 10 * of_kernel.ptxVersion;
    if (GPUCHOLMOD_SEGMENTS(code.architecture))
      with_card(code.architecture, [&](auto card) { code.most_blocks = most_blocks<decltype(card)>(); });
    return code;
  }

  template <class Card>
  static int most_blocks() {
    if (attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) < Card::shared) return 0;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Card::shared), "set up a kernel");
    int count = 0;
    if constexpr (Card::clusters) {
      SegmentLaunch launch;
      launch.template set<Card>(Card::cluster, nullptr);
      check(cudaOccupancyMaxActiveClusters(&count, kernel, &launch.config_), "ask about clusters");
      return count * Card::cluster;
    } else {
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, segment_threads, Card::shared),
            "ask about blocks of threads");
      return std::min(count, 1) * multiprocessors();
    }
  }

  SegmentLaunch() = default;
  template <class Card>
  void set(int blocks, cudaStream_t stream) {
    attributes_[0].id = cudaLaunchAttributeCooperative;
    attributes_[0].val.cooperative = 1;
    attributes_[1].id = cudaLaunchAttributeClusterDimension;
    attributes_[1].val.clusterDim = {Card::cluster, 1, 1};
    config_.blockDim = segment_threads;
    config_.gridDim = unsigned(blocks);
    config_.dynamicSmemBytes = Card::shared;
    config_.stream = stream;
    config_.attrs = attributes_;
    config_.numAttrs = Card::clusters ? 2 : 1;
  }

  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t config_ = {};
};

/// Returns `blocks`, a number of thread blocks, rounded up to a whole number of clusters.
template <class Card>
constexpr int in_clusters(int blocks) {
  return Card::clusters ? (blocks + Card::cluster - 1) / Card::cluster * Card::cluster : blocks;
}

}  // namespace gpucholmod::cuda
