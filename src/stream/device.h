#pragma once

#include <functional>
#include <memory>

#include "base/task.h"
#include "stream/plan.h"

namespace gpucholmod::stream {

/// The device's side of the stream method, with the slots and staging buffers of a plan, and the messages and V of its
/// passes. Only one thread may use a device.
///
/// Operations that are queued for the panels of one slot run in that order. Slots are independent of each other, except
/// that a modification reads what the modifications before it have left for it. The destructor waits for all operations
/// under way. Functions throw cuda_failure; making a device throws also backend_unavailable and out_of_memory.
template <class T>
class Device {
 public:
  virtual ~Device() = default;

  virtual T* up(int buffer) = 0;    ///< staging buffers, of chunk_words() scalars each
  virtual T* down(int buffer) = 0;

  /// Queues the copy of up(buffer) to the chunk's place in its slot. The buffer must not be touched until sent() is
  /// true.
  virtual void send(const Chunk& chunk, int buffer) = 0;
  virtual bool sent(int buffer) = 0;
  /// Queues the modification of the panel in place, after the panels before it.
  virtual void modify(int panel) = 0;
  virtual bool modified(int panel) = 0;
  /// Queues the copy of the chunk's place, in a panel that has been modified, to down(buffer).
  virtual void fetch(const Chunk& chunk, int buffer) = 0;
  virtual bool fetched(int buffer) = 0;
  /// Returns the failing pivot of this panel or any panel before it, or -1. The panel must have been modified.
  virtual index_t pivot(int panel) = 0;
  /// Modifies the right-hand sides. All panels must have been modified and fetched.
  virtual void carry(const RightHandSideView& sides) = 0;
  /// Returns whether V is taken in several passes, the second of which begins with the result of the first.
  virtual bool in_passes() const { return false; }
  /// Waits for the device at the end of a run. Adds what is known of the modifications to `work`, and their times to
  /// the timeline, if there is one.
  virtual void report(Work& work) = 0;
};

/// The function that makes the device for a plan and V (n x k, in host memory, scaled as the factor is). If the
/// function is empty, the CPU is the device.
template <class T>
using MakeDevice = std::function<std::unique_ptr<Device<T>>(const Plan&, const double* V, Timeline*)>;

}  // namespace gpucholmod::stream
