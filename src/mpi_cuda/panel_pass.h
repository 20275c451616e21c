#pragma once

#include "cuda/pass.h"

namespace gpucholmod::mpi_cuda {

/// A pass over a factor whose panels several processes have (mpi/panel_sweep.h): its V is that of this process's own
/// columns, and every panel begins anew. Transforms have two slots, for panels of size.panel_strips strips at the most.
template <class T>
class PanelPass : public cuda::Pass<T> {
 public:
  using typename cuda::Pass<T>::Turns;
  /// A panel that is done, of so many strips, which took these turns: its transforms are, or are to be, in a slot.
  struct Message {
    int strips, slot;
    const Turns& turns;
  };

  PanelPass(cuda::Pool& pool, Launch launch, const block_columns::SegmentSize& size,
            const block_columns::PassColumns& columns, block_columns::Scaling scaling)
      : cuda::Pass<T>(pool, launch, size, columns, scaling) {}

  /// Clears the flags: before all else but prepare().
  void clear_flags(cudaStream_t stream) const;
  /// Begins with strips [first, end) of this process, from where the panel crosses the diagonal, in R, to out, which
  /// may be null; they are a factor of their own, with so many rows of the whole one. start_turn() and so on as in
  /// Pass.
  void begin_panel(int first, int end, index_t rows, int slot, const T* R, T* out, index_t ld, cudaStream_t stream);
  /// Queues what the panel's message still lacks, when the panel is done. Returns the turns that it took.
  const Turns& close_panel(cudaStream_t stream) const;

  /// Bytes of a message: what others need.
  std::size_t message_bytes(const Message& panel) const;
  /// Queues a copy of it to host memory, and from there.
  void fetch_message(const Message& panel, char* to, cudaStream_t stream) const;
  void put_message(const Message& panel, const char* from, cudaStream_t stream) const;
  /// Queues what a panel does to strips [first, end) on its right; R and out: there, in the row behind the panel's.
  void follow(const Message& panel, int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream) const;

  /// Queues a copy of m rows of V, from row `first` on, from host memory as prepare() takes it; and to host memory.
  void send_V(const double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const;
  void fetch_V(double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const;

 private:
  using typename cuda::Pass<T>::Last;
  using cuda::Pass<T>::panel_, cuda::Pass<T>::turns_, cuda::Pass<T>::size, cuda::Pass<T>::rows;

  /// Calls copy(on the device, their distance there, bytes, how many) for each part of a message that others need.
  template <class Copy>
  void each_part(const Message& panel, Copy&& copy) const;
  /// Where the messages of a slot begin, counted in messages.
  index_t first_message(int slot) const { return slot * (index_t(size().panel_strips) * block_columns::BLOCKS + 1); }
};

}  // namespace gpucholmod::mpi_cuda
