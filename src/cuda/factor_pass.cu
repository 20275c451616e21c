#include "cuda/factor_pass.h"

#include <algorithm>

namespace gpucholmod::cuda {
namespace {

/// The most turns that are queued before it is known whether they are needed. A turn that is not needed costs its
/// launches.
constexpr int most_expected = 4;

}  // namespace

template <class T>
void FactorPass<T>::place_panel(int first, int end, const T* R, T* out, index_t ld) {
  const index_t above = index_t(first) * block_columns::STRIP;
  panel_ = this->placed(first, end, first, 0, R + above, out ? out + above : nullptr, ld);
  if (apart_) {
    const index_t last = index_t(end - 1) * block_columns::STRIP;
    panel_.diagonal = apart_->diagonal;
    panel_.first_beside = apart_->first_beside;
    if (apart_->last) {
      panel_.last_columns = apart_->last - last * ld;
      panel_.last_columns_out = apart_->last_out - last * ld;
      panel_.first_of_last = int(last / block_columns::GROUP);
    }
  }
  if (!z_) return;
  panel_.end -= size().side_strips * block_columns::BLOCKS;
  panel_.set_sides(z_);
}

template <class T>
void FactorPass<T>::take_sides(const SidesOnTheWay<T>& sides, bool first, cudaStream_t stream) {
  z_ = sides.dz.data;
  Pass<T>::take_sides(sides, first_side(), first, stream);
}

template <class T>
void FactorPass<T>::give_sides(const SidesOnTheWay<T>& sides, bool last, cudaStream_t stream) const {
  Pass<T>::give_sides(sides, first_side(), last, stream);
}

template <class T>
void FactorPass<T>::begin_panel(int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream,
                                const FactorPass* before, int turns) {
  place_panel(first, end, R, out, ld);
  this->begin(turns_.back().first + panel_.top, before, turns - 1, stream);
  this->repeat(panel_, turns_, Last::open, stream);
}

template <class T>
block_columns::PassOutcome FactorPass<T>::run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                              const std::function<void()>& wait, cudaStream_t stream) {
  begin_panel(0, size().strips, R, out, ld, stream);
  const int expected = this->by_steps() ? 1 : turns;
  for (int turn = 0;; ++turn) {
    this->start_turn(turn, stream);
    if (z_) this->close(panel_, turn, stream);
    if (turn + 1 < expected) continue;
    end.record(stream);
    this->fetch_outcome(staging, stream);
    wait();
    const auto done = this->outcome(staging, turn);
    if (!done) continue;
    if (!this->by_steps()) turns = std::min(done->turns, most_expected);
    return *done;
  }
}

template <class T>
block_columns::PassEnd FactorPass<T>::queue(const T* R, T* out, index_t ld, int turns, const FactorPass* before,
                                            cudaStream_t stream) {
  begin_panel(0, size().strips, R, out, ld, stream, before, turns);
  for (int turn = 0; turn < turns; ++turn) this->start_turn(turn, stream);
  return {this->ints(), turns - 1, panel_.blocks};
}

/// Puts Y into the place of V, of which nothing is left.
template <class T>
void FactorPass<T>::carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m,
                          cudaStream_t stream) {
  constexpr index_t STRIP = block_columns::STRIP;
  place_panel(size().strips, size().strips + 1, z, z, ld);
  panel_.V = panel_.left_V = this->memory();
  panel_.ldv = STRIP;
  this->clear_columns(m, STRIP, stream);
  this->send(Y, ldy, m, STRIP, 0, stream);
  this->begin(0, nullptr, 0, stream);
  this->repeat(panel_, turns_, Last::to_close, stream);
  this->fetch(rest, ldy, m, STRIP, 0, stream);
}

template class FactorPass<float>;
template class FactorPass<double>;

}  // namespace gpucholmod::cuda
