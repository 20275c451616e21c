#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/rotation.h"

namespace gpucholmod::test {

/// An executor that does only what the contract in paper/drive.h promises, as late as possible. It computes a panel
/// when the diagonal block below needs the panel's columns of V, or at the end, the youngest panel first. It writes no
/// panel back to R before the end. Until then a panel's place in R holds NaN, and so does V after it was fetched. So
/// tests find a driver that relies on more than the contract.
template <class T>
class LazyExecutor {
 public:
  /// Makes an executor. `in_flight` counts the panels that are not back in R.
  LazyExecutor(Sign sign, int& in_flight) : sign_(sign), in_flight_(in_flight) {}
  ~LazyExecutor() { finish(); }

  void send_V(MatrixView<const T> V) {
    EXPECT_TRUE(V_.empty()) << "V is sent once";
    n_ = V.rows;
    k_ = V.cols;
    for (index_t q = 0; q < k_; ++q) V_.insert(V_.end(), V.col(q), V.col(q) + n_);
  }

  void fetch_V(index_t col, MatrixView<T> Vt) {
    for (std::size_t p = 0; p < panels_.size(); ++p)
      if (panels_[p].look_ahead) compute(p);
    for (const Panel& panel : panels_)
      EXPECT_TRUE(panel.computed || panel.col >= col + Vt.cols || panel.col + panel.R.cols <= col)
          << "V is fetched at " << col << " while an ordinary panel there is in flight";
    for (index_t j = 0; j < Vt.cols; ++j)
      for (index_t q = 0; q < k_; ++q) Vt(q, j) = std::exchange(V_[col + j + q * n_], nan);
  }

  void send_rotations(const Rotation<T>* rotations, index_t rows) {
    rotations_ = std::make_shared<std::vector<Rotation<T>>>(rotations, rotations + rows * k_);
  }

  void rotate(MatrixView<T> R, index_t col, bool look_ahead) {
    ASSERT_EQ(index_t(rotations_->size()), R.rows * k_);
    Panel panel{R, col, look_ahead, false, rotations_, {}};
    for (index_t j = 0; j < R.cols; ++j) {
      panel.entries.insert(panel.entries.end(), R.col(j), R.col(j) + R.rows);
      std::fill_n(R.col(j), R.rows, nan);
    }
    panels_.push_back(std::move(panel));
    ++in_flight_;
  }

  void finish() {
    for (std::size_t p = panels_.size(); p-- > 0;) {
      compute(p);
      const Panel& panel = panels_[p];
      for (index_t j = 0; j < panel.R.cols; ++j)
        std::copy_n(panel.entries.data() + j * panel.R.rows, panel.R.rows, panel.R.col(j));
      --in_flight_;
    }
    panels_.clear();
  }

 private:
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();

  struct Panel {
    MatrixView<T> R;
    index_t col;
    bool look_ahead, computed;
    std::shared_ptr<std::vector<Rotation<T>>> rotations;
    std::vector<T> entries;
  };

  /// Computes panel p, after the panels above it.
  void compute(std::size_t p) {
    Panel& panel = panels_[p];
    if (panel.computed) return;
    for (std::size_t above = 0; above < p; ++above)
      if (panels_[above].col < panel.col + panel.R.cols && panel.col < panels_[above].col + panels_[above].R.cols)
        compute(above);
    for (index_t j = 0; j < panel.R.cols; ++j)
      for (index_t i = 0; i < panel.R.rows; ++i)
        for (index_t q = 0; q < k_; ++q) {
          T &r = panel.entries[i + j * panel.R.rows], &v = V_[panel.col + j + q * n_];
          const Rotation<T>& g = (*panel.rotations)[i * k_ + q];
          if (sign_ == Sign::update) apply<Sign::update>(g, r, v);
          else apply<Sign::downdate>(g, r, v);
        }
    panel.computed = true;
  }

  Sign sign_;
  int& in_flight_;
  index_t n_ = 0, k_ = 0;
  std::vector<T> V_;
  std::shared_ptr<std::vector<Rotation<T>>> rotations_;
  std::vector<Panel> panels_;
};

}  // namespace gpucholmod::test
