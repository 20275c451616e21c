#include "cuda/spread.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gpucholmod::cuda {
namespace {

/// Returns a function of the driver. The driver is not linked, as a machine without a GPU has none.
template <class F>
F* from_driver(const char* name) {
  void* address = nullptr;
  bool found = false;
#if CUDART_VERSION >= 12000
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &address, 11000, cudaEnableDefault, &result),
        "look for a function of the driver");
#else
  check(cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &result), "look for a function of the driver");
#endif
  found = result == cudaDriverEntryPointSuccess;
#endif
  if (address && found) return reinterpret_cast<F*>(address);
  throw Error(ErrorCode::backend_unavailable, std::string("the NVIDIA driver has no function ") + name,
              {{"backend", "cuda"}, {"reason", std::string("no_virtual_memory")}});
}

struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity =
      from_driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve = from_driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) give_back = from_driver<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = from_driver<decltype(cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = from_driver<decltype(cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = from_driver<decltype(cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = from_driver<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = from_driver<decltype(cuMemSetAccess)>("cuMemSetAccess");

  static const Driver& functions() {
    static const Driver driver;
    return driver;
  }
};

void check_driver(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  throw Error(ErrorCode::cuda_failure,
              std::string("CUDA failed to ") + what + ": error " + std::to_string(int(result)) + " of the driver",
              {{"cuda_error", std::to_string(int(result))}, {"operation", std::string(what)}});
}

double free_on(int device) {
  std::size_t free = 0, total = 0;
  const CurrentDevice current(device);
  check(cudaMemGetInfo(&free, &total), "ask for free memory");
  return double(free);
}
Error full(int device, double needed) {
  const CurrentDevice current(device);
  return out_of_device_memory("GPU " + std::to_string(device), needed);
}

CUmemAllocationProp memory_of(int device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

void require_peers(const std::vector<int>& devices) {
  for (const int device : devices) {
    int maps = 0, pools = 0;
    check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device), "ask about memory pools");
    check(
        cudaDeviceGetAttribute(&maps, cudaDeviceAttr(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), device),
        "ask about a device");
    if (!maps || !pools)
      throw Error(ErrorCode::backend_unavailable,
                  "memory of GPU " + std::to_string(device) + " cannot be mapped, so it cannot share a factor",
                  {{"backend", "cuda"}, {"reason", std::string("no_virtual_memory")}, {"device", double(device)}});
    for (const int peer : devices) {
      if (peer == device) continue;
      int access = 0, counts = 0;
      check(cudaDeviceCanAccessPeer(&access, device, peer), "ask about peer access");
      if (access)
        check(cudaDeviceGetP2PAttribute(&counts, cudaDevP2PAttrNativeAtomicSupported, device, peer),
              "ask about peer access");
      if (access && counts) continue;
      const char* const lacks = access ? " cannot count in the memory of GPU " : " has no access to the memory of GPU ";
      throw Error(ErrorCode::backend_unavailable,
                  "GPU " + std::to_string(device) + lacks + std::to_string(peer) + ", so they cannot share a factor",
                  {{"backend", "cuda"},
                   {"reason", std::string("no_peer_access")},
                   {"device", double(device)},
                   {"peer", double(peer)}});
    }
  }
}

SpreadMemory::SpreadMemory(std::vector<int> devices, cudaStream_t stream)
    : devices_(std::move(devices)), stream_(stream) {
  for (const int device : devices_) {
    std::size_t page = 0;
    const CUmemAllocationProp properties = memory_of(device);
    check_driver(Driver::functions().granularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                 "ask for the size of a page");
    page_ = std::max(page_, page);
  }
}

void* SpreadMemory::allocate(std::size_t bytes, std::size_t piece) {
  const auto alike = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) {
    return kept.second.bytes == bytes && kept.second.piece == piece;
  });
  if (alike != kept_.end()) {
    const auto node = kept_.extract(alike);
    in_use_[node.key()] = node.mapped();
    return const_cast<void*>(node.key());
  }
  Block block{bytes, piece, (bytes + page_ - 1) / page_ * page_, std::vector<double>(devices_.size())};
  void* data = nullptr;
  try {
    data = map(block);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    trim(0);
    if (fallback_) fallback_->trim(0);
    block.on.assign(devices_.size(), 0);
    data = map(block);
  }
  in_use_[data] = block;
  return data;
}

/// Checks all GPUs before anything is mapped: a failure in the middle, and unmapping, would take long.
void SpreadMemory::require_free(const std::vector<double>& bytes) const {
  std::map<int, double> of;  // a GPU may be listed several times
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) of[devices_[rank]] += bytes[rank];
  for (const auto& [device, needed] : of)
    if (needed > free_on(device)) throw full(device, needed);
}

void* SpreadMemory::map(Block& block) const {
  const Driver& driver = Driver::functions();
  CUdeviceptr at = 0;
  check_driver(driver.reserve(&at, block.size, 0, 0, 0), "reserve addresses");
  void* const data = reinterpret_cast<void*>(at);
  const auto rank_of = [&](std::size_t page) { return (page * page_ + page_ / 2) / block.piece % devices_.size(); };
  std::size_t mapped = 0;
  try {
    for (std::size_t first = 0; first < block.size; first += page_) block.on[rank_of(first / page_)] += double(page_);
    require_free(block.on);
    while (mapped < block.size) {
      const std::size_t rank = rank_of(mapped / page_);
      std::size_t end = mapped + page_;
      while (end < block.size && rank_of(end / page_) == rank) end += page_;
      const CUmemAllocationProp properties = memory_of(devices_[rank]);
      CUmemGenericAllocationHandle handle = 0;
      const CUresult made = driver.create(&handle, end - mapped, &properties, 0);
      if (made == CUDA_ERROR_OUT_OF_MEMORY) throw full(devices_[rank], double(end - mapped));
      check_driver(made, "allocate device memory");
      const CUresult placed = driver.map(at + mapped, end - mapped, 0, handle, 0);
      driver.release(handle);  // the memory stays as long as it is mapped
      check_driver(placed, "map device memory");
      mapped = end;
    }
    std::vector<CUmemAccessDesc> access;
    for (const int device : std::set<int>(devices_.begin(), devices_.end()))
      access.push_back({memory_of(device).location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    check_driver(driver.set_access(at, block.size, access.data(), access.size()), "give GPUs access to memory");
  } catch (...) {
    unmap(data, block.size, mapped);
    throw;
  }
  return data;
}

void SpreadMemory::unmap(void* data, std::size_t reserved, std::size_t mapped) const noexcept {
  const Driver& driver = Driver::functions();
  const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(data);
  if (mapped > 0) driver.unmap(at, mapped);
  driver.give_back(at, reserved);
}

void SpreadMemory::free(void* data, std::size_t) noexcept {
  auto node = in_use_.extract(data);
  kept_.insert(std::move(node));
  const std::size_t most = 2 * sum(in_use_);
  if (sum(kept_) > most) trim(most);
  if (in_use_.empty() && fallback_) fallback_->trim(0);
}

void SpreadMemory::trim(std::size_t bytes) noexcept {
  cudaStreamSynchronize(stream_);
  while (!kept_.empty() && sum(kept_) > bytes) {
    const auto& [data, block] = *kept_.begin();
    unmap(const_cast<void*>(data), block.size, block.size);
    kept_.erase(kept_.begin());
  }
}

std::size_t SpreadMemory::sum(const std::map<const void*, Block>& blocks) {
  std::size_t bytes = 0;
  for (const auto& [data, block] : blocks) bytes += block.size;
  return bytes;
}

}  // namespace gpucholmod::cuda
