#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gpucholmod::mpi {

/// Memory of another kind than ordinary, for messages that a GPU reads and writes. For any thread.
class MessageMemory {
 public:
  virtual ~MessageMemory() = default;
  virtual void* take(std::size_t bytes) = 0;
  virtual void give_back(void* data, std::size_t bytes) = 0;
};

/// Has a vector in `memory`, if that is not null, and leaves new bytes as they are.
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

/// What a Team adds to a message at its end.
constexpr std::size_t trailer_bytes = 32;

/// Room for a message and its trailer.
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
/// Returns what a message begins with.
template <class X>
X first_of(const Bytes& message) {
  X x;
  std::memcpy(&x, message.data(), sizeof x);
  return x;
}

/// How processes that compute together reach each other: MPI (mpi/world.cpp), or, in tests, threads. Nothing here
/// waits, and nothing is lost between processes that live.
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

  /// Long messages come into this memory from now on; null: into ordinary.
  void receive_into(MessageMemory* memory) { memory_ = memory; }

 protected:
  static constexpr std::size_t is_long = 16 << 10;
  MessageMemory* memory_for(std::size_t bytes) const { return bytes < is_long ? nullptr : memory_; }

 private:
  MessageMemory* memory_ = nullptr;
};

}  // namespace gpucholmod::mpi
