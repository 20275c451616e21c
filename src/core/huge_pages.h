#ifndef GPUCHOLMOD_CORE_HUGE_PAGES_H
#define GPUCHOLMOD_CORE_HUGE_PAGES_H

#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace gpucholmod {

/// Asks for huge pages in memory that is about to be written for the first time; advice, so it cannot fail.
///
/// The first touch of fresh memory goes at 2 GB/s a thread in pages of 4 KiB and at 6 to 13 GB/s in huge ones (measured:
/// inst/design/measurements.md), and an R call that returns an n x n matrix waits for just that.
inline void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t worth_it = std::size_t(4) << 20;
  if (bytes < worth_it) return;
  const std::uintptr_t page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace gpucholmod

#endif
