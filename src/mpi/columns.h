#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/host_factor.h"

namespace gpucholmod::mpi {

/// Columns of a block: the message of a block step grows with them, the number of messages shrinks (inst/design/processes.md). A multiple of 8,
/// the most rows of a row block of the kernels.
constexpr index_t block_width = 64;

/// Numbers of messages of one part of an operation are so far from those of the next.
constexpr index_t next_part = index_t(1) << 32;

/// Who has which columns of an upper factor of order n: blocks of neighbouring ones, dealt out to `size` processes in turn.
///
///     0   1   2   0   1   2   0      3 processes
///   +---+---+---+---+---+---+--+
///   | b |
///   +---+
struct Layout {
  index_t n = 0;
  int size = 1;

  index_t blocks() const { return (n + block_width - 1) / block_width; }
  index_t first(index_t b) const { return b * block_width; }
  index_t last(index_t b) const { return std::min(n, (b + 1) * block_width); }
  index_t columns(index_t b) const { return last(b) - first(b); }
  int owner(index_t b) const { return int(b % size); }
  int owner_of_column(index_t j) const { return owner(j / block_width); }
  /// Whether a process has a block behind block b.
  bool has_behind(int process, index_t b) const { return b + 1 + (process - owner(b + 1) + size) % size < blocks(); }
  /// Of these the others than `but`.
  std::vector<int> behind(index_t b, int but) const {
    std::vector<int> all;
    for (int p = 0; p < size; ++p)
      if (p != but && has_behind(p, b)) all.push_back(p);
    return all;
  }
};

/// The columns of one process: each block its rows down to the diagonal, column-major, one behind the other.
template <class T>
class Columns {
 public:
  Columns(const Layout& layout, int rank, const cpu::Allocate& allocate) : layout_(layout), rank_(rank) {
    for (index_t b = rank; b < layout.blocks(); b += layout.size) {
      at_.push_back(words_);
      words_ += ld(b) * layout.columns(b);
    }
    if (words_ == 0) return;
    std::size_t space = bytes() + 64;
    memory_ = allocate(space);
    void* data = memory_.get();
    data_ = static_cast<T*>(std::align(64, bytes(), data, space));
  }

  /// last(b) x columns(b); what is below the diagonal is never read.
  MatrixView<T> block(index_t b) const { return {data_ + at_[b / layout_.size], layout_.last(b), layout_.columns(b), ld(b)}; }
  /// Down to the diagonal.
  T* column(index_t j) const { return block(j / block_width).col(j % block_width); }
  std::size_t bytes() const { return sizeof(T) * words_; }

  /// f(b, block) for each, from left to right.
  template <class F>
  void each(F&& f) const {
    for (index_t b = rank_; b < layout_.blocks(); b += layout_.size) f(b, block(b));
  }
  /// f(column, entries down to the diagonal, number of the column).
  template <class F>
  void each_column(F&& f) const {
    each([&](index_t b, MatrixView<T> R) {
      for (index_t j = 0; j < R.cols; ++j) f(R.col(j), layout_.first(b) + j + 1, layout_.first(b) + j);
    });
  }

 private:
  /// Columns start at cache lines, and no multiple of 4 KB apart, which would want the same few places in the first-level cache.
  index_t ld(index_t b) const {
    constexpr index_t line = 64 / sizeof(T);
    const index_t whole = (layout_.last(b) + line - 1) / line * line;
    return whole * sizeof(T) % 4096 == 0 ? whole + line : whole;
  }

  Layout layout_;
  int rank_;
  index_t words_ = 0;
  std::vector<index_t> at_;
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
};

}  // namespace gpucholmod::mpi
