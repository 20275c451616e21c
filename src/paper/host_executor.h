#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "paper/drive.h"
#include "paper/rotate.h"
#include "paper/shape.h"

namespace gpucholmod::paper {

/// Runs the threads of one thread block, one after the other.
template <class T>
class HostThreads {
 public:
  explicit HostThreads(int threads) : registers_(threads) {}
  int threads() const { return int(registers_.size()); }
  template <class F>
  void each_sync(F&& f) {
    for (int t = 0; t < threads(); ++t) f(t, registers_[t].data());
  }

 private:
  std::vector<std::array<T, max_elements_per_thread>> registers_;
};

/// Runs the panel method without a GPU: the same launches and per-thread code on the CPU, one after the other, for
/// study and tests.
template <class T>
class HostExecutor {
 public:
  HostExecutor(const Footprint<T>& footprint, Sign sign, const Shape& shape)
      : sign_(sign), shape_(shape), V_(footprint.V), panel_(footprint.slot) {}

  void send_V(MatrixView<const T> V) {
    n_ = V.rows;
    k_ = V.cols;
    for (index_t q = 0; q < k_; ++q) std::copy_n(V.col(q), n_, V_.data() + q * n_);
  }
  void fetch_V(index_t col, MatrixView<T> Vt) {
    for (index_t j = 0; j < Vt.cols; ++j)
      for (index_t q = 0; q < k_; ++q) Vt(q, j) = V_[col + j + q * n_];
  }
  void send_rotations(const Rotation<T>* rotations, index_t rows) {
    rotations_.assign(rotations, rotations + rows * k_);
  }
  void rotate(MatrixView<T> R, index_t col, bool) {
    for (index_t j = 0; j < R.cols; ++j) std::copy_n(R.col(j), R.rows, panel_.data() + j * R.rows);
    const Launch<T> launch{panel_.data(), R.rows, R.cols, R.rows, V_.data() + col, n_, k_, rotations_.data()};
    with_elements(std::min<index_t>(k_, shape_.elements_per_thread), [&](auto elements) {
      constexpr int E = decltype(elements)::value;
      if (sign_ == Sign::update) run<E, Sign::update>(launch);
      else run<E, Sign::downdate>(launch);
    });
    for (index_t j = 0; j < R.cols; ++j) std::copy_n(panel_.data() + j * R.rows, R.rows, R.col(j));
  }
  void finish() {}

 private:
  template <int E, Sign sign>
  void run(const Launch<T>& launch) {
    const int threads = shape_.threads_per_block;
    HostThreads<T> team(threads);
    std::vector<T> sR(threads * (TILE + 1));
    std::vector<Rotation<T>> sG(TILE * E);
    const index_t blocks = (launch.cols + threads - 1) / threads;
    for (index_t block = 0; block < blocks; ++block)
      rotate_block<E, sign>(launch, int(block), team, sR.data(), sG.data());
  }

  Sign sign_;
  Shape shape_;
  index_t n_ = 0, k_ = 0;
  std::vector<T> V_, panel_;
  std::vector<Rotation<T>> rotations_;
};

/// Modifies R in place. Throws out_of_memory if the footprint is more than `device_memory`, in bytes.
template <class T>
Work on_host(MatrixView<T> R, MatrixView<const T> V, Sign sign, double device_memory, const Shape& shape,
             const Poll& poll);

}  // namespace gpucholmod::paper
