#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/task.h"
#include "cpu/kernels.h"

namespace gpucholmod::cpu {

/// Hands out pieces of memory that begin with a cache line and are freed all at once; a little memory needs no call of
/// the system's allocator.
template <class T>
class Scratch : NotCopied {
 public:
  T* take(index_t count) {
    const index_t whole = (count + line - 1) / line * line;
    if (whole <= index_t(std::size(near_)) - used_) return near_ + std::exchange(used_, used_ + whole);
    far_.push_back(std::unique_ptr<T[]>(new T[count + line]));
    void* data = far_.back().get();
    std::size_t space = (count + line) * sizeof(T);
    return static_cast<T*>(std::align(64, count * sizeof(T), data, space));
  }

 private:
  static constexpr index_t line = 64 / sizeof(T);
  alignas(64) T near_[16384 / sizeof(T)];
  index_t used_ = 0;
  std::vector<std::unique_ptr<T[]>> far_;
};

/// Holds the transforms of the columns of V of one sign.
template <class T>
struct Stage {
  index_t blocks(index_t rows) const {
    return rows >> (kernels->rows == 8 ? 3 : 2);
  }  ///< number of whole row blocks in `rows` rows
  T* transform(index_t row) const { return transforms + blocks(row) * words; }

  const Kernels<T>* kernels;
  index_t first, k;  ///< first column of V, and number of columns
  index_t words;     ///< numbers of a transform
  T* transforms;
};

/// Holds the transforms of a modification, of the columns of V that are added and of the columns that are removed, and
/// applies them to strips of columns.
template <class T>
class Stages : NotCopied {
 public:
  using Strips = std::array<Strip<T>, 2>;  ///< a strip as each stage sees it
  /// The memory that carry() works in.
  struct CarryMemory {
    std::vector<T> Vt, z;
  };

  /// Allocates memory for the transforms. V (n x k) has to outlive this object; other arguments as of BlockedSweep.
  Stages(MatrixView<const T> V, index_t removed, T scale, Uplo uplo, Instructions instructions);

  const Stage<T>* begin() const { return stages_.data(); }
  const Stage<T>* end() const { return stages_.data() + count_; }
  index_t count() const { return count_; }
  index_t rows() const { return stages_[0].kernels->rows; }              ///< height of a row block
  /// Returns the leading dimension of the V of a strip of `width` columns.
  index_t ldv(index_t width) const { return width + stages_[0].kernels->lanes; }
  T* scratch(index_t count) { return scratch_.take(count); }

  /// Prepares for the first transform at `row`, a multiple of 8, above which V is zero: fills the transform before
  /// `row` with ones, as a transform of rotations begins with the h of the preceding transform.
  void start_at(index_t row) const {
    for (const Stage<T>& stage : *this)
      if (row > 0) std::fill_n(stage.transform(row - rows()), stage.words, T(1));
  }
  /// Copies a strip's part of V, from row `first` on, to strip.Vt. Returns the strip as each stage sees it: the second
  /// stage reads what the first has written.
  Strips begin(const Strip<T>& strip, index_t first) const;
  /// Applies the known transforms of rows [row, end) to the strip, from `column` on.
  void apply(Strips& strips, index_t row, index_t end, index_t column) const;
  /// Finds the transforms of rows row .. row + m - 1, whose diagonal begins in `column` of the strip, and applies them
  /// to the block on the diagonal. Returns which of the m pivots fails, or -1.
  index_t diagonal(Strips& strips, index_t row, index_t column, index_t m) const;
  /// Multiplies rows [row, end) of the result by the scale, in a strip whose first column is the factor's column
  /// `first`.
  void scale_rows(const Strip<T>& strip, index_t row, index_t end, index_t first) const;
  /// Allocates the memory that carry() needs for m right-hand sides of at most n rows.
  CarryMemory memory_to_carry(index_t m, index_t n, index_t width) const;
  /// Applies the transforms of rows [first, n), which are all known, to the right-hand sides, as strips of `width`
  /// columns without a diagonal. Allocates nothing.
  void carry(const RightHandSideView& sides, index_t first, index_t n, index_t width, CarryMemory& memory) const;

 private:
  void add(const Kernels<T>& kernels, index_t first, index_t k);
  index_t padded(index_t n) const { return (n + rows() - 1) / rows() * rows(); }  ///< n, rounded up to whole row blocks

  MatrixView<const T> V_;
  T scale_;
  Uplo uplo_;
  index_t count_ = 0;
  std::array<Stage<T>, 2> stages_;
  Scratch<T> scratch_;
};

}  // namespace gpucholmod::cpu
