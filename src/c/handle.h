#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/held_batch.h"
#include "base/held_factor.h"
#include "c/callers_memory.h"

namespace gpucholmod::c {

/// Holds the HeldFactor or HeldBatch that a handle of the C interface refers to. If a call fails after it has begun to
/// change the object, the object is half modified.
template <class Held>
struct Handle {
  std::unique_ptr<Held> held;
  bool half_modified = false;
};

}  // namespace gpucholmod::c

struct gpucholmod_factor : gpucholmod::c::Handle<gpucholmod::HeldFactor> {};
struct gpucholmod_batch : gpucholmod::c::Handle<gpucholmod::HeldBatch> {};

namespace gpucholmod::c {

/// Returns the factor or batch of a handle. Throws bad_argument if there is none, and HalfModified.
template <class Held>
Held& held_by(const char* argument, const Handle<Held>* given) {
  require(given != nullptr, argument, "is missing");
  if (given->half_modified)
    throw HalfModified(std::string("the ") + argument +
                       " is half modified, by a call that failed: it can only be destroyed");
  return *given->held;
}
inline HeldFactor& factor(const gpucholmod_factor* given) { return held_by<HeldFactor>("factor", given); }
inline const HeldBatch& batch(const gpucholmod_batch* given) { return held_by<HeldBatch>("batch", given); }

/// Describes a factor or batch R that a call changes: in place, or, if `made` is not null, by storing a new one in
/// *made if anything changes.
template <class Held>
struct ChangingOf {
  Held& R;
  std::unique_ptr<Held>* made;
  std::atomic<bool>& begun;  ///< True if R has begun to change; becomes true before R changes
};
using Changing = ChangingOf<HeldFactor>;

/// The options of calls that change a factor or a batch with memory of its own.
constexpr unsigned changes_held = option::threads | option::progress | option::stream;

/// Calls f(changing, options), which returns a failing pivot, counted from 0, or -1. Returns the code. A call with a
/// progress function computes into a second factor or batch. The second one replaces the first if the call succeeds,
/// and also if some members of a batch fail but the second batch was made. If f fails after R has begun to change, R is
/// half modified from then on.
template <class Held, class F>
int change(const char* argument, Handle<Held>* given, const gpucholmod_options* options, gpucholmod_status* status,
           F&& f) noexcept {
  std::atomic<bool> begun{false};
  gpucholmod_status own;
  gpucholmod_status* const told = status ? status : &own;
  std::unique_ptr<Held> made;
  const int code = guarded(told, [&] {
    Held& R = held_by(argument, given);
    Options chosen = options_of(options, changes_held);
    chosen.device = device_of(R);
    return f(ChangingOf<Held>{R, chosen.progress ? &made : nullptr, begun}, chosen);
  });
  if (made && (code == GPUCHOLMOD_OK || code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE)) given->held = std::move(made);
  if (code == GPUCHOLMOD_OK || !begun) return code;
  given->half_modified = true;
  told->code = GPUCHOLMOD_HALF_MODIFIED;
  constexpr char consequence[] = "what was changed is half modified, and can only be destroyed: ";
  constexpr std::size_t before = sizeof consequence - 1, room = sizeof told->message - before - 1;
  std::memmove(told->message + before, told->message, room);
  std::memcpy(told->message, consequence, before);
  told->message[sizeof told->message - 1] = 0;
  return GPUCHOLMOD_HALF_MODIFIED;
}

/// Stores a new handle of the object that f() returns in *made. Returns the code.
template <class Made, class F>
int make(Made** made, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    require(made != nullptr, "made", "is missing");
    *made = new Made{{renaming("device", "options->device", f)}};
    return index_t(-1);
  });
}

}  // namespace gpucholmod::c
