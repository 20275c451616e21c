#pragma once

#include <atomic>
#include <cstring>
#include <memory>

#include "base/held_factor.h"
#include "c/interface.h"

/// What a handle of the C interface refers to. A call that fails after it has begun to change the factor leaves it half
/// modified.
struct gpucholmod_factor {
  std::unique_ptr<gpucholmod::HeldFactor> held;
  bool half_modified = false;
};

namespace gpucholmod::c {

/// Returns the factor of a handle. Throws bad_argument and HalfModified.
inline HeldFactor& factor(const gpucholmod_factor* given) {
  require(given != nullptr, "factor", "is missing");
  if (given->half_modified)
    throw HalfModified("the factor is half modified, by a call that failed: it can only be released");
  return *given->held;
}

/// Returns the code for f(factor, begun), which changes the factor, sets `begun` before, and returns a failing pivot,
/// from 0, or -1. Where f fails behind that, the factor is half modified from now on.
template <class F>
int change(gpucholmod_factor* given, gpucholmod_status* status, F&& f) noexcept {
  std::atomic<bool> begun{false};
  gpucholmod_status own;
  gpucholmod_status* const told = status ? status : &own;
  const int code = guarded(told, [&] { return f(factor(given), begun); });
  if (code == GPUCHOLMOD_OK || !begun) return code;
  given->half_modified = true;
  told->code = GPUCHOLMOD_HALF_MODIFIED;
  constexpr char consequence[] = "the factor is half modified, and can only be released: ";
  constexpr std::size_t before = sizeof consequence - 1, room = sizeof told->message - before - 1;
  std::memmove(told->message + before, told->message, room);
  std::memcpy(told->message, consequence, before);
  told->message[sizeof told->message - 1] = 0;
  return GPUCHOLMOD_HALF_MODIFIED;
}

}  // namespace gpucholmod::c
