#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/huge_pages.h"
#include "cpu/host_factor.h"

namespace gpucholmod::cpu {

/// Holds a second memory of a factor for downdates in place: a downdate reads the factor, writes the result to the
/// second memory, and then the two memories change places. So a downdate needs no dry run. Only many downdates pay for
/// the second memory, as fresh pages take the system as long as some dozen dry runs.
class MemoryBeside {
 public:
  /// The number of downdates of a factor before a second memory is allocated.
  static constexpr int without = 16;
  /// The largest factor, in bytes, that gets a second memory.
  static constexpr double most = 256 << 20;

  /// Returns `bytes` of memory for a downdate of the factor at address `factor`, or null: a dry run is needed then.
  std::shared_ptr<void> find(const void* factor, std::size_t bytes, const Allocate& allocate) {
    if (downdates_ < without) {
      ++downdates_;
      return nullptr;
    }
    try {
      if (!memory_ && double(bytes) <= most) memory_ = allocated(factor, bytes, allocate);
    } catch (const std::bad_alloc&) {
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
    }
    return memory_;
  }

  /// Records that the factor has moved from `before` to `now`: keeps `before` if `now` was the second memory.
  void moved(const std::shared_ptr<void>& before, const std::shared_ptr<void>& now) {
    memory_ = memory_ && now == memory_ ? before : nullptr;
  }

 private:
  /// Allocates memory whose address differs from the factor's by half a page, modulo a page. Otherwise, if a column is
  /// a whole number of pages, the columns of both memories would map to the same few sets of the cache.
  static std::shared_ptr<void> allocated(const void* factor, std::size_t bytes, const Allocate& allocate) {
    constexpr std::uintptr_t page = 4096;
    const std::shared_ptr<void> memory = allocate(bytes + page);
    const auto address = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
    const std::uintptr_t offset = (address(factor) + page / 2 - address(memory.get())) % page;
    std::shared_ptr<void> apart(memory, static_cast<char*>(memory.get()) + offset);
    prefer_huge_pages(apart.get(), bytes);
    return apart;
  }

  int downdates_ = 0;  ///< number of downdates so far, counted up to `without`
  std::shared_ptr<void> memory_;
};

}  // namespace gpucholmod::cpu
