#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/host_factor.h"
#include "mpi/panels.h"

namespace gpucholmod::mpi {

/// The distance between the message numbers of one part of an operation and those of the next part.
constexpr index_t next_part = index_t(1) << 32;

/// The columns of one process: each block has its rows down to the diagonal, column-major, and the blocks are stored
/// one behind the other. If the columns are on a GPU, ordinary memory has room for one block, which is fetched on
/// request.
template <class T>
class Columns {
 public:
  Columns(const Layout& layout, int rank, const cpu::Allocate& allocate) : layout_(layout), rank_(rank) {
    for (index_t b = rank; b < layout.blocks(); b += layout.size) {
      at_.push_back(words_);
      words_ += ld(b) * layout.columns(b);
    }
    *memory_ = room(words_, allocate);
  }
  Columns(const Layout& layout, int rank, const cpu::Allocate& allocate, std::unique_ptr<Panels<T>> panels)
      : layout_(layout), rank_(rank), allocate_(allocate), panels_(std::move(panels)) {}

  /// Returns block b, last(b) x columns(b), of which entries below the diagonal are never read. A block of a GPU is
  /// valid until another one is asked for.
  MatrixView<T> block(index_t b) const {
    if (panels_ && memory_->held != b) panels_->get(b, fresh(b));
    return view(b);
  }
  /// Returns the place of block b, for new numbers; written() has to follow when the numbers are there.
  MatrixView<T> fresh(index_t b) const {
    if (panels_ && !memory_->data) {
      index_t most = 0;
      for (index_t c = rank_; c < layout_.blocks(); c += layout_.size)
        most = std::max(most, ld(c) * layout_.columns(c));
      *memory_ = room(most, allocate_);
    }
    memory_->held = b;
    return view(b);
  }
  /// Copies block b to the GPU, if the columns are on one.
  void written(index_t b) const {
    if (!panels_) return;
    const MatrixView<T> R = view(b);
    panels_->put(b, R);
  }
  /// Gives up the block in ordinary memory, as the block on the GPU has changed or is not needed here.
  void forget() const {
    if (panels_) *memory_ = {};
  }

  /// Returns the panels on the GPU, or null if the columns are in ordinary memory.
  Panels<T>* panels() const { return panels_.get(); }
  /// Returns column j, down to the diagonal.
  T* column(index_t j) const { return block(layout_.block_of(j)).col(j % layout_.width); }
  double bytes() const { return panels_ ? panels_->bytes() : double(sizeof(T)) * double(words_); }

  /// Calls f(b) for each block of this process, from left to right.
  template <class F>
  void each_number(F&& f) const {
    for (index_t b = rank_; b < layout_.blocks(); b += layout_.size) f(b);
  }
  /// Calls f(b, block) for each block of this process, from left to right.
  template <class F>
  void each(F&& f) const {
    each_number([&](index_t b) { f(b, block(b)); });
  }
  /// Calls f(column, entries down to the diagonal, number of the column) for each column.
  template <class F>
  void each_column(F&& f) const {
    each([&](index_t b, MatrixView<T> R) {
      for (index_t j = 0; j < R.cols; ++j) f(R.col(j), layout_.first(b) + j + 1, layout_.first(b) + j);
    });
  }

 private:
  struct Memory {
    std::shared_ptr<void> owner;
    T* data = nullptr;
    index_t held = -1;  ///< number of the block of a GPU that is here, or -1
  };
  static Memory room(index_t words, const cpu::Allocate& allocate) {
    if (words == 0) return {};
    const std::size_t bytes = sizeof(T) * words;
    std::size_t space = bytes + 64;
    Memory made{allocate(space)};
    void* data = made.owner.get();
    made.data = static_cast<T*>(std::align(64, bytes, data, space));
    return made;
  }

  MatrixView<T> view(index_t b) const {
    return {memory_->data + (panels_ ? 0 : at_[b / layout_.size]), layout_.last(b), layout_.columns(b), ld(b)};
  }
  /// Returns the leading dimension of block b. Columns start at cache lines, but never a multiple of 4 KB apart, as
  /// columns at such distances would compete for the same few places in the first-level cache.
  index_t ld(index_t b) const {
    constexpr index_t line = 64 / sizeof(T);
    const index_t whole = (layout_.last(b) + line - 1) / line * line;
    return whole * sizeof(T) % 4096 == 0 ? whole + line : whole;
  }

  Layout layout_;
  int rank_;
  index_t words_ = 0;
  std::vector<index_t> at_;
  cpu::Allocate allocate_;
  std::shared_ptr<Panels<T>> panels_;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace gpucholmod::mpi
