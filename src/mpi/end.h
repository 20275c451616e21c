#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "mpi/transport.h"

namespace gpucholmod::mpi {

/// Describes how the part of one process in an operation of a Team has ended; the process tells all others.
struct End {
  enum class State : std::int32_t { done, left_off, failed };

  State state = State::done;
  index_t pivot = -1;          ///< failing pivot that the process has found, or -1
  bool begun = false;          ///< True if the process has begun to change what the operation changes
  std::optional<Error> error;  ///< error of a process that has failed

  bool ends_all() const { return state != State::done || pivot >= 0; }
};

/// Returns the message that tells `end`.
Bytes packed(const End& end);
/// Returns the End that a message tells.
End unpacked(const Bytes& message);

}  // namespace gpucholmod::mpi
