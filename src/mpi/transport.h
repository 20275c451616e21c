#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gpucholmod::mpi {

/// Provides memory that is not ordinary memory, for messages that a GPU reads and writes. Any thread may call it.
class MessageMemory {
 public:
  virtual ~MessageMemory() = default;
  virtual void* take(std::size_t bytes) = 0;
  virtual void give_back(void* data, std::size_t bytes) = 0;
};

/// Allocates a vector in `memory` or, if `memory` is null, in ordinary memory, and leaves new elements uninitialised.
template <class X>
struct MessageAllocator {
  using value_type = X;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  MessageAllocator(MessageMemory* where = nullptr) : memory(where) {}
  template <class U>
  MessageAllocator(const MessageAllocator<U>& other) : memory(other.memory) {}
  X* allocate(std::size_t n) {
    return static_cast<X*>(memory ? memory->take(sizeof(X) * n) : ::operator new(sizeof(X) * n));
  }
  void deallocate(X* p, std::size_t n) {
    if (memory) memory->give_back(p, sizeof(X) * n);
    else ::operator delete(p);
  }
  template <class U, class... Values>
  void construct(U* p, Values&&... values) {
    if constexpr (sizeof...(values) == 0) ::new (static_cast<void*>(p)) U;
    else ::new (static_cast<void*>(p)) U(std::forward<Values>(values)...);
  }
  template <class U>
  bool operator==(const MessageAllocator<U>& other) const { return memory == other.memory; }
  template <class U>
  bool operator!=(const MessageAllocator<U>& other) const { return memory != other.memory; }

  MessageMemory* memory;
};
using Bytes = std::vector<char, MessageAllocator<char>>;

/// The room for the trailer that a Team appends to a message, bytes.
constexpr std::size_t trailer_bytes = 32;

/// Returns an empty message with room for `bytes` bytes and a trailer.
inline Bytes room_for(std::size_t bytes, MessageMemory* memory = nullptr) {
  Bytes made(memory);
  made.reserve(bytes + trailer_bytes);
  return made;
}
inline void append(Bytes& to, const void* data, std::size_t bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes);
  if (bytes > 0) std::memcpy(to.data() + before, data, bytes);
}
/// Returns the X that a message begins with.
template <class X>
X first_of(const Bytes& message) {
  X x;
  std::memcpy(&x, message.data(), sizeof x);
  return x;
}

/// Carries messages between processes that compute together: by MPI (mpi/world.cpp) or, in tests, between threads. No
/// function waits, and no message between two live processes is lost.
class Transport : NotCopied {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Starts to send the message, and keeps the message until it is sent.
  virtual void send(int to, std::shared_ptr<const Bytes> message) = 0;
  /// Receives a message that has arrived, from any process, or returns false if there is none. Two messages of one
  /// sender may arrive in either order.
  virtual bool receive(int& from, Bytes& message) = 0;
  /// Returns whether a process is known to exist no longer.
  virtual bool gone(int process) = 0;

  /// Receives long messages in `memory` from now on; null: in ordinary memory.
  void receive_into(MessageMemory* memory) { memory_ = memory; }

 protected:
  static constexpr std::size_t is_long = 16 << 10;
  MessageMemory* memory_for(std::size_t bytes) const { return bytes < is_long ? nullptr : memory_; }

 private:
  MessageMemory* memory_ = nullptr;
};

}  // namespace gpucholmod::mpi
