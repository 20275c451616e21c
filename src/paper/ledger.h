#pragma once

#include <algorithm>

#include "base/error.h"
#include "cpu/rotation.h"
#include "base/tuning.h"

namespace gpucholmod::paper {

/// Counts the device memory that one call holds, and enforces the most that it may hold. All in bytes.
class Ledger {
 public:
  explicit Ledger(double limit) : limit_(limit) {}

  void reserve(double bytes) {
    if (held_ + bytes > limit_)
      throw out_of_memory("the panel method needs more device memory than 'device_memory' allows", held_ + bytes, limit_);
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  void release(double bytes) { held_ -= bytes; }

  double held() const { return held_; }
  double peak() const { return peak_; }

 private:
  double limit_, held_ = 0, peak_ = 0;
};

/// An entry in a ledger, for as long as it lives.
class Reservation {
 public:
  Reservation(Ledger& ledger, double bytes) : ledger_(ledger), bytes_(bytes) { ledger_.reserve(bytes_); }
  ~Reservation() { ledger_.release(bytes_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  double bytes() const { return bytes_; }

 private:
  Ledger& ledger_;
  double bytes_;
};

/// What the panel method keeps on the device: V, the panels in flight, and the rotations of two row blocks. O(n).
template <class T>
struct Footprint {
  index_t V;          ///< words
  index_t slot;       ///< words of one panel; there are tuning::panel_slots
  index_t rotations;  ///< Rotation<T> of one row block; there are two

  Footprint(index_t n, index_t k, const PanelShape& shape)
      : V(n * k), slot(shape.panel_rows * std::min(shape.width(), n)), rotations(shape.panel_rows * k) {}
  double bytes() const {
    return double(sizeof(T)) * (V + tuning::panel_slots * slot) + double(sizeof(Rotation<T>)) * 2 * rotations;
  }
};

}  // namespace gpucholmod::paper
