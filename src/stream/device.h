#pragma once

#include <functional>
#include <memory>

#include "base/task.h"
#include "stream/plan.h"

namespace gpucholmod::stream {

/// The device's side of the stream method, with the slots, staging buffers and shared memory of a plan. For one thread.
///
/// What is queued for the panels of one slot happens in that order; slots are independent, but for modifications,
/// each of which has what the ones before it leave for it. The destructor waits for everything under way.
/// Throws cuda_failure; making one also backend_unavailable, out_of_memory.
template <class T>
class Device {
 public:
  virtual ~Device() = default;

  virtual T* up(int buffer) = 0;    ///< staging buffers, of chunk_words() each
  virtual T* down(int buffer) = 0;

  /// Queues: the chunk's place in its slot <- up(buffer), which is not to be touched until sent().
  virtual void send(const Chunk& chunk, int buffer) = 0;
  virtual bool sent(int buffer) = 0;
  /// The panel is to be modified in place, after those before it.
  virtual void modify(int panel) = 0;
  virtual bool modified(int panel) = 0;
  /// Queues: down(buffer) <- the chunk's place, of a panel that has been modified.
  virtual void fetch(const Chunk& chunk, int buffer) = 0;
  virtual bool fetched(int buffer) = 0;
  /// The failing pivot, or -1, once the panel has been modified: in it, or in any panel so far.
  virtual index_t pivot(int panel) = 0;
  /// When all panels have been modified and fetched: the right-hand sides.
  virtual void carry(const RightHandSideView& sides) = 0;
  /// Whether V goes in passes, the second of which begins with what the first has left.
  virtual bool in_passes() const { return false; }
  /// When the run is over: waits, and adds what is known of the modifications to `work`, and when they were to the
  /// timeline, if there is one.
  virtual void report(Work& work) = 0;
};

/// The device for a plan and V (n x k, in host memory, scaled as the factor is); none: the CPU is the device.
template <class T>
using MakeDevice = std::function<std::unique_ptr<Device<T>>(const Plan&, const double* V, Timeline*)>;

}  // namespace gpucholmod::stream
