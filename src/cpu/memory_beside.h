#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/huge_pages.h"
#include "cpu/host_factor.h"

namespace gpucholmod::cpu {

/// Memory that a factor keeps so that downdates in place alternate with it: one reads where the factor is and writes
/// here, so that none has to be tried before it is done, and then the two change places. Only many downdates pay for
/// it, as fresh pages take the system as long as some dozen trials.
class MemoryBeside {
 public:
  /// Downdates of a factor that do without.
  static constexpr int without = 16;
  /// Bytes of a factor that may have it.
  static constexpr double most = 256 << 20;

  /// Returns so many bytes for a downdate of the factor that is at `factor`; null: it has to do without.
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

  /// The factor has moved, from `before` to `now`.
  void moved(const std::shared_ptr<void>& before, const std::shared_ptr<void>& now) {
    memory_ = memory_ && now == memory_ ? before : nullptr;
  }

 private:
  /// Half a page away from the factor, as far as a cache tells addresses apart. It would have all of the columns in the
  /// same few places otherwise, where a column is a whole number of pages.
  static std::shared_ptr<void> allocated(const void* factor, std::size_t bytes, const Allocate& allocate) {
    constexpr std::uintptr_t page = 4096;
    const std::shared_ptr<void> memory = allocate(bytes + page);
    const auto address = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
    const std::uintptr_t offset = (address(factor) + page / 2 - address(memory.get())) % page;
    std::shared_ptr<void> apart(memory, static_cast<char*>(memory.get()) + offset);
    prefer_huge_pages(apart.get(), bytes);
    return apart;
  }

  int downdates_ = 0;  ///< no more than `without`
  std::shared_ptr<void> memory_;
};

}  // namespace gpucholmod::cpu
