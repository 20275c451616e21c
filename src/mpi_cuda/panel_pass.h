#pragma once

#include "cuda/pass.h"

namespace gpucholmod::mpi_cuda {

/// Runs a pass over a factor whose panels are dealt out over processes (mpi/panel_sweep.h). The pass holds V of this
/// process's own columns alone, and begins anew with every panel. There are two slots for the transforms of a panel,
/// each for at most size.panel_strips strips.
template <class T>
class PanelPass : public cuda::Pass<T> {
 public:
  using typename cuda::Pass<T>::Turns;
  /// Describes a panel that is done: its number of strips, the slot that has or will have its transforms, its turns.
  struct Message {
    int strips, slot;
    const Turns& turns;
  };

  PanelPass(cuda::Pool& pool, Launch launch, const block_columns::SegmentSize& size,
            const block_columns::PassColumns& columns, block_columns::Scaling scaling)
      : cuda::Pass<T>(pool, launch, size, columns, scaling) {}

  /// Clears the flags: before all other work of the pass but copies of V.
  void clear_flags(cudaStream_t stream) const;
  /// Begins a panel: strips [first, end) of this process, from the row at which the panel crosses the diagonal. R and
  /// `out` point to that row; `out` may be null. The strips are a factor of their own, with `rows` rows of the whole
  /// factor. start_turn() and the functions that follow it are used as in Pass.
  void begin_panel(int first, int end, index_t rows, int slot, const T* R, T* out, index_t ld, cudaStream_t stream);
  /// Queues what the message of the finished panel still lacks. Returns the turns that the panel took.
  const Turns& close_panel(cudaStream_t stream) const;

  /// Returns the bytes of a message, which has all that other processes need.
  std::size_t message_bytes(const Message& panel) const;
  /// Queues a copy of the message to host memory.
  void fetch_message(const Message& panel, char* to, cudaStream_t stream) const;
  /// Queues a copy of the message from host memory to its slot.
  void put_message(const Message& panel, const char* from, cudaStream_t stream) const;
  /// Queues what a panel does to strips [first, end) on its right. R and `out` point to these strips, in the row behind
  /// the panel's rows.
  void follow(const Message& panel, int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream) const;

  /// Queues a copy of m rows of V, in host memory as prepare() takes V, to the pass's rows from `first` on.
  void send_V(const double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const;
  /// Queues a copy of m of the pass's rows, from `first` on, to V in host memory.
  void fetch_V(double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const;

 private:
  using typename cuda::Pass<T>::Last;
  using cuda::Pass<T>::panel_, cuda::Pass<T>::turns_, cuda::Pass<T>::size, cuda::Pass<T>::rows;

  /// Calls copy(address, distance, bytes, count) for each part of a message: `count` pieces of `bytes` bytes, which are
  /// `distance` bytes apart on the device.
  template <class Copy>
  void each_part(const Message& panel, Copy&& copy) const;
  /// Returns the place at which a slot begins, counted in block transforms.
  index_t first_message(int slot) const { return slot * (index_t(size().panel_strips) * block_columns::BLOCKS + 1); }
};

}  // namespace gpucholmod::mpi_cuda
