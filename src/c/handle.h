#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "base/held_factor.h"
#include "c/options.h"

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
    throw HalfModified("the factor is half modified, by a call that failed: it can only be destroyed");
  return *given->held;
}

/// A factor that a call changes: in place, or, if `made` is not null, into *made, if anything changes.
struct Changing {
  HeldFactor& R;
  std::unique_ptr<HeldFactor>* made;
  std::atomic<bool>& begun;  ///< becomes true before R changes
};

/// Returns the code for f(changing, options), which returns a failing pivot, from 0, or -1. `allowed`: options of the
/// function. A call with a progress function computes into a second factor. If f fails after R has begun to change, the
/// factor is half modified from now on.
template <class F>
int change(gpucholmod_factor* given, const gpucholmod_options* options, gpucholmod_status* status, F&& f) noexcept {
  std::atomic<bool> begun{false};
  gpucholmod_status own;
  gpucholmod_status* const told = status ? status : &own;
  std::unique_ptr<HeldFactor> made;
  const int code = guarded(told, [&] {
    HeldFactor& R = factor(given);
    const Options chosen = options_of(options, option::threads | option::progress);
    return f(Changing{R, chosen.progress ? &made : nullptr, begun}, chosen);
  });
  if (code == GPUCHOLMOD_OK && made) given->held = std::move(made);
  if (code == GPUCHOLMOD_OK || !begun) return code;
  given->half_modified = true;
  told->code = GPUCHOLMOD_HALF_MODIFIED;
  constexpr char consequence[] = "the factor is half modified, and can only be destroyed: ";
  constexpr std::size_t before = sizeof consequence - 1, room = sizeof told->message - before - 1;
  std::memmove(told->message + before, told->message, room);
  std::memcpy(told->message, consequence, before);
  told->message[sizeof told->message - 1] = 0;
  return GPUCHOLMOD_HALF_MODIFIED;
}

}  // namespace gpucholmod::c
