#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "mpi/transport.h"

namespace gpucholmod::mpi {

/// How the part of one process in an operation of a Team has ended, which it tells all others.
struct End {
  enum class State : std::int32_t { done, left_off, failed };

  State state = State::done;
  index_t pivot = -1;          ///< the failing one that it has come to
  std::optional<Error> error;  ///< where it has failed

  bool ends_all() const { return state != State::done || pivot >= 0; }
};

/// Returns the message that tells an end, and the end that a message tells.
Bytes packed(const End& end);
End unpacked(const Bytes& message);

}  // namespace gpucholmod::mpi
