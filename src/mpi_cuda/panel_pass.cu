#include "mpi_cuda/panel_pass.h"

namespace gpucholmod::mpi_cuda {

using cuda::check;

template <class T>
void PanelPass<T>::clear_flags(cudaStream_t stream) const {
  const int words = block_columns::PassInts::words(size().panel_strips * block_columns::BLOCKS);
  check(cudaMemsetAsync(this->ints().at, 0, sizeof(int) * words, stream), "clear flags");
}

template <class T>
void PanelPass<T>::begin_panel(int first, int end, index_t rows, int slot, const T* R, T* out, index_t ld,
                               cudaStream_t stream) {
  panel_ = this->placed(first, end, 0, first_message(slot), R, out, ld);
  panel_.scaling.rows = rows;
  turns_ = {{0, 0}};
  this->begin(0, nullptr, 0, stream);
}

template <class T>
const typename PanelPass<T>::Turns& PanelPass<T>::close_panel(cudaStream_t stream) const {
  if (!this->by_steps() && turns_.back().first < panel_.end) {
    auto last = panel_;
    last.first = turns_.back().first;
    this->close(last, -1, stream);
  }
  return turns_;
}

/// Leaves out the scalings of row blocks if there is one turn alone, as no turn then begins with a scaling. The scaling
/// that closes the last turn is stored behind all row blocks.
template <class T>
template <class Copy>
void PanelPass<T>::each_part(const Message& panel, Copy&& copy) const {
  block_columns::with_width(size().columns, [&](auto K) {
    using Parts = block_columns::BlockTransform<decltype(K)::value>;
    const std::size_t word = this->word_bytes(), blocks = std::size_t(panel.strips) * block_columns::BLOCKS;
    char* const at = reinterpret_cast<char*>(this->memory()) +
                     word * std::size_t(size().transforms() + first_message(panel.slot) * Parts::stride);
    copy(at, word * Parts::stride, word * (panel.turns.size() > 1 ? Parts::stride : Parts::words), blocks);
    copy(at + word * blocks * Parts::stride, word * Parts::stride, word * Parts::stride, std::size_t(1));
  });
}

template <class T>
std::size_t PanelPass<T>::message_bytes(const Message& panel) const {
  std::size_t all = 0;
  each_part(panel, [&](char*, std::size_t, std::size_t bytes, std::size_t count) { all += bytes * count; });
  return all;
}

template <class T>
void PanelPass<T>::fetch_message(const Message& panel, char* to, cudaStream_t stream) const {
  each_part(panel, [&](char* from, std::size_t apart, std::size_t bytes, std::size_t count) {
    check(cudaMemcpy2DAsync(to, bytes, from, apart, bytes, count, cudaMemcpyDeviceToHost, stream), "fetch a message");
    to += bytes * count;
  });
}

template <class T>
void PanelPass<T>::put_message(const Message& panel, const char* from, cudaStream_t stream) const {
  each_part(panel, [&](char* to, std::size_t apart, std::size_t bytes, std::size_t count) {
    check(cudaMemcpy2DAsync(to, apart, from, bytes, bytes, count, cudaMemcpyHostToDevice, stream), "send a message");
    from += bytes * count;
  });
}

template <class T>
void PanelPass<T>::follow(const Message& panel, int first, int end, const T* R, T* out, index_t ld,
                          cudaStream_t stream) const {
  if (first >= end) return;
  this->repeat(this->placed(first, end, panel.strips, first_message(panel.slot), R, out, ld), panel.turns, Last::closed,
               stream);
}

template <class T>
void PanelPass<T>::send_V(const double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const {
  this->send(V, ldv, m, rows(), first, stream);
}

template <class T>
void PanelPass<T>::fetch_V(double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const {
  this->fetch(V, ldv, m, rows(), first, stream);
}

template class PanelPass<float>;
template class PanelPass<double>;

}  // namespace gpucholmod::mpi_cuda
