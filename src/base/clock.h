#pragma once

#include <chrono>

namespace gpucholmod {

/// Measures the seconds since its construction.
class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace gpucholmod
