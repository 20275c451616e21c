#pragma once

#include <memory>
#include <vector>

#include "base/types.h"

namespace gpucholmod::mpi {

using Bytes = std::vector<char>;

/// How processes that compute together reach each other: MPI (mpi/world.cpp), or, in tests, threads. Nothing here waits, and nothing is lost
/// between processes that live.
class Transport : NotCopied {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// On its way; the message is kept as long as that takes.
  virtual void send(int to, std::shared_ptr<const Bytes> message) = 0;
  /// A message that has come, from anybody; false where there is none. Two of one sender may come in either order.
  virtual bool receive(int& from, Bytes& message) = 0;
  /// Whether a process is known to be no more.
  virtual bool gone(int process) = 0;
};

}  // namespace gpucholmod::mpi
