#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace gpucholmod {

/// Asks the system for huge pages in memory that is about to be written for the first time. This is advice, so it
/// cannot fail.
///
/// The first touch of fresh memory runs at 2 GB/s a thread in pages of 4 KiB, and at 6 to 13 GB/s in huge pages
/// (measured: log/measurements.md). An R call that returns an n x n matrix waits for just this first touch.
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

/// Makes the system provide the fresh memory [from, to) of [begin, end), without changing its contents; this is advice,
/// too (Linux 5.14 or later). If two threads touch the same huge page at once, the kernel clears two pages and discards
/// one. So each page is provided only by the call whose part ends in the page or spans it.
inline void provide_pages([[maybe_unused]] void* begin, [[maybe_unused]] void* end, [[maybe_unused]] void* from,
                          [[maybe_unused]] void* to) {
#ifdef __linux__
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
  const auto up = [](void* place, std::uintptr_t unit) {
    return (reinterpret_cast<std::uintptr_t>(place) + unit - 1) / unit * unit;
  };
  constexpr std::uintptr_t huge = std::uintptr_t(2) << 20;
  const std::uintptr_t page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = from == begin ? up(begin, page) : up(from, huge);
  const std::uintptr_t last = std::min(up(to, huge), reinterpret_cast<std::uintptr_t>(end) / page * page);
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
#endif
}

}  // namespace gpucholmod
