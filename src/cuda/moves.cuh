#pragma once

#include <vector>

#include "cuda/layout.h"
#include "cuda/kernels/reshape.cuh"
#include "cuda/placed.cuh"

namespace gpucholmod::cuda {

/// Queues a copy of the first `count` numbers in ordinary memory, which CUDA has read when this returns.
template <class X>
void send(const std::vector<X>& numbers, index_t count, X* to, cudaStream_t stream) {
  if (count > 0)
    check(cudaMemcpyAsync(to, numbers.data(), sizeof(X) * count, cudaMemcpyHostToDevice, stream), "send numbers");
}

/// Describes which entries of a factor on the device move where, to another factor or within the factor. Needs a
/// Session.
template <class T>
class EntriesToMove {
 public:
  /// Sends the moves to the device: column columns[j] of the old factor becomes column j; a negative number stands for
  /// none. If `rows`, rows move in the same way. In place, columns from `first` on move; if `back`, the last of them
  /// moves first.
  EntriesToMove(Context& context, const Placed<T>& from, const Placed<T>& to, const std::vector<index_t>& columns,
                bool rows, index_t first, bool back)
      : context_(context), from_(from), to_(to), count_(index_t(columns.size())), dplaces_(context.pool(), 2 * count_),
        dcounters_(context.pool(), count_ + 1) {
    std::vector<int> places(2 * count_, -1);
    for (index_t j = 0; j < count_; ++j) {
      places[j] = int(columns[j]);
      if (columns[j] >= 0 && columns[j] < count_) places[count_ + columns[j]] = int(j);
    }
    send(places, 2 * count_, dplaces_.data(), context.stream());
    const bool in_place = from.data == to.data;
    moves_ = {rows ? this->columns() : nullptr,
              this->columns(),
              in_place ? this->columns() + count_ : nullptr,
              dcounters_.data(),
              in_place ? first : 0,
              back};
  }
  const int* columns() const { return dplaces_.data(); }

  /// Queues the move of the entries to their new places.
  void move() const {
    if (to_.layout.n == 0) return;
    check(cudaMemsetAsync(dcounters_.data(), 0, dcounters_.bytes(), context_.stream()), "prepare to move a factor");
    move_entries<<<unsigned(8 * multiprocessors()), gather_threads, 0, context_.stream()>>>(from_.read(), moves_,
                                                                                            to_.R());
    check(cudaGetLastError(), "start to move a factor");
  }

 private:
  Context& context_;
  Placed<T> from_, to_;
  index_t count_;
  PoolBuffer<int> dplaces_, dcounters_;
  Moves moves_;
};

}  // namespace gpucholmod::cuda
