#ifndef GPUCHOLMOD_PANEL_LEDGER_H
#define GPUCHOLMOD_PANEL_LEDGER_H

#include <algorithm>

#include "core/error.h"

namespace gpucholmod::panel {

/// Counts the device memory that one call holds, and enforces the most that it may hold. All in bytes.
class Ledger {
 public:
  explicit Ledger(double limit) : limit_(limit) {}

  void reserve(double bytes) {
    if (held_ + bytes > limit_)
      throw Error(ErrorCode::out_of_memory, "the panel method needs more device memory than 'device_memory' allows",
                  {{"needed", held_ + bytes}, {"available", limit_}});
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  void release(double bytes) { held_ -= bytes; }

  double held() const { return held_; }
  double peak() const { return peak_; }

 private:
  double limit_, held_ = 0, peak_ = 0;
};

}  // namespace gpucholmod::panel

#endif
